"""The AWS floor's facts, from AWS's documentation and the provider's schema.

Sources: EKS user guide ("Learn how EKS Pod Identity grants pods access", "Restrict
access to the instance profile", "Limit Pod traffic with Kubernetes network policies",
"Control network access to the API server"); EC2 user guide ("Configure the Instance
Metadata Service options"); VPC user guide ("Route tables"); Karpenter documentation
("NodeClasses"); IAM user guide (policy grammar, AWS managed policies).
"""

from __future__ import annotations

import importlib
import inspect
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from contract.facts import Cluster, Labelled, Nodes, PodIdentity
from contract.fleets import contract_fleet
from contract.floors import Break, FloorCase
from contract.records import change, drop, only
from runfleet.rehearsal.record import Record, ResourceRecord

ROLE = "aws:iam/role:Role"
ROLE_POLICY = "aws:iam/rolePolicy:RolePolicy"
POLICY = "aws:iam/policy:Policy"
ATTACHMENT = "aws:iam/rolePolicyAttachment:RolePolicyAttachment"
ASSOCIATION = "aws:eks/podIdentityAssociation:PodIdentityAssociation"
ADDON = "aws:eks/addon:Addon"
CLUSTER = "aws:eks/cluster:Cluster"
NODE_GROUP = "aws:eks/nodeGroup:NodeGroup"
LAUNCH_TEMPLATE = "aws:ec2/launchTemplate:LaunchTemplate"
NODE_CLASS = "kubernetes:karpenter.k8s.aws/v1:EC2NodeClass"
NODE_POOL = "kubernetes:karpenter.sh/v1:NodePool"
RELEASE = "kubernetes:helm.sh/v3:Release"
SUBNET = "aws:ec2/subnet:Subnet"
ROUTE_TABLE = "aws:ec2/routeTable:RouteTable"
ROUTE_ASSOCIATION = "aws:ec2/routeTableAssociation:RouteTableAssociation"
BUCKET = "aws:s3/bucket:Bucket"
BUCKET_BLOCK = "aws:s3/bucketPublicAccessBlock:BucketPublicAccessBlock"
REPOSITORY = "aws:ecr/repository:Repository"
INGRESS = "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule"

RESOURCE_POLICIES = {
    "aws:s3/bucketPolicy:BucketPolicy": "policy",
    "aws:ecr/repositoryPolicy:RepositoryPolicy": "policy",
    "aws:sqs/queuePolicy:QueuePolicy": "policy",
    "aws:kms/key:Key": "policy",
    "aws:sns/topicPolicy:TopicPolicy": "policy",
    ROLE: "assumeRolePolicy",
}
"""Where a policy says who may use a resource."""

WITHOUT_RESOURCE = frozenset({"ecr:GetAuthorizationToken"})
"""Actions of jobs that take no resource (service authorization reference of ECR)."""

NO_TAGS = "the provider's schema has no tags for it"


class AwsFacts:
    """What AWS records say."""

    unlabelled: Mapping[str, str] = {
        "aws:autoscaling/tag:Tag": "is itself a label of the group it stands on",
        "aws:cloudwatch/eventTarget:EventTarget": NO_TAGS,
        "aws:ebs/encryptionByDefault:EncryptionByDefault": "a setting of the account",
        "aws:ec2/instanceMetadataDefaults:InstanceMetadataDefaults": "a setting of "
        "the account",
        "aws:ec2/routeTableAssociation:RouteTableAssociation": NO_TAGS,
        "aws:ecr/lifecyclePolicy:LifecyclePolicy": NO_TAGS,
        "aws:ecr/pullThroughCacheRule:PullThroughCacheRule": NO_TAGS,
        "aws:ecr/repositoryCreationTemplate:RepositoryCreationTemplate": "costs "
        "nothing; labels what it makes through resourceTags",
        "aws:ecr/repositoryPolicy:RepositoryPolicy": NO_TAGS,
        "aws:eks/accessPolicyAssociation:AccessPolicyAssociation": NO_TAGS,
        "aws:iam/rolePolicy:RolePolicy": NO_TAGS,
        "aws:iam/rolePolicyAttachment:RolePolicyAttachment": NO_TAGS,
        "aws:kms/alias:Alias": NO_TAGS,
        "aws:s3/bucketLifecycleConfiguration:BucketLifecycleConfiguration": NO_TAGS,
        "aws:s3/bucketObjectLockConfiguration:BucketObjectLockConfiguration": NO_TAGS,
        "aws:s3/bucketOwnershipControls:BucketOwnershipControls": NO_TAGS,
        "aws:s3/bucketPolicy:BucketPolicy": NO_TAGS,
        "aws:s3/bucketPublicAccessBlock:BucketPublicAccessBlock": NO_TAGS,
        "aws:s3/bucketServerSideEncryptionConfiguration:"
        "BucketServerSideEncryptionConfiguration": NO_TAGS,
        "aws:s3/bucketVersioning:BucketVersioning": NO_TAGS,
        "aws:sqs/queuePolicy:QueuePolicy": NO_TAGS,
    }
    stateful = frozenset(
        {
            CLUSTER,
            "aws:ec2/vpc:Vpc",
            SUBNET,
            BUCKET,
            REPOSITORY,
            "aws:kms/key:Key",
            "aws:kinesis/firehoseDeliveryStream:FirehoseDeliveryStream",
            "aws:cloudwatch/logGroup:LogGroup",
        }
    )
    credential_addresses = frozenset(
        {"169.254.169.254", "fd00:ec2::254", "169.254.170.2", "169.254.170.23",
         "fd00:ec2::23"}
    )  # fmt: skip
    identity_endpoints = frozenset({"169.254.170.23:80", "fd00:ec2::23:80"})
    autoscaler_is_the_clouds = ""
    managed_permissions: Mapping[str, str] = {
        "AmazonEKSClusterPolicy": "what EKS's control plane needs in any account",
        "AmazonEKS_CNI_Policy": "the network plugin's, on its own service account",
        "AmazonEBSCSIDriverPolicyV2": "the volume driver's, on its own service account",
        "AmazonEKSWorkerNodeMinimalPolicy": "what a node needs to join its cluster",
        "AmazonEC2ContainerRegistryPullOnly": "nodes pull images, and push none",
    }

    def identities(self, record: Record) -> Sequence[PodIdentity]:
        """Read the associations; an add-on's own association is one too.

        A role whose trust policy lets Pod Identity's service in without naming the
        namespace and service account would be open to other associations, so it
        counts as one of any namespace.
        """
        roles = {role.outputs["arn"]: role for role in record.by_type(ROLE)}
        made = [
            (a.inputs["roleArn"], a.inputs["namespace"], a.inputs["serviceAccount"])
            for a in record.by_type(ASSOCIATION)
        ]
        made += [
            (a["roleArn"], "kube-system", a["serviceAccount"])
            for addon in record.by_type(ADDON)
            for a in addon.inputs.get("podIdentityAssociations", [])
        ]
        found = {
            PodIdentity(arn, namespace, account, _lifetime(roles[arn]))
            for arn, namespace, account in made
        }
        for arn, role in roles.items():
            for namespace, account in _trusted_pods(role):
                found.add(PodIdentity(arn, namespace, account, _lifetime(role)))
        return sorted(found, key=lambda i: (i.identity, i.namespace, i.service_account))

    def nodes(self, record: Record) -> Sequence[Nodes]:
        """Read the launch templates of node groups, and Karpenter's node classes."""
        templates = {t.id: t for t in record.by_type(LAUNCH_TEMPLATE)}
        found: list[Nodes] = []
        for group in record.by_type(NODE_GROUP):
            made = templates[group.inputs["launchTemplate"]["id"]]
            interfaces = made.inputs["networkInterfaces"]
            found.append(
                Nodes(
                    made.urn,
                    "",
                    _encrypted(made.inputs["blockDeviceMappings"]),
                    _private(record, group.inputs["subnetIds"])
                    and all(_is(i["associatePublicIpAddress"], False)
                            for i in interfaces),
                    _closed(made.inputs.get("metadataOptions", {})),
                    {
                        s["resourceType"]: s["tags"]
                        for s in made.inputs["tagSpecifications"]
                    },
                )
            )  # fmt: skip
        classes = {c.inputs["metadata"]["name"]: c for c in record.by_type(NODE_CLASS)}
        for pool in record.by_type(NODE_POOL):
            template = pool.inputs["spec"]["template"]
            made = classes[template["spec"]["nodeClassRef"]["name"]]
            spec = made.inputs["spec"]
            subnets = [term.get("id", "") for term in spec["subnetSelectorTerms"]]
            found.append(
                Nodes(
                    made.urn,
                    pool.inputs["metadata"]["name"],
                    _encrypted(spec.get("blockDeviceMappings", [])),
                    _private(record, subnets)
                    and _is(spec.get("associatePublicIPAddress"), False),
                    _closed(spec.get("metadataOptions", {})),
                    {
                        "machine and disk": spec.get("tags", {}),
                        "node": template["metadata"]["labels"],
                    },
                )
            )
        return found

    def cluster(self, record: Record) -> Cluster:
        """Read the cluster and the settings of its network plugin.

        The VPC CNI enforces NetworkPolicy with ``enableNetworkPolicy`` only.
        """
        eks = only(record, CLUSTER)
        reach = eks.inputs["vpcConfig"]
        ranges = reach.get("publicAccessCidrs", ["0.0.0.0/0"])
        plugin = [a for a in record.by_type(ADDON)
                  if a.inputs["addonName"] == "vpc-cni"]  # fmt: skip
        settings = [
            json.loads(a.inputs.get("configurationValues", "{}")) for a in plugin
        ]
        encryption = eks.inputs.get("encryptionConfig", {})
        return Cluster(
            eks.urn,
            tuple(ranges) if reach.get("endpointPublicAccess", True) else (),
            "secrets" in encryption.get("resources", [])
            and bool(encryption["provider"]["keyArn"]),
            "audit" in eks.inputs.get("enabledClusterLogTypes", []),
            [s.get("enableNetworkPolicy") for s in settings] == ["true"],
        )

    def takes_labels(self, resource_type: str) -> bool | None:
        """Ask the provider's SDK, which is made from its schema."""
        if not resource_type.startswith("aws:"):
            return None
        module, _, name = resource_type.removeprefix("aws:").rpartition(":")
        package = importlib.import_module(f"pulumi_aws.{module.split('/')[0]}")
        made = getattr(package, name)
        return "tags" in inspect.signature(made._internal_init).parameters

    def labels(self, resource: ResourceRecord) -> Labelled:
        """Return the tags; on AWS they are the labels as they stand."""
        return Labelled(resource.urn, "tags", resource.inputs.get("tags") or {})

    def public(self, record: Record) -> Sequence[str]:
        """Look at subnets, groups, buckets, repositories and resource policies."""
        return [
            *_public_networks(record),
            *_public_buckets(record),
            *_public_policies(record),
        ]

    def wildcards(self, record: Record) -> Sequence[str]:
        """Look at every identity policy, and at what resource policies give away."""
        found: list[str] = []
        jobs = _job_roles(self, record)
        for owner, statement, is_job in _identity_statements(record, jobs):
            for action in _list(statement.get("Action", [])):
                if "*" in action or "?" in action:
                    found.append(f"{owner} allows {action}")
                elif (
                    is_job
                    and action not in WITHOUT_RESOURCE
                    and "*" in _list(statement.get("Resource", []))
                ):
                    found.append(f"{owner} allows {action} on every resource")
            found += [
                f"{owner} allows all but a list"
                for key in ("NotAction", "NotResource")
                if key in statement
            ]
        for owner, statement in _resource_statements(record):
            found += [
                f"{owner} allows {action}"
                for action in _list(statement.get("Action", []))
                if "*" in action and not _own_account(statement, record)
            ]
        return found

    def managed(self, record: Record) -> Iterable[tuple[str, str]]:
        """Return the attachments of AWS's own policies, and inline references."""
        for attachment in record.by_type(ATTACHMENT):
            arn = attachment.inputs["policyArn"]
            if arn.split(":")[4] == "aws":
                yield attachment.inputs["role"], arn.rpartition("/")[2]
        for role in record.by_type(ROLE):
            for arn in role.inputs.get("managedPolicyArns", []):
                yield role.inputs["name"], arn.rpartition("/")[2]

    def node_pools(self, record: Record) -> Sequence[ResourceRecord]:
        """Karpenter ends the machines of a NodePool when it is deleted."""
        return (*record.by_type(NODE_POOL), *record.by_type(NODE_CLASS))

    def autoscaler(self, record: Record) -> Sequence[ResourceRecord]:
        """Return Karpenter's release, its association, role and permissions."""
        release = next(
            r for r in record.by_type(RELEASE) if r.inputs["name"] == "karpenter"
        )
        association = next(
            a for a in record.by_type(ASSOCIATION)
            if a.inputs["serviceAccount"] == "karpenter"
        )  # fmt: skip
        role = next(
            r for r in record.by_type(ROLE)
            if r.outputs["arn"] == association.inputs["roleArn"]
        )  # fmt: skip
        policies = [
            p for p in record.by_type(ROLE_POLICY)
            if p.inputs["role"] == role.inputs["name"]
        ]  # fmt: skip
        return (release, association, role, *policies)


def _lifetime(role: ResourceRecord) -> int:
    return int(role.inputs.get("maxSessionDuration", 3600))


def _trusted_pods(role: ResourceRecord) -> Iterator[tuple[str, str]]:
    """Yield the pods that a trust policy lets in: by session tags, or any."""
    for statement in _statements(role.inputs["assumeRolePolicy"]):
        principal = statement.get("Principal", {})
        services = _list(principal.get("Service", [])) if principal != "*" else []
        if "pods.eks.amazonaws.com" not in services:
            continue
        wanted = statement.get("Condition", {}).get("StringEquals", {})
        spaces = _list(wanted.get("aws:RequestTag/kubernetes-namespace", "*"))
        accounts = _list(wanted.get("aws:RequestTag/kubernetes-service-account", "*"))
        yield from ((space, account) for space in spaces for account in accounts)


def _encrypted(mappings: Sequence[Mapping[str, Any]]) -> bool:
    """Say whether there are disks and all are encrypted with a named key."""
    disks = [mapping["ebs"] for mapping in mappings]
    return bool(disks) and all(
        _is(d.get("encrypted"), True) and (d.get("kmsKeyId") or d.get("kmsKeyID"))
        for d in disks
    )


def _closed(options: Mapping[str, Any]) -> bool:
    """Say whether pods on a network of their own cannot get the node's credentials.

    The answer to a request for a session token ends after one hop, which is the node
    itself, and nothing is answered without a token.
    """
    return (
        options.get("httpTokens") == "required"
        and options.get("httpPutResponseHopLimit") == 1
    )


def _private(record: Record, subnets: Sequence[str]) -> bool:
    """Say whether no subnet hands out public addresses or routes to a gateway."""
    known = {subnet.id: subnet for subnet in record.by_type(SUBNET)}
    tables = {table.id: table for table in record.by_type(ROUTE_TABLE)}
    route = {
        a.inputs["subnetId"]: tables[a.inputs["routeTableId"]]
        for a in record.by_type(ROUTE_ASSOCIATION)
    }
    return bool(subnets) and all(
        subnet in known
        and not known[subnet].inputs.get("mapPublicIpOnLaunch", False)
        and subnet in route
        and not any("gatewayId" in r for r in route[subnet].inputs.get("routes", []))
        for subnet in subnets
    )


def _is(value: Any, wanted: bool) -> bool:
    """Compare a truth value that the provider may write as text."""
    return value is wanted or value == str(wanted).lower()


def _public_networks(record: Record) -> Iterator[str]:
    for subnet in record.by_type(SUBNET):
        if subnet.inputs.get("mapPublicIpOnLaunch", False):
            yield f"{subnet.name} hands out public addresses"
    for rule in record.by_type(INGRESS):
        for key in ("cidrIpv4", "cidrIpv6"):
            if str(rule.inputs.get(key, "")).endswith("/0"):
                yield f"{rule.name} lets anyone in"
    for resource in record.resources:
        if resource.type.startswith(("aws:lb/", "aws:alb/", "aws:elb/")):
            yield f"{resource.name} is a load balancer"
        if resource.type == "kubernetes:core/v1:Service" and resource.inputs.get(
            "spec", {}
        ).get("type") in ("LoadBalancer", "NodePort"):
            yield f"{resource.name} is a service that takes traffic from outside"


def _public_buckets(record: Record) -> Iterator[str]:
    blocked = {
        block.inputs["bucket"]
        for block in record.by_type(BUCKET_BLOCK)
        if all(
            block.inputs.get(key) is True
            for key in (
                "blockPublicAcls",
                "blockPublicPolicy",
                "ignorePublicAcls",
                "restrictPublicBuckets",
            )
        )
    }
    for bucket in record.by_type(BUCKET):
        if bucket.outputs["bucket"] not in blocked:
            yield f"{bucket.name} does not block public access"
    for resource in record.resources:
        if resource.type.startswith("aws:ecrpublic/"):
            yield f"{resource.name} is a public repository"


def _public_policies(record: Record) -> Iterator[str]:
    for owner, statement in _resource_statements(record):
        principal = statement.get("Principal")
        everyone = principal == "*" or (
            isinstance(principal, Mapping)
            and any("*" in _list(value) for value in principal.values())
        )
        if everyone:
            yield f"{owner} lets everyone in"


def _job_roles(facts: AwsFacts, record: Record) -> set[str]:
    arns = {
        i.identity for i in facts.identities(record) if i.namespace.startswith("j-")
    }
    return {
        role.inputs["name"]
        for role in record.by_type(ROLE)
        if role.outputs["arn"] in arns
    }


def _identity_statements(
    record: Record, jobs: set[str]
) -> Iterator[tuple[str, Mapping[str, Any], bool]]:
    """Yield (name, statement, of a job) of every permission of every identity."""
    for policy in record.by_type(ROLE_POLICY):
        for statement in _statements(policy.inputs["policy"]):
            yield policy.name, statement, policy.inputs["role"] in jobs
    for policy in record.by_type(POLICY):
        for statement in _statements(policy.inputs["policy"]):
            yield policy.name, statement, False


def _resource_statements(record: Record) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for kind, key in RESOURCE_POLICIES.items():
        for resource in record.by_type(kind):
            if text := resource.inputs.get(key):
                for statement in _statements(text):
                    yield resource.name, statement


def _own_account(statement: Mapping[str, Any], record: Record) -> bool:
    """Say whether a statement only hands over to IAM of the resource's own account."""
    accounts = {role.outputs["arn"].split(":")[4] for role in record.by_type(ROLE)}
    roots = {f"arn:aws:iam::{account}:root" for account in accounts}
    principal = statement.get("Principal")
    return isinstance(principal, Mapping) and set(principal) == {"AWS"} and set(
        _list(principal["AWS"])
    ) <= roots  # fmt: skip


def _statements(text: str) -> list[Mapping[str, Any]]:
    """Return the statements of a policy that allow something."""
    return [s for s in _list(json.loads(text)["Statement"]) if s["Effect"] == "Allow"]


def _list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple)) else [value]


def _edit_statement(key: str, **changes: Any) -> Any:
    """Return an edit of the first statement of a policy in some inputs."""

    def edit(inputs: dict[str, Any]) -> None:
        document = json.loads(inputs[key])
        document["Statement"][0] |= changes
        inputs[key] = json.dumps(document)

    return edit


def _set(*path: str | int, value: Any) -> Any:
    """Return an edit that sets a value inside some inputs."""

    def edit(inputs: Any) -> None:
        for step in path[:-1]:
            inputs = inputs[step]
        inputs[path[-1]] = value

    return edit


def _swap_subnet(record: Record) -> Record:
    """Put the nodes of a pool into a subnet with a route to the internet."""
    public = next(s for s in record.by_type(SUBNET) if "public" in s.name)
    return change(
        record,
        NODE_CLASS,
        _set("spec", "subnetSelectorTerms", value=[{"id": public.id}]),
    )


def _forget_autoscaler(record: Record) -> Record:
    """Make a node class that the autoscaler may be gone before."""
    release = next(
        r for r in record.by_type(RELEASE) if r.inputs["name"] == "karpenter"
    )
    return replace(
        record,
        resources=tuple(
            replace(r, dependencies=tuple(
                d for d in r.dependencies if d != release.urn))
            for r in record.resources
        ),
    )  # fmt: skip


BREAKS: Mapping[str, Break] = {
    "an identity for each class with grants": lambda record: drop(
        record, ASSOCIATION, "aws-identity-untrusted-association", also=ROLE
    ),
    "no identity without grants": lambda record: change(
        record,
        ASSOCIATION,
        _set("namespace", value="j-plain--aws"),
        "aws-identity-untrusted-association",
    ),
    "credentials last at most one hour": lambda record: change(
        record,
        ROLE,
        _set("maxSessionDuration", value=7200),
        "aws-identity-untrusted-role",
    ),
    "encrypted disks": lambda record: change(
        record,
        NODE_CLASS,
        _set("spec", "blockDeviceMappings", 0, "ebs", "encrypted", value=False),
    ),
    "private nodes": _swap_subnet,
    "node credentials closed": lambda record: change(
        record,
        NODE_CLASS,
        _set("spec", "metadataOptions", "httpPutResponseHopLimit", value=2),
    ),
    "labels on what is made later": lambda record: change(
        record, NODE_CLASS, lambda inputs: inputs["spec"]["tags"].pop("ci_funder")
    ),
    "private API": lambda record: change(
        record, CLUSTER, _set("vpcConfig", "endpointPublicAccess", value=True)
    ),
    "encrypted secrets": lambda record: change(
        record, CLUSTER, _set("encryptionConfig", "resources", value=[])
    ),
    "audit log": lambda record: change(
        record, CLUSTER, _set("enabledClusterLogTypes", value=["api"])
    ),
    "network policy enforced": lambda record: change(
        record,
        ADDON,
        _set("configurationValues", value='{"enableNetworkPolicy": "false"}'),
        "aws-cluster-addon-vpc-cni",
    ),
    "labels everywhere": lambda record: change(
        record, "aws:sqs/queue:Queue", lambda inputs: inputs["tags"].pop("ci_owner")
    ),
    "nothing public": lambda record: change(
        record, BUCKET_BLOCK, _set("restrictPublicBuckets", value=False)
    ),
    "no wildcard": lambda record: change(
        record,
        ROLE_POLICY,
        _edit_statement("policy", Action="s3:Get*"),
        "aws-identity-untrusted-policy",
    ),
    "only known permission sets": lambda record: change(
        record,
        ATTACHMENT,
        _set("policyArn", value="arn:aws:iam::aws:policy/AdministratorAccess"),
    ),
    "access equals grants": lambda record: change(
        record,
        ROLE_POLICY,
        _edit_statement("policy", Resource="*"),
        "aws-identity-untrusted-policy",
    ),
    "destroy order": _forget_autoscaler,
}

_CELL = """\
provider: aws
account: "111122223333"
region: us-east-1
zones: [us-east-1a, us-east-1b]
cluster: demo-cell
network: {cidr: 10.12.0.0/16, services: 172.20.0.0/16}
base_nodes: {machine: m7i.4xlarge}
"""

_POOLS = """\
cpu:
  provider: aws
  arch: amd64
  machines:
    - {machine: c7i.12xlarge, disk: 600GiB}
    - {machine: c7i.12xlarge, disk: 600GiB, release: true}
gpu:
  provider: aws
  arch: amd64
  gpu: true
  machines: [{machine: g6.12xlarge, disk: 600GiB}]
"""


def _case(name: str, central: str) -> FloorCase:
    return FloorCase(
        name=f"aws-{name}",
        provider="aws",
        cell="aws",
        fleet=contract_fleet("aws", _CELL, _POOLS, central),
        facts=AwsFacts(),
        breaks=BREAKS,
    )


CASES = [
    _case(
        "central-in-another-account",
        '{provider: aws, account: "444455556666", region: us-west-2, '
        "funder: foundation}",
    ),
    _case(
        "central-in-the-same-account",
        '{provider: aws, account: "111122223333", region: us-east-1, '
        "funder: foundation}",
    ),
]
