"""What every cloud gives: the obligations of the seven rooms.

A floor is one cloud's implementation. The program (:mod:`runfleet.program`) and the
runner side know these protocols only. Each room is a ``pulumi.ComponentResource``
of type ``runfleet:<cloud>:<Name>`` whose child names derive from its own name with
fixed suffixes, whose children have it as parent, and whose outputs are set before
``register_outputs``. Anything stateful is protected and retained.

Abilities that some clouds lack (spot, reservations, a sandboxed runtime) are
protocols of their own at the end: a floor has them or has not, no flag says so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, cast, runtime_checkable

import pulumi

from runfleet.placement.plan import CellPlan, CentralPlan, NodePoolPlan, PlannedClass
from runfleet.spec.classes import RunnerClass
from runfleet.spec.roles import Scope, StoreKind


@dataclass(frozen=True)
class StoreHandle:
    """A store that exists, as identities and jobs refer to it.

    Attributes:
        kind: The kind of store.
        scope: Local to the cell, or central.
        bucket: Name of its bucket; ``None`` without one.
        bucket_id: Cloud-wide id of the bucket (ARN, self link, resource id, CRN).
        repository: Address that images are pushed to; ``None`` without one.
        repository_id: Cloud-wide id of the repository.
        stream: Name of the stream that takes records (telemetry).
        stream_id: Cloud-wide id of the stream.
        key_id: Cloud-wide id of the key that encrypts it.
        extra: What else this cloud needs to grant access, by name.
    """

    kind: StoreKind
    scope: Scope
    bucket: pulumi.Output[str] | None = None
    bucket_id: pulumi.Output[str] | None = None
    repository: pulumi.Output[str] | None = None
    repository_id: pulumi.Output[str] | None = None
    stream: pulumi.Output[str] | None = None
    stream_id: pulumi.Output[str] | None = None
    key_id: pulumi.Output[str] | None = None
    extra: Mapping[str, pulumi.Output[str]] = field(
        default_factory=dict[str, pulumi.Output[str]]
    )

    def exported(self) -> dict[str, Any]:
        """Return the handle as a stack output; :meth:`imported` reads it back."""
        values: dict[str, Any] = {"kind": str(self.kind), "scope": str(self.scope)}
        for name in _HANDLE_FIELDS:
            value = getattr(self, name)
            if value is not None:
                values[name] = value
        if self.extra:
            values["extra"] = dict(self.extra)
        return values

    @staticmethod
    def imported(
        kind: StoreKind, scope: Scope, exported: pulumi.Output[Any]
    ) -> StoreHandle:
        """Return the handle of a store that another stack exports.

        Fields that the other stack did not export become ``None`` inside the
        output; whoever uses one of them must know that the store has it.
        """

        def part(name: str) -> pulumi.Output[str]:
            return exported.apply(lambda value: _text(value, name))

        def more(name: str) -> pulumi.Output[str]:
            return exported.apply(lambda value: _text(value, "extra", name))

        return StoreHandle(
            kind,
            scope,
            **{name: part(name) for name in _HANDLE_FIELDS if _has(kind, name)},
            extra=_Extra(more),
        )


_HANDLE_FIELDS = (
    "bucket",
    "bucket_id",
    "repository",
    "repository_id",
    "stream",
    "stream_id",
    "key_id",
)


def _text(value: Any, *names: str) -> str:
    """Return a text inside nested mappings, or an empty one."""
    for name in names:
        value = cast("Mapping[str, Any]", value or {}).get(name)
    return str(value or "")


def _has(kind: StoreKind, name: str) -> bool:
    """Say whether stores of a kind have a field: buckets, repositories, streams."""
    if name.startswith("repository"):
        return kind in (StoreKind.REGISTRY, StoreKind.SHARED)
    if name.startswith("stream"):
        return kind is StoreKind.TELEMETRY
    return name == "key_id" or kind is not StoreKind.REGISTRY


class _Extra(Mapping[str, pulumi.Output[str]]):
    """The extra values of an imported handle, read when they are asked for."""

    def __init__(self, read: Any) -> None:
        self._read = read

    def __getitem__(self, key: str) -> pulumi.Output[str]:
        return self._read(key)

    def __iter__(self) -> Any:
        return iter(())

    def __len__(self) -> int:
        return 0


class Network(Protocol):
    """A private network over two or three zones.

    Obligations: nodes get private addresses only; nothing can connect in from the
    internet; the default rules that the cloud makes are emptied; flow logs are on;
    the cloud's own services are reached privately where it has private endpoints.
    """

    network_id: pulumi.Output[str]
    node_subnet_ids: pulumi.Output[Sequence[str]]
    service_ranges: Sequence[str]
    """Ranges that hold nothing but private endpoints of the cloud's own services,
    which job pods with an identity may connect to; empty when there are none."""
    api_ranges: Sequence[str]
    """Ranges that hold nothing but the cluster's API server, which runner pods may
    connect to; empty when it cannot be told apart from the rest of the network."""


class Cluster(Protocol):
    """A private Kubernetes cluster with encrypted secrets and audit logs.

    Obligations: the API is not open to the internet; access is by named entries;
    the network plugin really enforces NetworkPolicy; a small tainted group of nodes
    carries system pods; credentials for deployments are short-lived and never in
    state.
    """

    cluster_name: pulumi.Output[str]
    endpoint: pulumi.Output[str]
    kubeconfig: pulumi.Output[str]
    kubernetes: pulumi.ProviderResource
    ready: Sequence[pulumi.Resource]
    """What must exist before anything is put on the cluster."""


class NodePool(Protocol):
    """Machines of one shape: private, disks encrypted, credentials out of reach.

    Obligations: the labels and taints of its plan; the required labels on every
    machine and disk that the autoscaler creates later.
    """

    pool_name: pulumi.Output[str]


class Autoscaler(Protocol):
    """What starts and stops machines, with a least-privilege identity of its own.

    Obligations: node claims are destroyed before it is.
    """

    ready: Sequence[pulumi.Resource]


class RunnerIdentity(Protocol):
    """The cloud identity of one runner class, made only for classes with grants.

    Obligations: bound to exactly one namespace and service account; permissions
    generated from grants only, without wildcard actions; credentials last at most
    one hour.
    """

    identity_id: pulumi.Output[str]
    service_account_annotations: Mapping[str, pulumi.Input[str]]
    pod_labels: Mapping[str, pulumi.Input[str]]
    endpoints: Sequence[str]
    """Link-local addresses of the workload-identity endpoint, as ``ip:port``."""


class Stores(Protocol):
    """The stores of one scope: encrypted, never public, TLS only, protected."""

    handles: Mapping[StoreKind, StoreHandle]


class Budget(Protocol):
    """The budget of a funder, with alerts."""

    budget_id: pulumi.Output[str]


@dataclass(frozen=True)
class SecretsIdentity:
    """The identity of External Secrets.

    Attributes:
        annotations: Annotations of its service account.
        ready: What must exist before its pods start.
    """

    annotations: Mapping[str, pulumi.Input[str]] = field(
        default_factory=dict[str, pulumi.Input[str]]
    )
    ready: Sequence[pulumi.Resource] = ()


@dataclass(frozen=True)
class StackSettings:
    """The settings of a stack: ``Pulumi.<stack>.yaml``, already read.

    Attributes:
        deploy_role: Identity that the deployment assumes; empty for the ambient one.
        values: All settings of the namespace ``runfleet``, by name.
    """

    deploy_role: str = ""
    values: Mapping[str, str] = field(default_factory=dict[str, str])


class Floor(Protocol):
    """One cloud: how each room is made from a plan.

    Every method makes one component named ``name``; ``options`` carry the parent
    and the explicit cloud provider that :meth:`provider` made.
    """

    def provider(
        self,
        name: str,
        plan: CellPlan | CentralPlan,
        settings: StackSettings,
        region: str | None = None,
    ) -> pulumi.ProviderResource:
        """Make the explicit provider for the plan's account and region."""
        ...

    def network(
        self, name: str, plan: CellPlan, options: pulumi.ResourceOptions
    ) -> Network:
        """Make the private network of a cell."""
        ...

    def cluster(
        self,
        name: str,
        plan: CellPlan,
        network: Network,
        settings: StackSettings,
        options: pulumi.ResourceOptions,
    ) -> Cluster:
        """Make the cluster of a cell and the Kubernetes provider for it."""
        ...

    def autoscaler(
        self,
        name: str,
        plan: CellPlan,
        network: Network,
        cluster: Cluster,
        options: pulumi.ResourceOptions,
    ) -> Autoscaler:
        """Make what starts and stops machines."""
        ...

    def node_pool(
        self,
        name: str,
        plan: CellPlan,
        pool: NodePoolPlan,
        network: Network,
        cluster: Cluster,
        autoscaler: Autoscaler,
        options: pulumi.ResourceOptions,
    ) -> NodePool:
        """Make the node pool of one machine shape."""
        ...

    def stores(
        self,
        name: str,
        plan: CellPlan | CentralPlan,
        options: pulumi.ResourceOptions,
    ) -> Stores:
        """Make the stores of the plan: local ones of a cell, or the central ones."""
        ...

    def runner_identity(
        self,
        name: str,
        plan: CellPlan,
        planned: PlannedClass,
        cluster: Cluster,
        local: Mapping[StoreKind, StoreHandle],
        central: Mapping[StoreKind, StoreHandle],
        options: pulumi.ResourceOptions,
    ) -> RunnerIdentity:
        """Make the identity of a class with grants."""
        ...

    def federated_identity(
        self,
        name: str,
        plan: CentralPlan,
        runner_class: RunnerClass,
        central: Mapping[StoreKind, StoreHandle],
        options: pulumi.ResourceOptions,
    ) -> pulumi.Output[str]:
        """Make the GitHub OIDC identity of a class that runs outside this cloud.

        It gets the class's central grants, for jobs of the class's GitHub
        environment only, and returns the identity's id.
        """
        ...

    def promoter(
        self,
        name: str,
        plan: CentralPlan,
        central: Mapping[StoreKind, StoreHandle],
        options: pulumi.ResourceOptions,
    ) -> pulumi.Output[str]:
        """Make the identity that moves local results to the central stores."""
        ...

    def budget(
        self,
        name: str,
        plan: CellPlan | CentralPlan,
        options: pulumi.ResourceOptions,
    ) -> Budget | None:
        """Make the funder's budget; ``None`` when the fleet has none for it."""
        ...

    def secrets_reader(
        self,
        name: str,
        plan: CellPlan,
        cluster: Cluster,
        namespace: str,
        service_account: str,
        options: pulumi.ResourceOptions,
    ) -> SecretsIdentity:
        """Make the identity of External Secrets: it may read the Apps' keys only."""
        ...

    def account(
        self,
        name: str,
        plan: CentralPlan,
        settings: StackSettings,
        options: pulumi.ResourceOptions,
    ) -> Mapping[str, pulumi.Output[str]]:
        """Make what the central account needs once, beside stores and identities.

        Such as the deployment's own identity and what lets a bill be split by
        label. Returns ids by name, for the stack's outputs.
        """
        ...

    def app_secret(self, plan: CellPlan, planned: PlannedClass) -> AppSecretSource:
        """Say where the GitHub App's key of a class is kept."""
        ...


@dataclass(frozen=True)
class AppSecretSource:
    """Where External Secrets fetches a GitHub App's key from.

    Attributes:
        store_kind: The provider section of a ``SecretStore``, such as ``aws``.
        settings: The content of that section.
        key: Name of the secret in the cloud's secret manager.
    """

    store_kind: str
    settings: Mapping[str, Any]
    key: str


@runtime_checkable
class WithReservations(Protocol):
    """A floor whose node pools can draw from reserved capacity."""

    def reservation_ids(self, pool: NodePoolPlan) -> Sequence[str]:
        """Return the provider's ids of the reservations of a node pool."""
        ...


@runtime_checkable
class WithSpot(Protocol):
    """A floor whose node pools can use capacity that may be taken back."""

    def spot_interruption_notice(self) -> int:
        """Return the notice before a machine is taken back, in seconds."""
        ...
