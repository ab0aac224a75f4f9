"""Derived ids, CRNs and outputs of the IBM Cloud provider (IBM-Cloud/ibm 2.5.0).

Programs build policies from these values, so each has the form that IBM Cloud gives it:
CRNs are those of "Cloud Resource Names" (https://cloud.ibm.com/docs/account), and which
value is a resource's id is the Terraform provider's choice (the "import" sections of
its documentation).

Account and region come from the resource's explicit provider; nothing said means
``us-south`` and an account of zeros. Services that are the same everywhere are in the
location ``global``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast

from runfleet.rehearsal.providers.subject import Derived, Subject

DEFAULT_ACCOUNT = "0" * 32
"""Account when the provider names none."""

DEFAULT_REGION = "us-south"
"""Region when the provider names none."""

VPC_REGIONS: Mapping[str, str] = {
    "au-syd": "r026",
    "br-sao": "r042",
    "ca-tor": "r038",
    "eu-de": "r010",
    "eu-es": "r050",
    "eu-gb": "r018",
    "jp-osa": "r034",
    "jp-tok": "r022",
    "us-east": "r014",
    "us-south": "r006",
}
"""What ids of VPC objects start with, by region."""

_CLUSTER_ID = "abcdefghijklmnopqrstuvwxyz0123456789"

_VPC_KINDS: Mapping[str, str] = {
    "isFlowLog": "flow-log-collector",
    "isNetworkAcl": "network-acl",
    "isPublicGateway": "public-gateway",
    "isSecurityGroup": "security-group",
    "isSubnet": "subnet",
    "isVirtualEndpointGateway": "endpoint-gateway",
    "isVpc": "vpc",
}
"""VPC types, with the word for them in CRNs."""


def derive(subject: Subject) -> Derived:
    """Derive id and computed outputs of one IBM Cloud resource."""
    module = subject.type.split(":")[1]
    kind = module.partition("/")[2]
    account = subject.provider.get("ibmcloudAccountId") or DEFAULT_ACCOUNT
    region = subject.provider.get("region") or DEFAULT_REGION
    found = _Ibm(subject, str(account), str(region))
    if kind in _VPC_KINDS:
        derived = _vpc_object(found, _VPC_KINDS[kind])
    else:
        derived = _RULES.get(kind, _other)(found)
    return Derived(subject.read_id or derived.id, derived.outputs)


def invoke(token: str, args: Mapping[str, Any], provider: Mapping[str, Any]) -> Any:
    """Answer no function: only IBM Cloud knows."""
    del token, args, provider


@dataclass(frozen=True)
class _Ibm:
    """A resource with the account and region it lives in."""

    subject: Subject
    account: str
    region: str

    def crn(
        self,
        service: str,
        instance: str = "",
        kind: str = "",
        name: str = "",
        location: str | None = None,
    ) -> str:
        where = self.region if location is None else location
        owner = f"a/{self.account}"
        return (
            f"crn:v1:bluemix:public:{service}:{where}:{owner}:{instance}:{kind}:{name}"
        )

    def text(self, key: str, default: str = "") -> str:
        return self.subject.text(key, default)

    def vpc_id(self, purpose: str = "") -> str:
        prefix = VPC_REGIONS.get(self.region, "r000")
        return f"{prefix}-{self.subject.uuid(purpose)}"


def _vpc_object(found: _Ibm, word: str) -> Derived:
    id_ = found.subject.read_id or found.vpc_id()
    outputs: dict[str, Any] = {
        "name": found.subject.physical_name(),
        "crn": found.crn("is", "", word, id_),
    }
    if word == "vpc":
        outputs |= {
            "defaultNetworkAcl": found.vpc_id("acl"),
            "defaultSecurityGroup": found.vpc_id("security-group"),
            "status": "available",
        }
    return Derived(id_, outputs)


def _prefix(found: _Ibm) -> Derived:
    id_ = found.vpc_id()
    return Derived(f"{found.text('vpc')}/{id_}", {"addressPrefix": id_})


def _rule(found: _Ibm) -> Derived:
    id_ = found.vpc_id()
    return Derived(f"{found.text('group')}.{id_}", {"ruleId": id_})


def _cluster(found: _Ibm) -> Derived:
    id_ = found.subject.read_id or f"c{found.subject.letters(19, _CLUSTER_ID)}"
    where = f"{found.region}.containers.cloud.ibm.com"
    port = 30000 + int(found.subject.digest(8, "port"), 16) % 2768
    private = f"https://c100.private.{where}:{port}"
    return Derived(
        id_,
        {
            "crn": found.crn("containers-kubernetes", id_),
            "masterUrl": private,
            "privateServiceEndpointUrl": private,
            "vpeServiceEndpointUrl": f"https://{id_}.vpe.private.{where}:{port}",
            "state": "normal",
        },
    )


def _worker_pool(found: _Ibm) -> Derived:
    cluster = found.text("cluster")
    id_ = f"{cluster}-{found.subject.digest(7)}"
    return Derived(f"{cluster}/{id_}", {"workerPoolId": id_, "autoscaleEnabled": False})


def _addons(found: _Ibm) -> Derived:
    given = found.subject.inputs.get("addons")
    names = [
        str(cast("Mapping[str, Any]", addon).get("name"))
        for addon in (cast("list[Any]", given) if isinstance(given, list) else [])
    ]
    return Derived(found.text("cluster"), {"managedAddons": sorted(names)})


def _namespace(found: _Ibm) -> Derived:
    name = found.subject.physical_name()
    crn = found.crn("container-registry", "", "namespace", name)
    return Derived(name, {"name": name, "crn": crn, "account": found.account})


def _instance(found: _Ibm) -> Derived:
    guid = found.subject.uuid("guid")
    crn = found.crn(found.text("service"), guid, "", "", found.text("location"))
    return Derived(crn, {"crn": crn, "guid": guid, "status": "active"})


def _bucket(found: _Ibm) -> Derived:
    name = found.text("bucketName")
    instance = found.text("resourceInstanceId").split(":")
    guid = instance[7] if len(instance) > 7 else ""
    crn = found.crn("cloud-object-storage", guid, "bucket", name, "global")
    place = found.text("regionLocation") or found.text("crossRegionLocation")
    ways = {"private": "s3.private", "direct": "s3.direct", "public": "s3"}
    hosts = {
        f"s3Endpoint{way.capitalize()}": f"{host}.{place}.cloud-object-storage."
        "appdomain.cloud"
        for way, host in ways.items()
    }
    endpoint = found.text("endpointType", "public")
    return Derived(f"{crn}:meta:rl:{place}:{endpoint}", {"crn": crn, **hosts})


def _key(found: _Ibm) -> Derived:
    id_ = found.subject.uuid("key")
    instance = found.text("instanceId")
    crn = found.crn("kms", instance, "key", id_)
    return Derived(
        crn, {"crn": crn, "keyId": id_, "instanceCrn": crn.rpartition(":")[0]}
    )


def _profile(found: _Ibm) -> Derived:
    id_ = f"Profile-{found.subject.uuid('profile')}"
    crn = found.crn("iam-identity", "", "profile", id_, "")
    return Derived(id_, {"profileId": id_, "iamId": f"iam-{id_}", "crn": crn})


def _link(found: _Ibm) -> Derived:
    id_ = f"link-{found.subject.uuid('link')}"
    return Derived(f"{found.text('profileId')}/{id_}", {"linkId": id_})


def _claim_rule(found: _Ibm) -> Derived:
    id_ = f"ClaimRule-{found.subject.uuid('rule')}"
    return Derived(f"{found.text('profileId')}/{id_}", {"ruleId": id_})


def _policy(found: _Ibm) -> Derived:
    return Derived(f"{found.text('iamId')}/{found.subject.uuid('policy')}", {})


def _authorization(found: _Ibm) -> Derived:
    return Derived(found.subject.uuid("policy"), {"version": "v1.0"})


def _custom_role(found: _Ibm) -> Derived:
    id_ = f"role-{found.subject.uuid('role')}"
    crn = found.crn("iam-access-management", "", "customRole", found.text("name"), "")
    return Derived(id_, {"crn": crn})


def _tag(found: _Ibm) -> Derived:
    return Derived(found.text("resourceId"), {"accountId": found.account})


def _other(found: _Ibm) -> Derived:
    return Derived(found.subject.uuid(), {})


_RULES: Mapping[str, Callable[[_Ibm], Derived]] = {
    "containerAddons": _addons,
    "containerVpcCluster": _cluster,
    "containerVpcWorkerPool": _worker_pool,
    "cosBucket": _bucket,
    "crNamespace": _namespace,
    "iamAuthorizationPolicy": _authorization,
    "iamCustomRole": _custom_role,
    "iamTrustedProfile": _profile,
    "iamTrustedProfileClaimRule": _claim_rule,
    "iamTrustedProfileLink": _link,
    "iamTrustedProfilePolicy": _policy,
    "isSecurityGroupRule": _rule,
    "isVpcAddressPrefix": _prefix,
    "kmsKey": _key,
    "resourceInstance": _instance,
    "resourceTag": _tag,
}
