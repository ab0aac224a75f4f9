"""Examples of the rules about IBM Cloud, and of labels there.

No SDK exists for IBM Cloud: resources are written in the wire form that Pulumi's
bridge for Terraform providers expects, and a test holds every property against the
provider's schema.
"""

from __future__ import annotations

import json

from pulumi import CustomResource

from policy_examples.support import LABELS, Example

CLUSTER = "crn:v1:bluemix:public:containers-kubernetes:us-south:a/1:c1::"
KEY = "crn:v1:bluemix:public:kms:us-south:a/1:k1:key:2"
TAGS = [f"{key}:{value}" for key, value in LABELS.items()]
PLAIN = {"vpc": "r006-1", "zone": "us-south-1", "profile": "bx3d-8x40", "keys": ["k"]}


def make(kind: str, at: str = "it", /, **inputs: object) -> CustomResource:
    """Register a resource of IBM Cloud in wire form."""
    title = kind[0].upper() + kind[1:]
    return CustomResource(f"ibm:index/{kind}:{title}", at, inputs)


def policy(kind: str = "iamTrustedProfilePolicy", **inputs: object) -> None:
    make(kind, **{"iamId": "iam-Profile-1", "roles": ["Writer"], **inputs})


def attribute(name: str, value: str) -> dict[str, str]:
    return {"name": name, "operator": "stringEquals", "value": value}


def link(**inputs: object) -> None:
    make(
        "iamTrustedProfileLink",
        profileId="Profile-1",
        crType="IKS_SA",
        link={"crn": CLUSTER, **inputs},
    )


def claims(*conditions: tuple[str, str, str]) -> None:
    make(
        "iamTrustedProfileClaimRule",
        profileId="Profile-1",
        type="Profile-CR",
        crType="IKS_SA",
        conditions=[
            {"claim": claim, "operator": operator, "value": json.dumps(value)}
            for claim, operator, value in conditions
        ],
    )


def template(**inputs: object) -> None:
    make("isInstanceTemplate", **PLAIN, **inputs)


def cluster(**inputs: object) -> CustomResource:
    return make(
        "containerVpcCluster",
        "cluster",
        flavor="bx2.16x64",
        vpcId="r006-1",
        zones=[{"name": "us-south-1", "subnetId": "s1"}],
        **inputs,
    )


def workers(**inputs: object) -> None:
    make(
        "containerVpcWorkerPool",
        cluster="c1",
        flavor="bx2.16x64",
        vpcId="r006-1",
        workerPoolName="runners",
        workerCount=1,
        zones=[{"name": "us-south-1", "subnetId": "s1"}],
        **inputs,
    )


def watched(active: bool | None = True) -> None:
    network = make("isVpc", "vpc", name="fleet")
    inputs: dict[str, object] = {"target": network.id, "storageBucket": "logs"}
    if active is not None:
        inputs["active"] = active
    make("isFlowLog", "log", **inputs)


def settings(mfa: str) -> None:
    cluster()
    make("iamAccountSettings", "settings", mfa=mfa)


def bucket(*tags: str, tagged: bool = True) -> None:
    found = make("cosBucket", "bucket", bucketName="cache", resourceInstanceId=CLUSTER)
    if tagged:
        make("resourceTag", "tags", resourceId=found.id, tags=list(tags))


EXAMPLES: list[Example] = [
    Example("R-IBM-01", "a profile", lambda: make("iamTrustedProfile", name="jobs")),
    Example(
        "R-IBM-01",
        "a key of a service id",
        lambda: make("iamServiceApiKey", name="jobs", iamServiceId="iam-1"),
        ("an API key of a service id",),
    ),
    Example(
        "R-IBM-01",
        "a key of a person",
        lambda: make("iamApiKey", name="mine"),
        ("an API key of a person",),
    ),
    Example(
        "R-IBM-02",
        "one bucket store",
        lambda: policy(
            resourceAttributes=[
                attribute("serviceName", "cloud-object-storage"),
                attribute("serviceInstance", "1234"),
            ]
        ),
    ),
    Example("R-IBM-02", "readers of everything", lambda: policy(roles=["Viewer"])),
    Example(
        "R-IBM-02",
        "manager of one instance",
        lambda: policy(
            roles=["Manager"], resources={"service": "kms", "resourceInstanceId": "1"}
        ),
    ),
    Example(
        "R-IBM-02",
        "writer of everything",
        policy,
        ("Writer of everything in the account",),
    ),
    Example(
        "R-IBM-02",
        "manager of a service",
        lambda: policy(
            roles=["Manager"], resources={"service": "cloud-object-storage"}
        ),
        ("Manager, and the policy names no instance or group",),
    ),
    Example(
        "R-IBM-02",
        "a wildcard is no scope",
        lambda: policy(
            "iamServicePolicy",
            roles=["Administrator"],
            resources={"service": "is", "attributes": {"vpcId": "*"}},
        ),
        ("names no instance or group",),
    ),
    Example(
        "R-IBM-02",
        "account management",
        lambda: policy(roles=["Administrator"], accountManagement=True),
        ("Administrator of all account management services",),
    ),
    Example("R-IBM-03", "a link", lambda: link(namespace="ci-l4", name="runner")),
    Example(
        "R-IBM-03",
        "a link to a namespace",
        lambda: link(namespace="ci-l4"),
        ("name is not set",),
    ),
    Example(
        "R-IBM-03",
        "the default account",
        lambda: link(namespace="ci-l4", name="default"),
        ("every pod of the namespace",),
    ),
    Example(
        "R-IBM-03",
        "exact claims",
        lambda: claims(
            ("crn", "EQUALS", CLUSTER),
            ("namespace", "EQUALS", "ci-l4"),
            ("name", "EQUALS", "runner"),
        ),
    ),
    Example(
        "R-IBM-03",
        "any account of a namespace",
        lambda: claims(("crn", "EQUALS", CLUSTER), ("namespace", "EQUALS", "ci-l4")),
        ("no exact condition on name",),
    ),
    Example(
        "R-IBM-03",
        "an exclusion",
        lambda: claims(("namespace", "NOT_EQUALS", "kube-system")),
        ("no condition demands a value",),
    ),
    Example("R-IBM-04", "off", template),
    Example(
        "R-IBM-04",
        "encrypted, one hop",
        lambda: template(
            metadataService={
                "enabled": True,
                "protocol": "https",
                "responseHopLimit": 1,
            }
        ),
    ),
    Example(
        "R-IBM-04",
        "plain, two hops",
        lambda: template(metadataService={"enabled": True, "responseHopLimit": 2}),
        ("the protocol is http", "the hop limit is 2"),
    ),
    Example(
        "R-IBM-04",
        "the older switch",
        lambda: template(metadataServiceEnabled=True),
        ("the protocol is http",),
    ),
    Example(
        "R-IBM-05",
        "a public gateway",
        lambda: make("isPublicGateway", name="out", vpc="r006-1", zone="us-south-1"),
    ),
    Example(
        "R-IBM-05",
        "a reserved address",
        lambda: make("isFloatingIp", name="kept", zone="us-south-1"),
    ),
    Example(
        "R-IBM-05",
        "an attached address",
        lambda: make("isFloatingIp", name="open", target="0717-1"),
        ("attached to a machine",),
    ),
    Example(
        "R-IBM-06",
        "a range",
        lambda: make(
            "isSecurityGroupRule",
            group="g",
            direction="inbound",
            remote="10.240.0.0/18",
        ),
    ),
    Example(
        "R-IBM-06",
        "outwards",
        lambda: make(
            "isSecurityGroupRule", group="g", direction="outbound", remote="0.0.0.0/0"
        ),
    ),
    Example(
        "R-IBM-06",
        "no remote",
        lambda: make("isSecurityGroupRule", group="g", direction="inbound"),
        ("every source",),
    ),
    Example(
        "R-IBM-06",
        "the world",
        lambda: make(
            "isSecurityGroupRule", group="g", direction="inbound", remote="0.0.0.0/0"
        ),
        ("lets 0.0.0.0/0 in",),
    ),
    Example("R-IBM-07", "private", lambda: cluster(disablePublicServiceEndpoint=True)),
    Example("R-IBM-07", "the default", cluster, ("the public endpoint is on",)),
    Example("R-IBM-08", "the default", lambda: make("isVpc", name="fleet")),
    Example(
        "R-IBM-08",
        "classic access",
        lambda: make("isVpc", name="fleet", classicAccess=True),
        ("classic access is on",),
    ),
    Example("R-IBM-09", "encrypted", lambda: template(bootVolume={"encryption": KEY})),
    Example(
        "R-IBM-09",
        "encrypted workers",
        lambda: workers(kmsInstanceId="k1", crk="2"),
    ),
    Example(
        "R-IBM-09",
        "a template that says nothing",
        lambda: template(
            volumeAttachments=[
                {
                    "name": "data",
                    "deleteVolumeOnInstanceDelete": True,
                    "volumePrototype": {"profile": "general-purpose", "capacity": 100},
                }
            ]
        ),
        ("the boot volume", "a data volume"),
    ),
    Example("R-IBM-09", "workers", workers, ("workers' disks have IBM's key",)),
    Example(
        "R-IBM-09",
        "a volume",
        lambda: make("isVolume", name="v", profile="10iops-tier", zone="us-south-1"),
        ("has IBM's key",),
    ),
    Example("R-IBM-10", "watched", lambda: watched(None)),
    Example(
        "R-IBM-10",
        "not active",
        lambda: watched(False),
        ("not active", "no flow log has it as target"),
    ),
    Example("R-IBM-11", "everybody", lambda: settings("LEVEL3")),
    Example("R-IBM-11", "nobody", lambda: settings("NONE"), ("mfa is NONE",)),
    Example("R-IBM-11", "not said", cluster, ("sets no iamAccountSettings",)),
    Example("R-IBM-11", "set elsewhere", cluster, parameters={"set_elsewhere": True}),
    Example(
        "R-IBM-12",
        "empty",
        lambda: make("isVpc", name="fleet", noSgAclRules=True),
    ),
    Example(
        "R-IBM-12",
        "the default",
        lambda: make("isVpc", name="fleet"),
        ("default rules of IBM",),
    ),
    Example(
        "R-TAG-01",
        "an IBM network",
        lambda: make("isVpc", name="fleet", tags=TAGS),
    ),
    Example(
        "R-TAG-01",
        "an IBM network with half of them",
        lambda: make("isVpc", name="fleet", tags=[*TAGS[:12], "ci_cost_model"]),
        ("ci_cost_model not set",),
    ),
    Example(
        "R-TAG-01",
        "IBM's workers",
        lambda: workers(labels={}),
        ("ci_project, ci_env",),
    ),
    Example("R-TAG-02", "a tagged bucket", lambda: bucket(*TAGS)),
    Example(
        "R-TAG-02",
        "half of the tags",
        lambda: bucket(*TAGS[1:]),
        ("ci_project not set",),
    ),
    Example(
        "R-TAG-02",
        "no tags",
        lambda: bucket(tagged=False),
        ("ci_project, ci_env",),
    ),
    Example(
        "R-EPH-01",
        "an IBM machine of a class",
        lambda: make("isInstance", name="m", tags=["ci_runner_class:l-s390x-8-16"]),
        ("stands for class l-s390x-8-16",),
    ),
]
