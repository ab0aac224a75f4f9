"""What a record says about access on Google Cloud: bindings, roles, pools, machines.

Allow policies are on resources (IAM documentation, "Allow policies"); the provider
writes them in three forms: ``...IAMMember`` adds one member, ``...IAMBinding`` sets
all members of a role, ``...IAMPolicy`` sets the whole policy. Where two of them speak
of one role on one resource, which of them holds depends on which is applied last, so
what only one of them says is not sure.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, cast


class Resource(Protocol):
    """A resource of a record, as far as it is read here."""

    @property
    def urn(self) -> str:
        """Its URN."""
        ...

    @property
    def type(self) -> str:
        """Its type token."""
        ...

    @property
    def inputs(self) -> Mapping[str, Any]:
        """Its inputs, in wire names."""
        ...

    @property
    def outputs(self) -> Mapping[str, Any]:
        """Its outputs, in wire names."""
        ...


@dataclass(frozen=True)
class Binding:
    """A role for one member on one resource.

    Attributes:
        resource: Resource name, such as ``projects/_/buckets/name``; a project is
            ``projects/<id>``.
        project: Project that the resource is in; empty when not known.
        role: The role.
        member: The member.
        condition: The condition's expression; empty for none.
        owner: URN of the resource that made it.
        sure: Whether nothing else sets the same role on the resource.
    """

    resource: str
    project: str
    role: str
    member: str
    condition: str = ""
    owner: str = ""
    sure: bool = True


@dataclass(frozen=True)
class TokenProvider:
    """A provider of a workload identity pool that takes OIDC tokens.

    Attributes:
        project: Project id.
        pool: Id of the pool.
        provider: Id of the provider.
        issuer: Address of the issuer.
        condition: Which tokens it takes; empty for all.
        mapping: Expressions by attribute.
        audiences: Audiences that it takes; empty for its own resource name.
        disabled: Whether it takes none at all.
    """

    project: str
    pool: str
    provider: str
    issuer: str
    condition: str
    mapping: Mapping[str, str]
    audiences: tuple[str, ...]
    disabled: bool


@dataclass(frozen=True)
class Machines:
    """Machines of a cluster that pods may get credentials of.

    Attributes:
        cluster: Name of the cluster.
        service_account: Address of their service account.
        hidden: Whether GKE's metadata server stands before their credentials.
        owner: URN of the node pool.
    """

    cluster: str
    service_account: str
    hidden: bool
    owner: str


@dataclass
class Inventory:
    """All of it, over the records of one or several projects.

    Attributes:
        bindings: Role bindings.
        roles: Permissions of custom roles by resource name.
        buckets: Project of each bucket, by name.
        accounts: Addresses of service accounts.
        providers: Providers of workload identity pools.
        pools: Workload identity pool of each cluster, by name.
        machines: Machines of clusters.
        numbers: Project numbers by project id, as service agents show them.
        denies: URNs of deny policies, which are not evaluated.
        problems: What cannot be read.
    """

    bindings: list[Binding] = field(default_factory=list[Binding])
    roles: dict[str, frozenset[str]] = field(default_factory=dict[str, frozenset[str]])
    buckets: dict[str, str] = field(default_factory=dict[str, str])
    accounts: set[str] = field(default_factory=set[str])
    providers: list[TokenProvider] = field(default_factory=list[TokenProvider])
    pools: dict[str, str] = field(default_factory=dict[str, str])
    machines: list[Machines] = field(default_factory=list[Machines])
    numbers: dict[str, set[str]] = field(default_factory=dict[str, set[str]])
    denies: list[str] = field(default_factory=list[str])
    problems: list[str] = field(default_factory=list[str])


def read_inventory(
    records: Iterable[tuple[Iterable[Resource], str]],
) -> Inventory:
    """Read records, each with the project that it deploys to."""
    found = Inventory()
    for resources, project in records:
        for resource in resources:
            token = resource.type.removeprefix("gcp:")
            if token != resource.type:
                _read(found, resource, token.partition(":")[0], project)
    _settle(found)
    return found


_AGENT = re.compile(r"serviceAccount:service-(\d+)@[a-z-]+\.iam\.gserviceaccount\.com")

_TARGETS: Mapping[str, tuple[str, str]] = {
    "storage/bucketIAM": ("bucket", "projects/_/buckets/{}"),
    "artifactregistry/repositoryIam": (
        "repository",
        "projects/{project}/locations/{location}/repositories/{}",
    ),
    "pubsub/topicIAM": ("topic", "projects/{project}/topics/{}"),
    "pubsub/subscriptionIAM": ("subscription", "projects/{project}/subscriptions/{}"),
    "secretmanager/secretIam": ("secretId", "projects/{project}/secrets/{}"),
    "serviceaccount/iAM": ("serviceAccountId", "{}"),
    "kms/cryptoKeyIAM": ("cryptoKeyId", "{}"),
    "kms/keyRingIAM": ("keyRingId", "{}"),
    "projects/iAM": ("project", "projects/{}"),
    "folder/iAM": ("folder", "folders/{}"),
    "organizations/iAM": ("orgId", "organizations/{}"),
}
"""Input that names the resource of a binding, and its resource name."""


def _read(found: Inventory, resource: Resource, module: str, project: str) -> None:
    inputs, outputs = resource.inputs, resource.outputs
    stem = re.sub(r"(Member|Binding|Policy)$", "", module)
    form = module.removeprefix(stem)
    if form and stem in _TARGETS:
        _read_binding(found, resource, stem, form, project)
    elif module == "projects/iAMCustomRole":
        home = inputs.get("project") or project
        name = str(outputs.get("name") or f"projects/{home}/roles/{inputs['roleId']}")
        found.roles[name] = frozenset(map(str, inputs.get("permissions") or ()))
    elif module == "storage/bucket":
        name = str(outputs.get("name") or inputs.get("name"))
        found.buckets[name] = str(inputs.get("project") or project)
    elif module == "serviceaccount/account":
        home = inputs.get("project") or project
        email = f"{inputs.get('accountId')}@{home}.iam.gserviceaccount.com"
        found.accounts.add(str(outputs.get("email") or email))
    elif module == "iam/workloadIdentityPoolProvider":
        _read_provider(found, inputs, project)
    elif module == "container/cluster":
        name = str(outputs.get("name") or inputs.get("name"))
        config = cast(
            "Mapping[str, Any]",
            inputs.get("workloadIdentityConfig")
            or outputs.get("workloadIdentityConfig")
            or {},
        )
        found.pools[name] = str(config.get("workloadPool") or "")
    elif module == "container/nodePool":
        _read_machines(found, resource)
    elif module == "iam/denyPolicy":
        found.denies.append(resource.urn)


def _read_binding(
    found: Inventory, resource: Resource, stem: str, form: str, project: str
) -> None:
    inputs = resource.inputs
    key, pattern = _TARGETS[stem]
    value = str(inputs.get(key) or project).removeprefix("b/")
    home = str(inputs.get("project") or project)
    name = value
    if "/" not in value or pattern == "{}":
        name = pattern.format(
            value, project=home, location=str(inputs.get("location") or "-")
        )
    if stem == "storage/bucketIAM":
        home = ""
    elif match := re.match(r"projects/([^/]+)", name):
        home = match[1]
    if form == "Policy":
        wanted = _policy(found, resource)
    else:
        one = inputs.get("member")
        many = cast("list[str]", inputs.get("members") or ([one] if one else []))
        condition = cast("Mapping[str, Any]", inputs.get("condition") or {})
        expression = str(condition.get("expression") or "")
        wanted = [(str(inputs.get("role")), member, expression) for member in many]
    for role, member, expression in wanted:
        found.bindings.append(
            Binding(name, home, role, member, expression, resource.urn)
        )
        agent = _AGENT.fullmatch(member)
        if agent is not None and home:
            found.numbers.setdefault(home, set()).add(agent[1])


def _policy(found: Inventory, resource: Resource) -> list[tuple[str, str, str]]:
    """Return role, member and condition of a whole policy."""
    try:
        document: Any = json.loads(str(resource.inputs.get("policyData") or "{}"))
        return [
            (
                str(binding["role"]),
                str(member),
                str(_section(binding, "condition").get("expression") or ""),
            )
            for binding in document.get("bindings", ())
            for member in binding.get("members", ())
        ]
    except (ValueError, KeyError, TypeError, AttributeError):
        found.problems.append(f"the policy of {resource.urn} cannot be read")
        return []


def _section(value: Any, key: str) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value.get(key) or {})


def _read_provider(found: Inventory, inputs: Mapping[str, Any], project: str) -> None:
    oidc = cast("Mapping[str, Any]", inputs.get("oidc") or {})
    found.providers.append(
        TokenProvider(
            project=str(inputs.get("project") or project),
            pool=str(inputs.get("workloadIdentityPoolId")),
            provider=str(inputs.get("workloadIdentityPoolProviderId")),
            issuer=str(oidc.get("issuerUri") or ""),
            condition=str(inputs.get("attributeCondition") or ""),
            mapping=dict(
                cast("Mapping[str, str]", inputs.get("attributeMapping") or {})
            ),
            audiences=tuple(cast("list[str]", oidc.get("allowedAudiences") or ())),
            disabled=bool(inputs.get("disabled")),
        )
    )


def _read_machines(found: Inventory, resource: Resource) -> None:
    inputs = resource.inputs
    config = cast("Mapping[str, Any]", inputs.get("nodeConfig") or {})
    metadata = cast("Mapping[str, Any]", config.get("workloadMetadataConfig") or {})
    found.machines.append(
        Machines(
            cluster=str(inputs.get("cluster")).rpartition("/")[2],
            service_account=str(config.get("serviceAccount") or "default"),
            hidden=metadata.get("mode") == "GKE_METADATA",
            owner=resource.urn,
        )
    )


def _settle(found: Inventory) -> None:
    """Mark what more than one resource speaks of, and note what Google refuses."""
    whole: set[str] = set()
    roles: dict[tuple[str, str, str], set[str]] = {}
    for binding in found.bindings:
        key = (binding.resource, binding.role, binding.condition)
        module = binding.owner.split("::")[-2].rpartition(":")[2]
        if module.endswith("Policy"):
            whole.add(binding.resource)
        if module.endswith("Binding"):
            roles.setdefault(key, set()).add(binding.owner)
    settled: list[Binding] = []
    for binding in found.bindings:
        key = (binding.resource, binding.role, binding.condition)
        module = binding.owner.split("::")[-2].rpartition(":")[2]
        rivals = roles.get(key, set()) - {binding.owner}
        sure = not rivals and (
            binding.resource not in whole or module.endswith("Policy")
        )
        home = binding.project
        if binding.resource.startswith("projects/_/buckets/"):
            bucket = binding.resource.removeprefix("projects/_/buckets/")
            home = found.buckets.get(bucket, "")
        custom = re.match(r"projects/([^/]+)/roles/", binding.role)
        if custom and home and custom[1] != home:
            found.problems.append(
                f"{binding.owner.rpartition('::')[2]}: the role {binding.role} is of "
                f"another project than {binding.resource}, Google refuses that"
            )
            continue
        settled.append(
            Binding(
                binding.resource,
                home,
                binding.role,
                binding.member,
                binding.condition,
                binding.owner,
                sure,
            )
        )
    found.bindings = settled
