"""SecretsReader: the identity of External Secrets, which may read the Apps' keys only.

External Secrets runs in the cluster and copies the keys of the GitHub Apps from the
cell's vault into the namespaces of the runners. Its identity takes tokens of its one
service account, and reads the secrets that ``github.apps`` of the fleet file names: the
role is assigned on each secret, not on the vault, so the keys of disks and of the
cluster's secrets are out of its reach.

Names in the fleet file may hold slashes, names in a vault may not; :func:`secret_name`
encodes them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pulumi
from pulumi_azure_native import managedidentity

from runfleet.clouds.azure import names, roles
from runfleet.clouds.azure.identity import credentials, workload_annotations
from runfleet.clouds.azure.places import Place, place_of
from runfleet.clouds.azure.tags import with_labels
from runfleet.placement.plan import CellPlan
from runfleet.spec.fleet import Fleet


@dataclass(frozen=True)
class SecretsReaderArgs:
    """What :class:`SecretsReader` makes.

    Attributes:
        place: Where the cell is.
        namespace: Namespace of External Secrets.
        service_account: Service account of its controller.
        issuer: Issuer of the cluster's tokens.
        group: Name of the resource group.
        vault_id: Resource id of the vault.
        secrets: Names of the secrets in the vault.
    """

    place: Place
    namespace: str
    service_account: str
    issuer: pulumi.Input[str]
    group: pulumi.Input[str]
    vault_id: pulumi.Input[str]
    secrets: Sequence[str]

    @classmethod
    def from_plan(
        cls,
        plan: CellPlan,
        *,
        issuer: pulumi.Input[str],
        group: pulumi.Input[str],
        vault_id: pulumi.Input[str],
        namespace: str,
        service_account: str,
    ) -> SecretsReaderArgs:
        """Take the identity of External Secrets in a cell.

        Args:
            plan: The cell.
            issuer: Issuer of the cluster's tokens.
            group: Name of the resource group.
            vault_id: Resource id of the vault.
            namespace: Its namespace.
            service_account: Its service account.
        """
        return cls(
            place=place_of(plan),
            namespace=namespace,
            service_account=service_account,
            issuer=issuer,
            group=group,
            vault_id=vault_id,
            secrets=app_secrets(plan.fleet),
        )


class SecretsReader(pulumi.ComponentResource):
    """The identity of External Secrets in a cell.

    Attributes:
        identity_id: Resource id of the identity.
        service_account_annotations: What AKS's webhook reads.
    """

    identity_id: pulumi.Output[str]
    service_account_annotations: Mapping[str, pulumi.Input[str]]

    def __init__(
        self,
        name: str,
        args: SecretsReaderArgs,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Make the identity.

        Args:
            name: Name of the component; children are called ``<name>-<suffix>``.
            args: What it is made from.
            opts: Options; the explicit provider comes with them.
        """
        options = with_labels(opts, args.place.labels)
        super().__init__("runfleet:azure:SecretsReader", name, None, options)
        here = pulumi.ResourceOptions(parent=self)
        identity = managedidentity.UserAssignedIdentity(
            f"{name}-identity",
            resource_name_=names.IDENTITY.encode(args.place.name, "external-secrets"),
            resource_group_name=args.group,
            location=args.place.region,
            opts=here,
        )
        subject = f"system:serviceaccount:{args.namespace}:{args.service_account}"
        credentials(name, identity, args.group, args.issuer, {"pods": subject}, here)
        for secret in args.secrets:
            roles.assign(
                f"{name}-reads-{secret}",
                args.place,
                principal=identity.principal_id,
                scope=pulumi.Output.concat(args.vault_id, "/secrets/", secret),
                role=roles.SECRETS_USER,
                options=here,
            )
        self.identity_id = identity.id
        self.service_account_annotations = workload_annotations(
            identity.client_id, args.place.tenant
        )
        self.register_outputs({"identity_id": self.identity_id})


def secret_name(name: str) -> str:
    """Return what the vault calls a secret of the fleet file."""
    return names.VAULT_SECRET.encode(*name.split("/"))


def app_secrets(fleet: Fleet) -> list[str]:
    """Return what the vault calls the secrets of the fleet's GitHub Apps."""
    return sorted({secret_name(app.secret) for app in fleet.github.apps.values()})
