"""What the suite asks each floor about its records, and in which words.

A promise (:mod:`contract.promises`) is said once for all floors; how a cloud shows in
its resources whether it is kept is said once per floor, by a :class:`Facts`. Facts
report what stands in the record and judge nothing. They are written from the cloud's
documentation and its provider's schema, never from the code that makes the
resources: a fact that asks the code under test would agree with any mistake in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from runfleet.rehearsal.record import Record, ResourceRecord


@dataclass(frozen=True)
class PodIdentity:
    """A cloud identity that pods of one service account can take on.

    Attributes:
        identity: The cloud's id of it.
        namespace: Namespace of the pods; ``*`` when any namespace will do.
        service_account: Their service account; ``*`` when any will do.
        lifetime: How long its credentials last at most, in seconds.
    """

    identity: str
    namespace: str
    service_account: str
    lifetime: int


@dataclass(frozen=True)
class Nodes:
    """Machines of one kind that the stack starts, or lets an autoscaler start.

    Attributes:
        urn: The resource that says how they are made.
        pool: Name of the plan's node pool; empty for the base nodes.
        disks_encrypted: Whether every disk is encrypted.
        private: Whether they get no public address and no address of a network that
            the internet can open connections to.
        metadata_closed: Whether pods cannot get the node's own credentials from the
            cloud's metadata service, even without any network policy.
        labels: The labels of each kind of thing that is made later, by its name, such
            as ``machine`` and ``disk``.
    """

    urn: str
    pool: str
    disks_encrypted: bool
    private: bool
    metadata_closed: bool
    labels: Mapping[str, Mapping[str, str]]


@dataclass(frozen=True)
class Cluster:
    """The cluster of a cell.

    Attributes:
        urn: The resource.
        public_ranges: Ranges outside the network that its API is open to.
        secrets_encrypted: Whether its secrets are encrypted with a key of the fleet.
        audited: Whether it keeps an audit log.
        policy_enforced: Whether its network plugin enforces NetworkPolicy.
    """

    urn: str
    public_ranges: tuple[str, ...]
    secrets_encrypted: bool
    audited: bool
    policy_enforced: bool


@dataclass(frozen=True)
class Labelled:
    """Labels that stand on a resource.

    Attributes:
        urn: The resource.
        where: Path of the labels in its inputs.
        labels: They themselves, decoded to the fleet's keys and values.
    """

    urn: str
    where: str
    labels: Mapping[str, str]


class Facts(Protocol):
    """What a floor's records say.

    Attributes:
        unlabelled: Types that carry no labels, with the reason. A type may end in
            ``*``. Everything else in a record must carry all of them.
        stateful: Types that hold what cannot be made again: data, keys, addresses
            that others rely on, the cluster.
        credential_addresses: Addresses at which something on this cloud hands out
            credentials or secrets of the node.
        identity_endpoints: The workload-identity endpoints as ``address:port``; empty
            where pods get their credentials from a public address.
        autoscaler_is_the_clouds: Why no resource of the stack must outlive the node
            pools; empty when the autoscaler is the stack's.
        managed_permissions: Permission sets of the cloud's own that identities may
            have, with the reason; they are never given to jobs.
    """

    unlabelled: Mapping[str, str]
    stateful: frozenset[str]
    credential_addresses: frozenset[str]
    identity_endpoints: frozenset[str]
    autoscaler_is_the_clouds: str
    managed_permissions: Mapping[str, str]

    def identities(self, record: Record) -> Sequence[PodIdentity]:
        """Return every cloud identity that a pod of the cell can take on.

        One entry for each pair of namespace and service account that can, system
        pods included, and read from where the cloud decides it (a binding, a trust
        policy), not from where Kubernetes asks for it (an annotation).
        """
        ...

    def nodes(self, record: Record) -> Sequence[Nodes]:
        """Return all machines of the cell, base nodes included."""
        ...

    def cluster(self, record: Record) -> Cluster:
        """Return the cell's cluster."""
        ...

    def takes_labels(self, resource_type: str) -> bool | None:
        """Say whether the provider's schema has labels for a type.

        ``None`` when the schema cannot tell.
        """
        ...

    def labels(self, resource: ResourceRecord) -> Labelled:
        """Return the labels on a resource of the cloud; empty without any."""
        ...

    def public(self, record: Record) -> Sequence[str]:
        """Say what anyone on the internet may reach or use, one sentence each.

        At least: stores and repositories, ingress rules, load balancers, subnets
        that hand out public addresses, policies with everyone as principal.
        """
        ...

    def wildcards(self, record: Record) -> Sequence[str]:
        """Say which permissions are wider than a list, one sentence each.

        At least: actions with a wildcard, roles of the cloud such as owner, editor or
        contributor, data permissions of jobs on every resource. ``Deny`` is no
        permission. The cloud's own permission sets are :meth:`managed`.
        """
        ...

    def managed(self, record: Record) -> Iterable[tuple[str, str]]:
        """Return (identity, permission set) for each set of the cloud's own."""
        ...

    def node_pools(self, record: Record) -> Sequence[ResourceRecord]:
        """Return the resources whose deletion ends the machines of a node pool."""
        ...

    def autoscaler(self, record: Record) -> Sequence[ResourceRecord]:
        """Return the resources that must outlive the node pools.

        What stops the machines, and what it needs to do so: its workload, identity
        and permissions.
        """
        ...
