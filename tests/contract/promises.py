"""The promises that every floor keeps, each said once.

A check returns what is broken, one sentence each, so that an empty list is a kept
promise. Some checks read a floor's :class:`~contract.facts.Facts`, others only what
all floors have in common: Kubernetes objects, and Pulumi's own members of a record.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

from contract.fleets import GRANTED, MAY, RELEASE
from contract.floors import Break, FloorCase
from contract.records import Rehearsed, change, depends_on, swap
from runfleet.placement import PlannedClass
from runfleet.rehearsal.record import Record, ResourceRecord
from runfleet.review.access import access_matrix
from runfleet.spec.labels import KEYS, check
from runners.reachability import egress_allowed, ingress_allowed

NAMESPACE = "kubernetes:core/v1:Namespace"
SERVICE_ACCOUNT = "kubernetes:core/v1:ServiceAccount"
NETWORK_POLICY = "kubernetes:networking.k8s.io/v1:NetworkPolicy"
SCALE_SET = "kubernetes:actions.github.com/v1alpha1:AutoscalingRunnerSet"
HELM_RELEASE = "kubernetes:helm.sh/v3:Release"
SYSTEM = {"runfleet/part": "system"}

METADATA = (
    "169.254.169.254",
    "169.254.169.253",
    "169.254.170.2",
    "168.63.129.16",
    "fd00:ec2::254",
    "fe80::a9fe:a9fe",
)
"""Where clouds answer about the machine that asks: the metadata service (AWS, Google
Cloud, Azure, IBM), AWS's resolver and ECS's credentials, Azure's platform endpoint."""

NO_LABELS_ON_ANY_FLOOR = {
    "runfleet:*": "a component, which is no thing of a cloud",
    "pulumi:*": "exists in the state only",
    "github:*": "GitHub's objects take no labels",
    HELM_RELEASE: "a chart's release, which is no object of the cluster",
}
"""Types that carry no labels, whichever the floor, with the reason."""

AT_THE_TOP = "pulumi:providers:"
"""Besides the one component of a stack, only the cloud's provider is a child of the
stack itself: everything in the component uses it."""

Check = Callable[[FloorCase, Rehearsed], Sequence[str]]


@dataclass(frozen=True)
class Promise:
    """One promise.

    Attributes:
        name: What is promised.
        check: Says how it is broken, one sentence each.
        breaks: How to break it in a record of any floor; ``None`` when only a floor
            knows how its resources break it (:attr:`FloorCase.breaks`).
    """

    name: str
    check: Check
    breaks: Break | None = None


def _identity_for_each(case: FloorCase, made: Rehearsed) -> Sequence[str]:
    found = case.facts.identities(made.record)
    wrong: list[str] = []
    owners: dict[str, str] = {}
    for planned in _granted(made):
        own = {
            i.identity
            for i in found
            if (i.namespace, i.service_account)
            == (planned.job_namespace, planned.service_account)
        }
        if len(own) != 1:
            wrong.append(f"{planned.name} has {len(own)} identities")
        for identity in own:
            if owners.setdefault(identity, planned.name) != planned.name:
                wrong.append(f"{planned.name} shares one with {owners[identity]}")
    return wrong


def _none_without(case: FloorCase, made: Rehearsed) -> Sequence[str]:
    allowed = {(p.job_namespace, p.service_account) for p in _granted(made)}
    system = {"kube-system"} | {
        n.inputs["metadata"]["name"]
        for n in made.record.by_type(NAMESPACE)
        if SYSTEM.items() <= n.inputs["metadata"].get("labels", {}).items()
    }
    return [
        f"pods of {i.namespace}/{i.service_account} may be {i.identity}"
        for i in case.facts.identities(made.record)
        if (i.namespace, i.service_account) not in allowed
        and (i.namespace not in system or i.service_account == "*")
    ]


def _short_lived(case: FloorCase, made: Rehearsed) -> Sequence[str]:
    return [
        f"{i.identity} lasts {i.lifetime} seconds"
        for i in case.facts.identities(made.record)
        if not 0 < i.lifetime <= 3600
    ]


def _each_pool(case: FloorCase, made: Rehearsed) -> Sequence[str]:
    found = [nodes.pool for nodes in case.facts.nodes(made.record) if nodes.pool]
    wanted = [pool.name for pool in made.plan.node_pools]
    if sorted(found) != sorted(wanted):
        return [f"there are node pools {sorted(found)}, planned are {sorted(wanted)}"]
    return []


def _nodes(attribute: str, text: str) -> Check:
    def found(case: FloorCase, made: Rehearsed) -> Sequence[str]:
        nodes = case.facts.nodes(made.record)
        assert len(nodes) >= len(made.plan.node_pools) > 0
        return [f"{n.urn} {text}" for n in nodes if not getattr(n, attribute)]

    return found


def _later_labels(case: FloorCase, made: Rehearsed) -> Sequence[str]:
    planned = {pool.name: pool.ci_labels for pool in made.plan.node_pools}
    wrong: list[str] = []
    for nodes in case.facts.nodes(made.record):
        assert nodes.labels, f"{nodes.urn} says no labels of what it makes"
        wanted = planned.get(nodes.pool, made.plan.ci_labels)
        for thing, labels in nodes.labels.items():
            missing = {k: v for k, v in wanted.items() if labels.get(k) != v}
            if missing:
                wrong.append(f"{nodes.urn} makes a {thing} without {missing}")
    return wrong


def _cluster(attribute: str, wanted: object, text: str) -> Check:
    def found(case: FloorCase, made: Rehearsed) -> Sequence[str]:
        value = getattr(case.facts.cluster(made.record), attribute)
        return [] if value == wanted else [f"the cluster {text}: {value}"]

    return found


def _labels_everywhere(case: FloorCase, made: Rehearsed) -> Sequence[str]:
    exempt = {**NO_LABELS_ON_ANY_FLOOR, **case.facts.unlabelled}
    wrong: list[str] = []
    for resource in _all(made):
        if any(fnmatchcase(resource.type, pattern) for pattern in exempt):
            continue
        if resource.type.startswith("kubernetes:"):
            labels = resource.inputs["metadata"].get("labels", {})
        else:
            labels = case.facts.labels(resource).labels
        stack = _stack(resource)
        required = {key: labels[key] for key in KEYS if key in labels}
        wrong += [f"{resource.urn}: {text}" for text in check(required)]
        if labels.get("ci_stack") != stack:
            wrong.append(f"{resource.urn}: ci_stack is {labels.get('ci_stack')}")
    return wrong


def _class_labels(case: FloorCase, made: Rehearsed) -> Sequence[str]:
    """What serves one class says so, on the cluster and in the cloud."""
    wrong: list[str] = []
    for planned in made.plan.classes:
        spaces = {planned.runner_namespace, planned.job_namespace}
        for resource in made.record.resources:
            if not resource.type.startswith("kubernetes:"):
                continue
            meta = resource.inputs.get("metadata", {})
            name = meta.get("name") if resource.type == NAMESPACE else None
            if {meta.get("namespace"), name} & spaces:
                wrong += _differences(resource.urn, meta["labels"], planned)
    for resource in made.record.resources:
        planned = _identity_class(made, resource)
        if planned is None or not resource.custom:
            continue
        if not any(fnmatchcase(resource.type, p) for p in case.facts.unlabelled):
            labels = case.facts.labels(resource).labels
            wrong += _differences(resource.urn, labels, planned)
    return wrong


def _nothing_public(case: FloorCase, made: Rehearsed) -> Sequence[str]:
    return [text for r in made.records.values() for text in case.facts.public(r)]


def _no_wildcard(case: FloorCase, made: Rehearsed) -> Sequence[str]:
    return [text for r in made.records.values() for text in case.facts.wildcards(r)]


def _known_sets(case: FloorCase, made: Rehearsed) -> Sequence[str]:
    known = case.facts.managed_permissions
    assert all(known.values())
    jobs = {
        i.identity
        for i in case.facts.identities(made.record)
        if i.namespace.startswith("j-")
    }
    return [
        f"{identity} has {name}"
        for record in made.records.values()
        for identity, name in case.facts.managed(record)
        if name not in known or identity in jobs
    ]


def _stateful_kept(case: FloorCase, made: Rehearsed) -> Sequence[str]:
    kept = [r for r in _all(made) if r.type in case.facts.stateful]
    assert kept, "nothing in the records holds state"
    return [
        f"{r.urn} is not protected and retained"
        for r in kept
        if not (r.protect and r.retain_on_delete)
    ]


def _explicit_providers(_: FloorCase, made: Rehearsed) -> Sequence[str]:
    wrong: list[str] = []
    for record in made.records.values():
        known = {
            f"{r.urn}::{r.id}"
            for r in record.resources
            if r.type.startswith("pulumi:providers:")
        }
        wrong += [
            f"{r.urn} has no explicit provider"
            for r in record.resources
            if r.custom and not r.type.startswith("pulumi:") and r.provider not in known
        ]
    return wrong


def _names(_: FloorCase, made: Rehearsed) -> Sequence[str]:
    return [
        f"{r.urn} is not called after {_stack(r)}"
        for r in _all(made)
        if r.name != _stack(r) and not r.name.startswith(f"{_stack(r)}-")
        and not r.type.startswith("pulumi:pulumi:")
    ]  # fmt: skip


def _parents(_: FloorCase, made: Rehearsed) -> Sequence[str]:
    wrong: list[str] = []
    for record in made.records.values():
        known = {r.urn: r for r in record.resources}
        for resource in record.resources:
            if resource.type.startswith("pulumi:pulumi:"):
                continue
            parent = known.get(resource.parent)
            if parent is None:
                wrong.append(f"{resource.urn} has no parent")
            elif parent.type == "pulumi:pulumi:Stack":
                if resource.custom and not resource.type.startswith(AT_THE_TOP):
                    wrong.append(f"{resource.urn} is a child of the stack")
            elif parent.custom or not parent.type.startswith("runfleet:"):
                wrong.append(f"{resource.urn} is a child of {parent.urn}")
            elif resource.custom and not resource.name.startswith(f"{parent.name}-"):
                wrong.append(f"{resource.urn} is not called after {parent.name}")
    return wrong


def _credentials_closed(case: FloorCase, made: Rehearsed) -> Sequence[str]:
    endpoints = case.facts.identity_endpoints
    wrong: list[str] = []
    for planned in made.plan.classes:
        job, runner = planned.job_namespace, planned.runner_namespace
        granted = endpoints if planned.name in GRANTED else frozenset[str]()
        for namespace, wanted in ((job, granted), (runner, frozenset[str]())):
            policies = _policies(made.record, namespace)
            open_ = _open(case, policies)
            wrong += [f"pods of {namespace} reach {a}" for a in sorted(open_ - wanted)]
            wrong += [
                f"pods of {namespace} do not reach their identity at {a}"
                for a in sorted(wanted - open_)
            ]
    return wrong


def _nothing_comes_in(_: FloorCase, made: Rehearsed) -> Sequence[str]:
    return [
        f"something may connect to pods of {namespace}"
        for planned in made.plan.classes
        for namespace in (planned.job_namespace, planned.runner_namespace)
        if ingress_allowed(_policies(made.record, namespace))
    ]


def _access(_: FloorCase, made: Rehearsed) -> Sequence[str]:
    matrix = access_matrix(made.fleet, made.records)
    assert {row.runner_class for row in matrix.rows} == set(MAY)
    wrong = [difference.describe() for difference in matrix.differences]
    for name, wanted in MAY.items():
        may = {
            f"{row.verb} {row.store} {row.scope}"
            for row in matrix.rows
            if row.runner_class == name and row.allowed != "none"
        }
        if may != wanted:
            wrong.append(f"{name} may {sorted(may)} and should {sorted(wanted)}")
    return wrong


def _destroy_order(case: FloorCase, made: Rehearsed) -> Sequence[str]:
    pools = case.facts.node_pools(made.record)
    assert len(pools) >= len(made.plan.node_pools)
    needed = case.facts.autoscaler(made.record)
    if case.facts.autoscaler_is_the_clouds:
        assert not needed
    else:
        assert needed
    return [
        f"{keeper.urn} may go before {pool.urn}"
        for pool in pools
        for before in [depends_on(made.record, pool.urn)]
        for keeper in needed
        if keeper.urn not in before
    ]


def _scale_sets_last(_: FloorCase, made: Rehearsed) -> Sequence[str]:
    """Scale sets go before what ends their runners and before their isolation."""
    record = made.record
    (controller,) = [
        r for r in record.by_type(HELM_RELEASE)
        if "gha-runner-scale-set-controller" in r.inputs["chart"]
    ]  # fmt: skip
    wrong: list[str] = []
    for planned in made.plan.classes:
        (found,) = [
            s for s in record.by_type(SCALE_SET)
            if s.inputs["metadata"]["namespace"] == planned.runner_namespace
        ]  # fmt: skip
        guards = [
            p.urn for p in record.by_type(NETWORK_POLICY)
            if p.inputs["metadata"]["namespace"]
            in (planned.runner_namespace, planned.job_namespace)
        ]  # fmt: skip
        before = depends_on(record, found.urn)
        wrong += [
            f"{urn} may go before {found.urn}"
            for urn in (controller.urn, *guards)
            if urn not in before
        ]
    return wrong


def _release_apart(_: FloorCase, made: Rehearsed) -> Sequence[str]:
    """Release classes and the others never select the same machines."""
    wrong: list[str] = []
    for planned in made.plan.classes:
        kept = planned.name in RELEASE
        pools = [p for p in made.plan.node_pools if p.pool.name == planned.pool.name]
        assert any(pool.release is kept for pool in pools), planned.name
        namespace = planned.runner_namespace
        (scale_set,) = [
            s for s in made.record.by_type(SCALE_SET)
            if s.inputs["metadata"]["namespace"] == namespace
        ]  # fmt: skip
        selector = scale_set.inputs["spec"]["template"]["spec"]["nodeSelector"]
        wanted = "release" if kept else "shared"
        if selector.get("ci_trust") != wanted:
            wrong.append(f"runners of {planned.name} select {selector}")
    return wrong


def _nothing_unknown(_: FloorCase, made: Rehearsed) -> Sequence[str]:
    return [
        f"{urn} {path} is not known before the deployment"
        for record in made.records.values()
        for urn, path in record.unknowns()
    ]


def _granted(made: Rehearsed) -> list[PlannedClass]:
    found = [p for p in made.plan.classes if p.name in GRANTED]
    assert {p.name for p in found} == GRANTED
    return found


def _all(made: Rehearsed) -> Iterator[ResourceRecord]:
    for record in made.records.values():
        yield from record.resources


def _stack(resource: ResourceRecord) -> str:
    """Return the stack of a URN: ``urn:pulumi:<stack>::<project>::...``."""
    return resource.urn.split(":")[2]


def _differences(
    urn: str, labels: dict[str, str], planned: PlannedClass
) -> Iterator[str]:
    for key in KEYS:
        if labels.get(key) != planned.ci_labels[key]:
            yield f"{urn}: {key} is {labels.get(key)} for class {planned.name}"


def _identity_class(made: Rehearsed, resource: ResourceRecord) -> PlannedClass | None:
    """Return the class whose identity a resource belongs to."""
    for planned in made.plan.classes:
        if resource.name.startswith(f"{made.cell}-identity-{planned.name}-"):
            return planned
    return None


def _policies(record: Record, namespace: str) -> list[dict[str, object]]:
    return [
        dict(policy.inputs)
        for policy in record.by_type(NETWORK_POLICY)
        if policy.inputs["metadata"]["namespace"] == namespace
    ]


def _open(case: FloorCase, policies: list[dict[str, object]]) -> set[str]:
    """Return ``address:port`` of every credential address that may be reached.

    Asked are the ports that any rule names, and some that a rule without ports would
    open too.
    """
    ports = {1, 80, 443, 988}
    for policy in policies:
        for rule in policy["spec"].get("egress", []):  # type: ignore[attr-defined]
            for port in rule.get("ports", []):
                assert "endPort" not in port, "ranges of ports are not evaluated here"
                ports.add(int(port["port"]))
    addresses = {*METADATA, *case.facts.credential_addresses}
    addresses |= {e.rpartition(":")[0] for e in case.facts.identity_endpoints}
    return {
        f"{address}:{port}"
        for address in addresses
        for port in ports
        if egress_allowed(policies, address, port)
    }


def _opened(address: str) -> Break:
    """Break isolation: let the job pods of a class without grants reach an address."""

    def edit(record: Record) -> Record:
        target = next(
            p for p in record.by_type(NETWORK_POLICY)
            if p.inputs["metadata"]["namespace"].startswith("j-plain")
        )  # fmt: skip
        rule = {
            "to": [{"ipBlock": {"cidr": f"{address}/32"}}],
            "ports": [{"port": 80, "protocol": "TCP"}],
        }
        return change(
            record,
            NETWORK_POLICY,
            lambda inputs: inputs["spec"]["egress"].append(rule),
            target.name,
        )

    return edit


def _closed_policy(record: Record) -> Record:
    """Break isolation: let anything connect to the job pods of a class."""
    target = next(
        p for p in record.by_type(NETWORK_POLICY)
        if p.inputs["metadata"]["namespace"].startswith("j-")
    )  # fmt: skip
    return change(
        record,
        NETWORK_POLICY,
        lambda inputs: inputs["spec"].update(ingress=[{}]),
        target.name,
    )


def _other(kind: str, **members: object) -> Break:
    """Break a member of the first resource of a type, outside its inputs."""

    def edit(record: Record) -> Record:
        found = record.by_type(kind)[0]
        return swap(record, found.urn, replace(found, **members))  # type: ignore[arg-type]

    return edit


def _unprotected(record: Record) -> Record:
    found = next(r for r in record.resources if r.protect and r.retain_on_delete)
    wrong = [r for r in record.resources if r.type == found.type]
    for resource in wrong:
        record = swap(record, resource.urn, replace(resource, protect=False))
    return record


def _unknown_input(record: Record) -> Record:
    from runfleet.rehearsal.values import UNKNOWN

    return change(
        record, NAMESPACE, lambda inputs: inputs["metadata"].update(name=UNKNOWN)
    )


def _wrong_class(record: Record) -> Record:
    return change(
        record,
        SERVICE_ACCOUNT,
        lambda inputs: inputs["metadata"]["labels"].update(ci_vendor="somebody"),
    )


def _release_selector(record: Record) -> Record:
    return change(
        record,
        SCALE_SET,
        lambda inputs: inputs["spec"]["template"]["spec"]["nodeSelector"].update(
            ci_trust="release"
        ),
    )


def _one_pool_less(record: Record) -> Record:
    """Leave out the first node pool of the cell, and all that belongs to it."""
    component = next(r for r in record.resources if r.type.endswith(":NodePool")
                     and r.type.startswith("runfleet:"))  # fmt: skip
    gone = {component.urn, *(r.urn for r in record.children(component.urn))}
    return replace(
        record, resources=tuple(r for r in record.resources if r.urn not in gone)
    )


PROMISES = (
    Promise("an identity for each class with grants", _identity_for_each),
    Promise("no identity without grants", _none_without),
    Promise("credentials last at most one hour", _short_lived),
    Promise("each planned node pool", _each_pool, _one_pool_less),
    Promise("encrypted disks", _nodes("disks_encrypted", "has open disks")),
    Promise("private nodes", _nodes("private", "can be reached")),
    Promise("node credentials closed", _nodes("metadata_closed", "gives them to pods")),
    Promise("labels on what is made later", _later_labels),
    Promise("private API", _cluster("public_ranges", (), "is open to")),
    Promise(
        "encrypted secrets", _cluster("secrets_encrypted", True, "encrypts secrets")
    ),
    Promise("audit log", _cluster("audited", True, "keeps an audit log")),
    Promise(
        "network policy enforced", _cluster("policy_enforced", True, "enforces it")
    ),
    Promise("labels everywhere", _labels_everywhere),
    Promise("labels of the class", _class_labels, _wrong_class),
    Promise("nothing public", _nothing_public),
    Promise("no wildcard", _no_wildcard),
    Promise("only known permission sets", _known_sets),
    Promise("stateful things kept", _stateful_kept, _unprotected),
    Promise("explicit providers", _explicit_providers, _other(NAMESPACE, provider="")),
    Promise("names start with the cell", _names, _other(NAMESPACE, name="other")),
    Promise(
        "children of their component", _parents, _other(NAMESPACE, parent="nobody")
    ),
    Promise(
        "credentials out of reach", _credentials_closed, _opened("169.254.169.254")
    ),
    Promise("nothing connects in", _nothing_comes_in, _closed_policy),
    Promise("access equals grants", _access),
    Promise("destroy order", _destroy_order),
    Promise(
        "scale sets go first", _scale_sets_last, _other(SCALE_SET, dependencies=())
    ),
    Promise("release classes apart", _release_apart, _release_selector),
    Promise("nothing unknown", _nothing_unknown, _unknown_input),
)
"""All promises that can be read from a record; the others are tests of their own."""
