"""SecretsReader: the identity of External Secrets, which may read the Apps' keys only.

External Secrets runs in the cluster and copies the keys of the GitHub Apps from
Secrets Manager into the namespaces of the runners. Its role is bound to its one
service account as job identities are (:mod:`runfleet.clouds.aws.identity`): by the
EKS Pod Identity association, and again by the trust policy. It reads the secrets that
``github.apps`` of the fleet file names and nothing else; its permissions boundary says
the same, so that no policy attached later gives it more.

A secret's ARN ends in a dash and six characters that Secrets Manager chooses (Secrets
Manager user guide, "Determine who has permissions to your secrets"), so ARNs here end
in ``-??????``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pulumi
import pulumi_aws as aws

from runfleet.clouds.aws import addresses
from runfleet.clouds.aws.grants import (
    ROLE_POLICY_LIMIT,
    Statement,
    allow,
    document,
)
from runfleet.clouds.aws.identity import (
    SESSION_SECONDS,
    BoundaryArgs,
    PermissionsBoundary,
    pod_identity_trust,
)
from runfleet.clouds.aws.names import partition
from runfleet.clouds.aws.settings import AwsSettings
from runfleet.clouds.aws.tags import tags
from runfleet.errors import InputError, Problem
from runfleet.placement.plan import CellPlan
from runfleet.spec.fleet import Fleet

SECRET_NAME = re.compile(r"[A-Za-z0-9/_+=.@-]{1,512}")
"""Names that Secrets Manager accepts (its API reference, CreateSecret); in an ARN of a
policy they stand for themselves, while ``*`` and ``?`` would not."""

READ_SECRET = ("secretsmanager:DescribeSecret", "secretsmanager:GetSecretValue")
"""What External Secrets asks for a secret that is named (External Secrets operator
documentation, "AWS Secrets Manager", "IAM Policy")."""


@dataclass(frozen=True)
class SecretsReaderArgs:
    """What :class:`SecretsReader` makes.

    Attributes:
        role_name: Name of the role.
        boundary_name: Name of its permissions boundary.
        account: Account of the cell.
        region: Region of the cell.
        cluster_name: Name of the cluster.
        namespace: Namespace of External Secrets.
        service_account: Service account of its controller.
        secrets: Names of the secrets.
        keys: ARNs of the keys that encrypt them, where they are not AWS's own.
        tags: Tags of everything.
    """

    role_name: str
    boundary_name: str
    account: str
    region: str
    cluster_name: pulumi.Input[str]
    namespace: str
    service_account: str
    secrets: Sequence[str]
    keys: Sequence[str] = ()
    tags: Mapping[str, str] = field(default_factory=dict[str, str])

    @classmethod
    def from_plan(
        cls,
        plan: CellPlan,
        cluster_name: pulumi.Input[str],
        namespace: str,
        service_account: str,
    ) -> SecretsReaderArgs:
        """Take the identity of External Secrets in a cell.

        Args:
            plan: The cell.
            cluster_name: Name of the cluster that it runs in.
            namespace: Its namespace.
            service_account: Its service account.

        Raises:
            InputError: A setting of the cell or the name of a secret is wrong.
        """
        cell = plan.cell
        _check_names(plan.fleet)
        return cls(
            role_name=addresses.secrets_role(cell),
            boundary_name=addresses.boundary_policy(cell.cluster, "secrets"),
            account=cell.account,
            region=cell.region,
            cluster_name=cluster_name,
            namespace=namespace,
            service_account=service_account,
            secrets=addresses.app_secrets(plan.fleet),
            keys=tuple(AwsSettings.of(cell).app_secret_keys),
            tags=tags(plan.ci_labels),
        )


class SecretsReader(pulumi.ComponentResource):
    """The identity of External Secrets in a cell.

    Attributes:
        role_arn: ARN of the role.
        service_account_annotations: None: Pod Identity needs none.
        association: What must exist before the controller's pods start: credentials
            are handed out only to pods that were made after it.
    """

    role_arn: pulumi.Output[str]
    service_account_annotations: Mapping[str, pulumi.Input[str]]
    association: aws.eks.PodIdentityAssociation

    def __init__(
        self,
        name: str,
        args: SecretsReaderArgs,
        options: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Make the identity.

        Args:
            name: Name of the component; children are called ``<name>-<suffix>``.
            args: What it is made from.
            options: Options; the explicit provider comes with them.

        Raises:
            TooLongError: There are more secrets than a policy has room for.
        """
        super().__init__("runfleet:aws:SecretsReader", name, None, options)
        own = pulumi.ResourceOptions(parent=self)
        policy = document(reading(args), ROLE_POLICY_LIMIT, "External Secrets")
        boundary = PermissionsBoundary(
            f"{name}-boundary",
            BoundaryArgs(
                args.boundary_name,
                policy,
                args.tags,
                "The most that External Secrets can ever do",
            ),
            own,
        )
        role = aws.iam.Role(
            f"{name}-role",
            name=args.role_name,
            description="External Secrets: reads the keys of the GitHub Apps",
            assume_role_policy=pulumi.Output.from_input(args.cluster_name).apply(
                lambda cluster: pod_identity_trust(
                    args.account,
                    args.region,
                    cluster,
                    args.namespace,
                    args.service_account,
                )
            ),
            max_session_duration=SESSION_SECONDS,
            permissions_boundary=boundary.arn,
            tags=args.tags,
            opts=own,
        )
        attached = aws.iam.RolePolicy(
            f"{name}-policy",
            name="app-keys",
            role=role.name,
            policy=policy,
            opts=own,
        )
        self.association = aws.eks.PodIdentityAssociation(
            f"{name}-association",
            cluster_name=args.cluster_name,
            namespace=args.namespace,
            service_account=args.service_account,
            role_arn=role.arn,
            tags=args.tags,
            opts=pulumi.ResourceOptions(parent=self, depends_on=[attached]),
        )
        self.role_arn = role.arn
        self.service_account_annotations = {}
        self.register_outputs({"role_arn": role.arn, "service_account_annotations": {}})


def reading(args: SecretsReaderArgs) -> list[Statement]:
    """Return what External Secrets may do."""
    where = f"arn:{partition(args.region)}:secretsmanager:{args.region}:{args.account}"
    secrets = [f"{where}:secret:{name}-??????" for name in args.secrets]
    found = [allow("AppKeys", READ_SECRET, secrets)]
    if args.keys:
        via = f"secretsmanager.{args.region}.amazonaws.com"
        found.append(
            allow(
                "KeysOfAppKeys",
                ("kms:Decrypt",),
                list(args.keys),
                {"StringEquals": {"kms:ViaService": via}},
            )
        )
    return found


def _check_names(fleet: Fleet) -> None:
    wrong = [
        Problem(
            file="fleet file",
            line=0,
            path=f"github.apps.{name}.secret",
            message="no name of a secret in AWS Secrets Manager",
            found=repr(app.secret),
            allowed=f"a name matching {SECRET_NAME.pattern}, no ARN",
        )
        for name, app in sorted(fleet.github.apps.items())
        if not SECRET_NAME.fullmatch(app.secret)
    ]
    if wrong:
        raise InputError(wrong)
