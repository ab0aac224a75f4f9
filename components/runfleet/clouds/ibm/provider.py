"""The explicit provider: one for each account and region, never an ambient one.

Every value that is not a string goes to a parameterised provider as JSON text
(pulumi/pulumi ``pkg/codegen/python/gen.go``). The provider's schema marks none of its
credentials as secret, so they are wrapped here.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

import pulumi

from runfleet.clouds.ibm.package import package

TIMEOUT_S = 300
RETRIES = 10


@dataclass(frozen=True)
class ProviderArgs:
    """What a provider is configured with.

    Attributes:
        account: Account id.
        region: Region.
        resource_group: Id of the resource group; ``None`` for the default one.
        visibility: Endpoints that the services are called through.
        profile: Id of the trusted profile that the deployment takes on.
        api_key: API key; ``None`` to read ``IC_API_KEY`` from the environment.
    """

    account: str
    region: str
    resource_group: str | None = None
    visibility: str = "public-and-private"
    profile: str = ""
    api_key: pulumi.Input[str] | None = None


class IbmProvider(pulumi.ProviderResource):
    """The parameterised provider of one account and region."""

    def __init__(
        self,
        name: str,
        args: ProviderArgs,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Register the provider."""
        wanted: dict[str, pulumi.Input[str] | None] = {
            "ibmcloudAccountId": args.account,
            "region": args.region,
            "resourceGroup": args.resource_group,
            "visibility": args.visibility,
            "iamProfileId": args.profile or None,
            "ibmcloudApiKey": pulumi.Output.secret(args.api_key)
            if args.api_key is not None
            else None,
            "ibmcloudTimeout": json.dumps(TIMEOUT_S),
            "maxRetries": json.dumps(RETRIES),
        }
        given = {key: value for key, value in wanted.items() if value is not None}
        super().__init__("ibm", name, given, opts, package_ref=package())
