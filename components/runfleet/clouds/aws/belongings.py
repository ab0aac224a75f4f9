"""What belongs to a fleet in one account, as ARN patterns.

The deploy role may change only these. Things with names are told by how their names
begin (:meth:`runfleet.clouds.aws.names.NameRule.globs`); things that get an id when
they are made, as all of EC2 and keys do, only by their type, account and region.
Pure data: no Pulumi.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from runfleet.clouds.aws import names
from runfleet.clouds.aws.names import NameRule, Place, partition
from runfleet.placement.plan import CENTRAL_STACK
from runfleet.spec.cells import Provider
from runfleet.spec.fleet import Fleet

NETWORK_KINDS = (
    "elastic-ip",
    "instance",
    "internet-gateway",
    "launch-template",
    "natgateway",
    "network-interface",
    "route-table",
    "security-group",
    "security-group-rule",
    "subnet",
    "volume",
    "vpc",
    "vpc-endpoint",
    "vpc-flow-log",
)
"""Types of EC2 resources that the stacks make, or let machines be made of."""

MACHINE_KINDS = (
    "instance",
    "launch-template",
    "network-interface",
    "security-group",
    "subnet",
    "volume",
)
"""Types of EC2 resources that a machine is started from."""

CLUSTER_KINDS = ("nodegroup", "addon", "access-entry", "podidentityassociation")
"""Types of EKS resources inside a cluster."""


@dataclass(frozen=True)
class Belongings:
    """What belongs to a fleet in one account.

    Attributes:
        partition: AWS partition of the account.
        account: Account id.
        regions: Regions of the stacks, sorted.
        project: Name of the project.
        sites: Names of the places with stores: ``central`` and the cells.
        clusters: Names of the cells' clusters.
        admins: ARNs of the roles that administer the clusters.
    """

    partition: str
    account: str
    regions: tuple[str, ...]
    project: str
    sites: tuple[str, ...]
    clusters: tuple[str, ...]
    admins: tuple[str, ...] = ()

    @classmethod
    def of(cls, fleet: Fleet, account: str) -> Belongings:
        """Return what belongs to a fleet in an account.

        Raises:
            ValueError: Nothing does.
        """
        cells = [
            cell
            for cell in fleet.cells.values()
            if cell.provider is Provider.AWS and cell.account == account
        ]
        regions = {cell.region for cell in cells}
        sites = [cell.name for cell in cells]
        central = fleet.central
        if (
            central is not None
            and central.provider is Provider.AWS
            and central.account == account
        ):
            regions.add(central.region)
            sites.insert(0, CENTRAL_STACK)
        if not regions:
            raise ValueError(f"nothing of the fleet is in the account {account}")
        clusters: dict[str, None] = {}
        admins: dict[str, None] = {}
        for cell in cells:
            clusters[cell.cluster] = None
            if cell.adopt_cluster:
                clusters[cell.adopt_cluster] = None
            place = Place(cell.cluster, account, cell.region, {})
            admins |= dict.fromkeys(place.role_arn(admin) for admin in cell.admins)
        return cls(
            partition=partition(min(regions)),
            account=account,
            regions=tuple(sorted(regions)),
            project=fleet.project,
            sites=tuple(sites),
            clusters=tuple(clusters),
            admins=tuple(admins),
        )

    def arn(self, service: str, resource: str, region: str = "*") -> str:
        """Return the ARN of something in the account, in any region by default."""
        return f"arn:{self.partition}:{service}:{region}:{self.account}:{resource}"

    def in_regions(self) -> Mapping[str, Mapping[str, list[str]]]:
        """Return the condition that a request is for one of the regions."""
        return {"StringEquals": {"aws:RequestedRegion": list(self.regions)}}

    def network(self) -> list[str]:
        """Return what EC2 has of the fleet, and prefix lists that rules name."""
        found = [self.arn("ec2", f"{kind}/*") for kind in NETWORK_KINDS]
        return [*found, f"arn:{self.partition}:ec2:*:*:prefix-list/*"]

    def machines(self) -> list[str]:
        """Return what a machine is started from: images may be of any account."""
        found = [self.arn("ec2", f"{kind}/*") for kind in MACHINE_KINDS]
        free = f"arn:{self.partition}:ec2:*:"
        return [*found, f"{free}:image/*", f"{free}:snapshot/*"]

    def in_clusters(self) -> list[str]:
        """Return the clusters and what is in them."""
        found: list[str] = []
        for cluster in self.clusters:
            found.append(self.arn("eks", f"cluster/{cluster}"))
            found += [self.arn("eks", f"{kind}/{cluster}/*") for kind in CLUSTER_KINDS]
        return found

    def the_clusters(self) -> list[str]:
        """Return the clusters alone."""
        return [self.arn("eks", f"cluster/{cluster}") for cluster in self.clusters]

    def access_entries(self) -> list[str]:
        """Return the clusters' access entries."""
        return [self.arn("eks", f"access-entry/{name}/*") for name in self.clusters]

    def scaling_groups(self) -> list[str]:
        """Return the Auto Scaling groups of base nodes, as EKS names them."""
        glob = f"eks-{names.EKS_NODE_GROUP.encode('base')}-*"
        groups = f"autoScalingGroup:*:autoScalingGroupName/{glob}"
        return [self.arn("autoscaling", groups)]

    def iam(self, kind: str, rule: NameRule = names.IAM_ROLE) -> list[str]:
        """Return the roles, policies or instance profiles of the fleet.

        Args:
            kind: ``role``, ``policy`` or ``instance-profile``.
            rule: How they are named.
        """
        found: list[str] = []
        for first in (self.project, *self.clusters):
            found += [self.arn("iam", f"{kind}/{g}", "") for g in rule.globs(first)]
        return found

    def buckets(self) -> list[str]:
        """Return the buckets of the stores."""
        return [
            f"arn:{self.partition}:s3:::{glob}"
            for site in self.sites
            for glob in names.S3_BUCKET.globs(self.project, site)
        ]

    def repositories(self) -> list[str]:
        """Return the image repositories of the stores."""
        return self._named("ecr", "repository/", names.ECR_REPOSITORY)

    def streams(self) -> list[str]:
        """Return the delivery streams of the stores."""
        return self._named("firehose", "deliverystream/", names.FIREHOSE)

    def keys(self) -> list[str]:
        """Return all keys of the account: their ids say nothing."""
        return [self.arn("kms", "key/*")]

    def aliases(self) -> list[str]:
        """Return the names of the fleet's keys."""
        return self._named("kms", "", names.KMS_ALIAS, *self.clusters)

    def logs(self) -> list[str]:
        """Return the log groups of networks and control planes."""
        found: list[str] = []
        for cluster in self.clusters:
            own = names.LOG_GROUP.globs("runfleet", cluster)
            for glob in (*own, f"/aws/eks/{cluster}/*"):
                found.append(self.arn("logs", f"log-group:{glob}"))
        return found

    def interruptions(self) -> list[str]:
        """Return the queues and event rules of the autoscalers."""
        found: list[str] = []
        for cluster in self.clusters:
            queues = names.SQS_QUEUE.globs(cluster)
            rules = names.EVENT_RULE.globs(cluster)
            found += [self.arn("sqs", glob) for glob in queues]
            found += [self.arn("events", f"rule/{glob}") for glob in rules]
        return found

    def budgets(self) -> list[str]:
        """Return the budgets, which have no region."""
        globs = names.BUDGET.globs(self.project, "budget")
        return [self.arn("budgets", f"budget/{glob}", "") for glob in globs]

    def alerts(self) -> list[str]:
        """Return the topics of the budgets' alerts."""
        globs = names.SNS_TOPIC.globs(self.project, "budget")
        return [self.arn("sns", glob) for glob in globs]

    def _named(self, service: str, kind: str, rule: NameRule, *more: str) -> list[str]:
        return [
            self.arn(service, f"{kind}{glob}")
            for first in (self.project, *more)
            for glob in rule.globs(first)
        ]
