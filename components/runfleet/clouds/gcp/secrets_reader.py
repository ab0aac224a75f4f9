"""SecretsReader: the identity of External Secrets, which may read the Apps' keys only.

External Secrets runs in the cluster and copies the keys of the GitHub Apps from Secret
Manager into the namespaces of the runners. Its service account is bound to its one
Kubernetes service account as job identities are (:mod:`runfleet.clouds.gcp.identity`),
and may read the secrets that ``github.apps`` of the fleet file names, each bound by
itself. The secrets are made by hand and never by a stack, so no key is in any state.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pulumi
import pulumi_gcp as gcp

from runfleet.clouds.gcp import addresses
from runfleet.clouds.gcp.addresses import Project
from runfleet.clouds.gcp.identity import ANNOTATION, MAY_ACT_AS, make_account
from runfleet.placement.plan import CellPlan

READ_SECRET = "roles/secretmanager.secretAccessor"
"""``secretmanager.versions.access`` and nothing else on a secret (Secret Manager
documentation, "Access control with IAM")."""


@dataclass(frozen=True)
class SecretsReaderArgs:
    """What :class:`SecretsReader` makes.

    Attributes:
        account: Id of the service account.
        project: Project of the cell.
        namespace: Namespace of External Secrets.
        service_account: Service account of its controller.
        secrets: Ids of the secrets.
        after: What makes the workload identity pool exist: the cluster.
    """

    account: str
    project: Project
    namespace: str
    service_account: str
    secrets: Sequence[str]
    after: Sequence[pulumi.Resource] = ()

    @classmethod
    def from_plan(
        cls,
        plan: CellPlan,
        namespace: str,
        service_account: str,
        after: Sequence[pulumi.Resource] = (),
    ) -> SecretsReaderArgs:
        """Take the identity of External Secrets in a cell."""
        return cls(
            account=addresses.secrets_account(plan.cell),
            project=addresses.cell_project(plan.cell),
            namespace=namespace,
            service_account=service_account,
            secrets=addresses.app_secrets(plan.fleet),
            after=tuple(after),
        )


class SecretsReader(pulumi.ComponentResource):
    """The identity of External Secrets in a cell.

    Attributes:
        identity_id: Address of the service account.
        service_account_annotations: What binds its Kubernetes service account to it.
        ready: What must exist before it can read a secret.
    """

    identity_id: pulumi.Output[str]
    service_account_annotations: Mapping[str, pulumi.Input[str]]
    ready: Sequence[pulumi.Resource]

    def __init__(
        self,
        name: str,
        args: SecretsReaderArgs,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Make the identity."""
        super().__init__("runfleet:gcp:SecretsReader", name, None, opts)
        account = make_account(
            name,
            args.account,
            args.project,
            "External Secrets: reads the keys of GitHub Apps",
            self,
        )
        pods = gcp.serviceaccount.IAMMember(
            f"{name}-pods",
            service_account_id=account.name,
            role=MAY_ACT_AS,
            member=args.project.pod(args.namespace, args.service_account),
            opts=pulumi.ResourceOptions(parent=self, depends_on=list(args.after)),
        )
        reads = [
            gcp.secretmanager.SecretIamMember(
                f"{name}-secret-{number}",
                project=args.project.id,
                secret_id=secret,
                role=READ_SECRET,
                member=account.email.apply(lambda email: f"serviceAccount:{email}"),
                opts=pulumi.ResourceOptions(parent=self),
            )
            for number, secret in enumerate(args.secrets)
        ]
        self.ready = (pods, *reads)
        self.identity_id = account.email
        self.service_account_annotations = {ANNOTATION: account.email}
        self.register_outputs(
            {
                "identity_id": self.identity_id,
                "service_account_annotations": dict(self.service_account_annotations),
            }
        )
