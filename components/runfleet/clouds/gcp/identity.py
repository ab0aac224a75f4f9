"""RunnerIdentity: the Google identity of one runner class, made from its grants alone.

Every class with grants has a service account of its own in every cell; a class without
grants has no cloud identity at all. Exactly one Kubernetes service account of one
namespace may act as it: the binding names it as ``principal://`` with the project's
*number* and the pool's project *id* (IAM documentation, "Principal identifiers"). The
pool is one for all clusters of a project, so a namespace's name has the cell in it.
Tokens last one hour at most, which is the default and needs an organisation policy to
be made longer.

What the service account may do is what :mod:`runfleet.clouds.gcp.grants` makes of the
class's grants, bound on the stores themselves; in the project it may do nothing. There
are no keys of it. Central stores on another cloud are reached with a token of the
cluster's issuer (:attr:`runfleet.clouds.gcp.cluster.Cluster.oidc_issuer`), which that
cloud exchanges.

Pods reach their credentials at GKE's metadata server, which answers with their own
identity and never with the machine's (GKE documentation, "About Workload Identity
Federation for GKE").
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pulumi
import pulumi_gcp as gcp

from runfleet.clouds.gcp import addresses
from runfleet.clouds.gcp.addresses import Project
from runfleet.clouds.gcp.bindings import Handles, by_scope, make_bindings
from runfleet.clouds.gcp.grants import Binding, bindings
from runfleet.clouds.protocols import StoreHandle
from runfleet.placement.plan import CellPlan, PlannedClass
from runfleet.spec.roles import Scope, StoreKind

METADATA_SERVER = ("169.254.169.254:80",)
"""Address of GKE's metadata server on every node with Dataplane V2 (GKE documentation,
"Workload Identity Federation for GKE", network policies)."""

ANNOTATION = "iam.gke.io/gcp-service-account"
"""Says which service account the pods of a Kubernetes service account act as."""

MAY_ACT_AS = "roles/iam.workloadIdentityUser"


@dataclass(frozen=True)
class RunnerIdentityArgs:
    """What :class:`RunnerIdentity` makes.

    Attributes:
        class_name: Name of the runner class.
        account: Id of the service account.
        project: Project of the cell.
        namespace: Namespace of its job pods.
        service_account: Service account of its job pods.
        bindings: What it may do with which store.
        handles: The stores.
        projects: Project of the stores of each scope.
        has_grants: Whether the class has grants at all.
        after: What makes the workload identity pool exist.
    """

    class_name: str
    account: str
    project: Project
    namespace: str
    service_account: str
    bindings: Sequence[Binding]
    handles: Handles
    projects: Mapping[Scope, Project]
    has_grants: bool = True
    after: Sequence[pulumi.Resource] = field(default_factory=list[pulumi.Resource])

    @classmethod
    def from_plan(
        cls,
        plan: CellPlan,
        planned: PlannedClass,
        local: Mapping[StoreKind, StoreHandle],
        central: Mapping[StoreKind, StoreHandle],
        after: Sequence[pulumi.Resource] = (),
    ) -> RunnerIdentityArgs:
        """Take the identity of a class in a cell.

        Args:
            plan: The cell.
            planned: The class in it.
            local: The cell's stores.
            central: The central stores.
            after: What makes the workload identity pool exist: the cluster.

        Raises:
            InputError: A project's number is missing.
        """
        cell, fleet = plan.cell, plan.fleet
        home = addresses.central_project(fleet)
        project = addresses.cell_project(cell)
        projects = {Scope.LOCAL: project, **({Scope.CENTRAL: home} if home else {})}
        return cls(
            class_name=planned.name,
            account=addresses.job_account(cell, planned.runner_class),
            project=project,
            namespace=planned.job_namespace,
            service_account=planned.service_account,
            bindings=bindings(
                addresses.effective(planned.grants, fleet),
                planned.runner_class.trust,
                addresses.places(fleet, cell),
            ),
            handles=by_scope(local, central),
            projects=projects,
            has_grants=bool(planned.grants),
            after=tuple(after),
        )


class RunnerIdentity(pulumi.ComponentResource):
    """The identity of a class: a service account, who may use it and what it may do.

    Attributes:
        identity_id: Address of the service account.
        service_account_annotations: What binds the Kubernetes service account to it.
        pod_labels: None: Workload Identity needs none.
        endpoints: Address of the server that hands out the credentials.
    """

    identity_id: pulumi.Output[str]
    service_account_annotations: Mapping[str, pulumi.Input[str]]
    pod_labels: Mapping[str, pulumi.Input[str]]
    endpoints: Sequence[str]

    def __init__(
        self,
        name: str,
        args: RunnerIdentityArgs,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Make the identity.

        Raises:
            ValueError: The class has no grants, so it must have no identity.
        """
        if not args.has_grants:
            raise ValueError(
                f"class {args.class_name} has no grants, so it gets no cloud identity"
            )
        super().__init__("runfleet:gcp:RunnerIdentity", name, None, opts)
        account = make_account(
            name,
            args.account,
            args.project,
            f"Jobs of runner class {args.class_name}",
            self,
        )
        gcp.serviceaccount.IAMMember(
            f"{name}-pods",
            service_account_id=account.name,
            role=MAY_ACT_AS,
            member=args.project.pod(args.namespace, args.service_account),
            opts=pulumi.ResourceOptions(parent=self, depends_on=list(args.after)),
        )
        make_bindings(
            name,
            args.bindings,
            args.handles,
            args.projects,
            account.email.apply(lambda email: f"serviceAccount:{email}"),
            self,
        )
        self.identity_id = account.email
        self.service_account_annotations = {ANNOTATION: account.email}
        self.pod_labels = {}
        self.endpoints = METADATA_SERVER
        self.register_outputs(
            {
                "identity_id": self.identity_id,
                "service_account_annotations": dict(self.service_account_annotations),
                "pod_labels": {},
                "endpoints": list(self.endpoints),
            }
        )


def make_account(
    name: str,
    account: str,
    project: Project,
    display_name: str,
    parent: pulumi.Resource,
) -> gcp.serviceaccount.Account:
    """Make a service account.

    Args:
        name: What the name of the resource begins with.
        account: Id of the service account.
        project: Its project.
        display_name: What it is, for people; at most 100 characters are kept.
        parent: The component that it belongs to.
    """
    return gcp.serviceaccount.Account(
        f"{name}-account",
        account_id=account,
        project=project.id,
        display_name=display_name[:100],
        opts=pulumi.ResourceOptions(parent=parent),
    )
