"""SecretsReader: the identity of External Secrets, which may read the Apps' keys only.

External Secrets runs in the cluster and copies the keys of the GitHub Apps from Secrets
Manager into the namespaces of the runners. Its trusted profile is linked to its one
service account, and may read the secrets of one secret group, which must hold nothing
else: IAM knows groups of secrets, and a policy on a single one would have to name an id
that Secrets Manager chooses (cloud.ibm.com/docs/secrets-manager, "Managing IAM
access").

Its pods need the token of their service account as a file
(:attr:`SecretsReader.token`), as job pods do.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pulumi

from runfleet.clouds.ibm import addresses
from runfleet.clouds.ibm.grants import Policy
from runfleet.clouds.ibm.identity import (
    IAM_AUDIENCE,
    PRIVATE_IAM,
    PROFILE_ANNOTATION,
    TOKEN_FOLDER,
    ProjectedToken,
    give,
    link,
    trusted_profile,
)
from runfleet.clouds.ibm.names import TRUSTED_PROFILE
from runfleet.clouds.ibm.resources.access import Attribute, ComputeLink
from runfleet.clouds.ibm.settings import IbmSettings, SecretsManager
from runfleet.clouds.protocols import AppSecretSource
from runfleet.errors import InputError, Problem
from runfleet.placement.plan import CellPlan, PlannedClass
from runfleet.spec.cells import Cell

READ_SECRETS = "SecretsReader"
"""Role that reads the payload of secrets and changes nothing."""

TOKEN = ProjectedToken(IAM_AUDIENCE, f"{TOKEN_FOLDER}/sa-token")


@dataclass(frozen=True)
class SecretsReaderArgs:
    """What :class:`SecretsReader` makes.

    Attributes:
        profile_name: Name of the trusted profile.
        cluster_crn: CRN of the cluster.
        namespace: Namespace of External Secrets.
        service_account: Service account of its controller.
        manager: Where the secrets are.
        labels: The required labels.
    """

    profile_name: str
    cluster_crn: pulumi.Input[str]
    namespace: str
    service_account: str
    manager: SecretsManager
    labels: Mapping[str, str]

    @classmethod
    def from_plan(
        cls,
        plan: CellPlan,
        cluster_crn: pulumi.Input[str],
        namespace: str,
        service_account: str,
    ) -> SecretsReaderArgs:
        """Take the identity of External Secrets in a cell.

        Args:
            plan: The cell.
            cluster_crn: CRN of the cluster.
            namespace: Its namespace.
            service_account: Its service account.

        Raises:
            InputError: The cell does not say where its secrets are.
        """
        return cls(
            profile_name=profile_name(plan.cell),
            cluster_crn=cluster_crn,
            namespace=namespace,
            service_account=service_account,
            manager=secrets_manager(plan.cell),
            labels=plan.ci_labels,
        )


class SecretsReader(pulumi.ComponentResource):
    """The identity of External Secrets in a cell.

    Attributes:
        identity_id: Id of the trusted profile.
        service_account_annotations: The profile that the account may take on.
        token: The file that its pods need.
        link: What must exist before the controller asks for its first token.
    """

    identity_id: pulumi.Output[str]
    service_account_annotations: Mapping[str, pulumi.Input[str]]
    token: ProjectedToken
    link: pulumi.Resource

    def __init__(
        self,
        name: str,
        args: SecretsReaderArgs,
        options: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Make the identity."""
        super().__init__("runfleet:ibm:SecretsReader", name, None, options)
        profile = trusted_profile(
            name,
            args.profile_name,
            "External Secrets: reads the keys of the GitHub Apps",
            args.labels,
            self,
        )
        policy = Policy(
            "app-keys",
            (READ_SECRETS,),
            (
                Attribute("serviceName", "secrets-manager"),
                Attribute("serviceInstance", args.manager.instance),
                Attribute("resourceType", "secret-group"),
                Attribute("resource", args.manager.group),
            ),
        )
        made = give(name, profile, [policy], args.labels, self)
        to = ComputeLink(args.cluster_crn, args.namespace, args.service_account)
        self.link = link(name, profile, to, self, made)
        self.identity_id = profile.profile_id
        self.service_account_annotations = {PROFILE_ANNOTATION: self.identity_id}
        self.token = TOKEN
        self.register_outputs({"identity_id": self.identity_id})


def app_secret(plan: CellPlan, planned: PlannedClass) -> AppSecretSource:
    """Say which secret of Secrets Manager holds the App's key of a class.

    Raises:
        InputError: The cell does not say where its secrets are.
    """
    manager = secrets_manager(plan.cell)
    host = f"{manager.instance}.private.{plan.cell.region}"
    secret = addresses.app_secret(plan.fleet, planned.runner_class.trust)
    return AppSecretSource(
        "ibm",
        {
            "serviceUrl": f"https://{host}.secrets-manager.appdomain.cloud",
            "auth": {
                "containerAuth": {
                    "profile": profile_name(plan.cell),
                    "tokenLocation": TOKEN.path,
                    "iamEndpoint": PRIVATE_IAM,
                }
            },
        },
        f"{manager.group_name}/kv/{secret}",
    )


def profile_name(cell: Cell) -> str:
    """Return the name of the trusted profile of External Secrets in a cell."""
    return TRUSTED_PROFILE.encode(cell.cluster, "secrets-reader")


def secrets_manager(cell: Cell) -> SecretsManager:
    """Return where a cell's secrets are.

    Raises:
        InputError: The cell does not say.
    """
    manager = IbmSettings.of(cell).secrets_manager
    if manager is None:
        raise InputError(
            [
                Problem(
                    "fleet file",
                    0,
                    f"cells.{cell.name}.settings.secrets_manager",
                    "a cell on IBM Cloud must say where the Apps' keys are kept",
                    allowed="{instance: <GUID>, group: <id>, group_name: <name>}",
                )
            ]
        )
    return manager
