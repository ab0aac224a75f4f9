"""Derived ids, resource names and outputs of the Google Cloud provider (pulumi-gcp 10).

Programs build policies from these values, so each has the form that Google gives it.
Which value is a resource's id is the provider's choice (the "import" sections of its
documentation in the Terraform registry, google provider 7); resource names are those
of the services' REST references.

Project and region come from the resource's own inputs, then from its explicit
provider. Nothing said means the project ``runfleet-rehearsal`` in ``us-central1``. A
project's *number* is derived from its id: only Google knows it, which is why programs
take it from the fleet file.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from runfleet.rehearsal.providers.subject import Derived, Subject

DEFAULT_PROJECT = "runfleet-rehearsal"
"""Project when neither resource nor provider names one."""

DEFAULT_REGION = "us-central1"
"""Region when neither resource nor provider names one."""

_COMPUTE = "https://www.googleapis.com/compute/v1"
_CONTAINER = "https://container.googleapis.com/v1"
_HOSTS = "abcdef0123456789"


def derive(subject: Subject) -> Derived:
    """Derive id and computed outputs of one Google Cloud resource."""
    found = _Gcp(subject, *location(subject.inputs, subject.provider))
    _, _, rest = subject.type.partition(":")
    module, _, _ = rest.partition(":")
    rule = _RULES.get(module)
    if rule is not None:
        derived = rule(found)
    elif module.lower().endswith("iammember"):
        derived = _member(found)
    else:
        derived = _other(found, module.rpartition("/")[2])
    return Derived(subject.read_id or derived.id, derived.outputs)


def location(inputs: Mapping[str, Any], provider: Mapping[str, Any]) -> tuple[str, str]:
    """Return (project, region) of a resource from its inputs and its provider's."""
    project = inputs.get("project") or provider.get("project") or DEFAULT_PROJECT
    region = inputs.get("region") or provider.get("region") or DEFAULT_REGION
    return str(project), str(region)


def project_number(project: str) -> str:
    """Return the number that a rehearsal gives a project: twelve digits of its id."""
    digest = int(hashlib.sha256(project.encode()).hexdigest(), 16)
    return str(digest % (9 * 10**11) + 10**11)


def invoke(token: str, args: Mapping[str, Any], provider: Mapping[str, Any]) -> Any:
    """Answer the functions whose result follows from the provider's settings."""
    project, region = location(args, provider)
    if token == "gcp:organizations/getClientConfig:getClientConfig":
        where = f"projects/{project}/regions/{region}/zones/"
        return {"id": where, "project": project, "region": region, "zone": ""}
    return None


@dataclass(frozen=True)
class _Gcp:
    """A resource with the project and region it lives in."""

    subject: Subject
    project: str
    region: str

    @property
    def number(self) -> str:
        return project_number(self.project)

    def name(self, key: str = "name") -> str:
        return self.subject.physical_name(key)

    def text(self, key: str, default: str = "") -> str:
        return self.subject.text(key, default)

    @property
    def place(self) -> str:
        """Project and location, as most resource names begin."""
        location = self.text("location", self.region)
        return f"projects/{self.project}/locations/{location}"


def _compute(collection: str, regional: bool = False) -> Callable[[_Gcp], Derived]:
    def rule(found: _Gcp) -> Derived:
        name = found.name()
        where = f"regions/{found.region}" if regional else "global"
        id_ = found.subject.read_id or (
            f"projects/{found.project}/{where}/{collection}/{name}"
        )
        outputs = {
            "name": id_.rpartition("/")[2],
            "project": found.project,
            "selfLink": f"{_COMPUTE}/{id_}",
            "creationTimestamp": "2026-01-01T00:00:00.000-08:00",
        }
        if regional:
            outputs["region"] = found.region
        return Derived(id_, outputs)

    return rule


def _router_nat(found: _Gcp) -> Derived:
    name = found.name()
    parts = (found.project, found.region, found.text("router"), name)
    return Derived("/".join(parts), {"name": name, "project": found.project})


def _record_set(found: _Gcp) -> Derived:
    zone = f"projects/{found.project}/managedZones/{found.text('managedZone')}"
    return Derived(f"{zone}/rrsets/{found.text('name')}/{found.text('type')}", {})


def _managed_zone(found: _Gcp) -> Derived:
    name = found.name()
    number = int(found.subject.digits(18))
    return Derived(
        f"projects/{found.project}/managedZones/{name}",
        {"name": name, "managedZoneId": number, "project": found.project},
    )


def _key_ring(found: _Gcp) -> Derived:
    name = found.name()
    return Derived(f"{found.place}/keyRings/{name}", {"name": name})


def _crypto_key(found: _Gcp) -> Derived:
    name = found.name()
    return Derived(f"{found.text('keyRing')}/cryptoKeys/{name}", {"name": name})


def _service_account(found: _Gcp) -> Derived:
    account = found.text("accountId", found.subject.name)
    email = f"{account}@{found.project}.iam.gserviceaccount.com"
    id_ = f"projects/{found.project}/serviceAccounts/{email}"
    return Derived(
        id_,
        {
            "name": id_,
            "email": email,
            "member": f"serviceAccount:{email}",
            "uniqueId": found.subject.digits(21),
            "project": found.project,
        },
    )


_MEMBER_OF = (
    "serviceAccountId",
    "cryptoKeyId",
    "bucket",
    "repository",
    "topic",
    "subscription",
    "secretId",
    "project",
)


def _member(found: _Gcp) -> Derived:
    """Return the id of a binding: resource, role, member and condition's title."""
    resource = next((found.text(key) for key in _MEMBER_OF if found.text(key)), "")
    collections = {
        "repository": f"{found.place}/repositories/",
        "topic": f"projects/{found.project}/topics/",
        "secretId": f"projects/{found.project}/secrets/",
        "bucket": "b/",
    }
    key = next((key for key in _MEMBER_OF if found.text(key)), "")
    if not resource.startswith("projects/"):
        resource = collections.get(key, "") + resource
    parts = [resource, found.text("role"), found.text("member")]
    condition = found.subject.inputs.get("condition")
    if isinstance(condition, Mapping):
        parts.append(str(condition.get("title", "")))  # type: ignore[reportUnknownMemberType]
    outputs = {"etag": _etag(found)}
    return Derived("/".join(parts), outputs)


def _etag(found: _Gcp) -> str:
    return base64.b64encode(bytes.fromhex(found.subject.digest(16, "etag"))).decode()


def _bucket(found: _Gcp) -> Derived:
    name = found.name()
    return Derived(
        name,
        {
            "name": name,
            "url": f"gs://{name}",
            "selfLink": f"https://www.googleapis.com/storage/v1/b/{name}",
            "project": found.project,
            "projectNumber": int(found.number),
        },
    )


def _repository(found: _Gcp) -> Derived:
    name = found.text("repositoryId", found.subject.name)
    place = found.text("location", found.region)
    address = f"{place}-docker.pkg.dev/{found.project}/{name}"
    return Derived(
        f"{found.place}/repositories/{name}",
        {"name": name, "registryUri": address, "project": found.project},
    )


def _named(collection: str) -> Callable[[_Gcp], Derived]:
    def rule(found: _Gcp) -> Derived:
        name = found.name()
        id_ = f"projects/{found.project}/{collection}/{name}"
        return Derived(id_, {"name": name, "project": found.project})

    return rule


def _custom_role(found: _Gcp) -> Derived:
    id_ = f"projects/{found.project}/roles/{found.text('roleId')}"
    return Derived(id_, {"name": id_, "deleted": False, "project": found.project})


_AGENTS: Mapping[str, str] = {
    "artifactregistry.googleapis.com": "gcp-sa-artifactregistry",
    "pubsub.googleapis.com": "gcp-sa-pubsub",
}


def _service_identity(found: _Gcp) -> Derived:
    service = found.text("service")
    home = _AGENTS.get(service, f"gcp-sa-{service.partition('.')[0]}")
    email = f"service-{found.number}@{home}.iam.gserviceaccount.com"
    return Derived(
        f"projects/{found.project}/services/{service}",
        {"email": email, "member": f"serviceAccount:{email}"},
    )


def _cluster(found: _Gcp) -> Derived:
    id_ = found.subject.read_id or f"{found.place}/clusters/{found.name()}"
    host = f"gke-{found.subject.letters(32, _HOSTS, 'host')}"
    place = found.text("location", found.region)
    authority = base64.b64encode(f"certificate authority of {id_}".encode()).decode()
    address = int(found.subject.digest(4, "address"), 16) % 250 + 2
    # 192.0.2.0/24 is set aside for documentation (RFC 5737): nobody's address.
    endpoint = f"192.0.2.{address}"
    given = found.subject.inputs
    auth = given.get("masterAuth")
    control = _mapping(given.get("controlPlaneEndpointsConfig"))
    dns = _mapping(control.get("dnsEndpointConfig"))
    name = f"{host}-{found.number}.{place}.gke.goog"
    return Derived(
        id_,
        {
            "name": id_.rpartition("/")[2],
            "endpoint": endpoint,
            "selfLink": f"{_CONTAINER}/{id_}",
            "masterAuth": {**_mapping(auth), "clusterCaCertificate": authority},
            "controlPlaneEndpointsConfig": {
                **control,
                "dnsEndpointConfig": {**dns, "endpoint": name},
            },
            "labelFingerprint": found.subject.digest(8, "labels"),
            "project": found.project,
        },
    )


def _node_pool(found: _Gcp) -> Derived:
    name, cluster = found.name(), found.text("cluster").rpartition("/")[2]
    return Derived(
        f"{found.place}/clusters/{cluster}/nodePools/{name}",
        {"name": name, "operation": "", "project": found.project},
    )


def _budget(found: _Gcp) -> Derived:
    account = found.text("billingAccount")
    id_ = f"billingAccounts/{account}/budgets/{found.subject.uuid()}"
    return Derived(id_, {"name": id_.rpartition("/")[2]})


def _workload_pool(found: _Gcp) -> Derived:
    tail = (
        f"locations/global/workloadIdentityPools/{found.text('workloadIdentityPoolId')}"
    )
    return Derived(
        f"projects/{found.project}/{tail}",
        {"name": f"projects/{found.number}/{tail}", "state": "ACTIVE"},
    )


def _workload_provider(found: _Gcp) -> Derived:
    pool = found.text("workloadIdentityPoolId")
    provider = found.text("workloadIdentityPoolProviderId")
    tail = f"locations/global/workloadIdentityPools/{pool}/providers/{provider}"
    return Derived(
        f"projects/{found.project}/{tail}",
        {"name": f"projects/{found.number}/{tail}", "state": "ACTIVE"},
    )


def _notification_channel(found: _Gcp) -> Derived:
    id_ = f"projects/{found.project}/notificationChannels/{found.subject.digits(19)}"
    return Derived(id_, {"name": id_, "verificationStatus": ""})


def _organisation_policy(found: _Gcp) -> Derived:
    return Derived(found.text("name"), {"etag": _etag(found)})


def _other(found: _Gcp, kind: str) -> Derived:
    name = found.name()
    outputs = {"name": name, "project": found.project}
    return Derived(f"projects/{found.project}/{kind}s/{name}", outputs)


def _mapping(value: Any) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        return {}
    return {str(key): item for key, item in value.items()}  # type: ignore[reportUnknownVariableType, reportUnknownArgumentType]


_RULES: Mapping[str, Callable[[_Gcp], Derived]] = {
    "artifactregistry/repository": _repository,
    "billing/budget": _budget,
    "compute/firewall": _compute("firewalls"),
    "compute/network": _compute("networks"),
    "compute/route": _compute("routes"),
    "compute/router": _compute("routers", regional=True),
    "compute/routerNat": _router_nat,
    "compute/subnetwork": _compute("subnetworks", regional=True),
    "container/cluster": _cluster,
    "container/nodePool": _node_pool,
    "dns/managedZone": _managed_zone,
    "dns/recordSet": _record_set,
    "iam/workloadIdentityPool": _workload_pool,
    "iam/workloadIdentityPoolProvider": _workload_provider,
    "kms/cryptoKey": _crypto_key,
    "kms/keyRing": _key_ring,
    "monitoring/notificationChannel": _notification_channel,
    "orgpolicy/policy": _organisation_policy,
    "projects/iAMCustomRole": _custom_role,
    "projects/serviceIdentity": _service_identity,
    "pubsub/subscription": _named("subscriptions"),
    "pubsub/topic": _named("topics"),
    "serviceaccount/account": _service_account,
    "storage/bucket": _bucket,
}
