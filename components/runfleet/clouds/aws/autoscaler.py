"""Autoscaler: Karpenter, with an identity of its own and a queue of warnings.

Karpenter starts a machine for pods that find no room and gives it back when it is
empty. It runs on the base nodes, because it cannot start the node that it runs on.

Its warnings (spot reclaims, rebalance recommendations, state changes, health events
and the end of capacity blocks) come by EventBridge through a queue that only these
rules of this account may write to, over TLS.

The CRDs are resources here and not the chart's (:mod:`runfleet.clouds.aws.crds`);
node pools depend on :attr:`Autoscaler.ready`, so on a destroy their machines go
first and the controller that stops them goes last.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pulumi
import pulumi_aws as aws
from pulumi_kubernetes.apiextensions.v1 import CustomResourceDefinition
from pulumi_kubernetes.helm.v3 import Release
from pulumi_kubernetes.meta.v1 import ObjectMetaArgs

from runfleet.clouds.aws import base_nodes, crds, roles
from runfleet.clouds.aws.karpenter_policy import ControllerReach, controller_policies
from runfleet.clouds.aws.keys import policy_document
from runfleet.clouds.aws.names import EVENT_RULE, IAM_ROLE, SQS_QUEUE, Place
from runfleet.clouds.aws.settings import AwsSettings
from runfleet.clouds.aws.tags import tags
from runfleet.placement.plan import CellPlan

CHART = "oci://public.ecr.aws/karpenter/karpenter"
"""Where Karpenter publishes its chart."""

CHART_PIN = "karpenter-chart"
"""Pin of the chart's version."""

NAMESPACE = "kube-system"
"""Namespace of the controller; system priority classes are allowed there."""

SERVICE_ACCOUNT = "karpenter"
"""Service account of the controller."""

EVENTS: Mapping[str, tuple[str, str]] = {
    "spot-interruption": ("aws.ec2", "EC2 Spot Instance Interruption Warning"),
    "rebalance": ("aws.ec2", "EC2 Instance Rebalance Recommendation"),
    "state-change": ("aws.ec2", "EC2 Instance State-change Notification"),
    "health": ("aws.health", "AWS Health Event"),
    "reservation-end": (
        "aws.ec2",
        "EC2 Capacity Reservation Instance Interruption Warning",
    ),
}
"""Source and type of each event that Karpenter acts on (Karpenter v1.14 documentation,
"CloudFormation"); the last one came with v1.14, for capacity blocks that end."""

BATCH = "45s"
"""How long pending pods are gathered before machines are chosen: the incumbent's
value, which makes fewer and fuller nodes (pytorch/ci-infra at b1ce4a6,
``osdc/modules/karpenter/helm/values.yaml``)."""

MEMORY_OVERHEAD = 0.06
"""Share of memory that a machine loses to its hypervisor and kernel: the incumbent's
measured worst case is 5.3 %, and the chart's 7.5 % makes jobs that fill a node
impossible to place (the same file)."""


@dataclass(frozen=True)
class AutoscalerArgs:
    """What the autoscaler is made from.

    Attributes:
        cluster: Name of the cluster.
        account: Account id.
        region: Region.
        labels: The required labels.
        endpoint: Address of the cluster's API.
        subnet_ids: Subnets that machines start in.
        node_security_group_id: Security group of every node.
        volumes_key_arn: Key that encrypts the disks.
        kubernetes: Provider of the cluster.
        chart_version: Version of the chart.
        replicas: Copies of the controller.
        reservation_ids: Reserved capacity that machines may draw from.
        after: What must exist before anything is put on the cluster.
    """

    cluster: str
    account: str
    region: str
    labels: Mapping[str, str]
    endpoint: pulumi.Input[str]
    subnet_ids: pulumi.Output[Sequence[str]]
    node_security_group_id: pulumi.Output[str]
    volumes_key_arn: pulumi.Input[str]
    kubernetes: pulumi.ProviderResource
    chart_version: str
    replicas: int = 2
    reservation_ids: Sequence[str] = ()
    after: Sequence[pulumi.Resource] = ()

    @classmethod
    def from_plan(
        cls,
        plan: CellPlan,
        *,
        endpoint: pulumi.Input[str],
        subnet_ids: pulumi.Output[Sequence[str]],
        node_security_group_id: pulumi.Output[str],
        volumes_key_arn: pulumi.Input[str],
        kubernetes: pulumi.ProviderResource,
        after: Sequence[pulumi.Resource],
    ) -> AutoscalerArgs:
        """Take what the autoscaler needs from its plan and the other rooms.

        Args:
            plan: The cell's plan.
            endpoint: Address of the cluster's API.
            subnet_ids: Subnets that machines start in.
            node_security_group_id: Security group of every node.
            volumes_key_arn: Key that encrypts the disks.
            kubernetes: Provider of the cluster.
            after: What must exist before anything is put on the cluster.

        Raises:
            InputError: A setting of the cell is wrong.
        """
        reservations = {
            found.id for pool in plan.node_pools for found in pool.reservations
        }
        return cls(
            cluster=plan.cell.adopt_cluster or plan.cell.cluster,
            account=plan.cell.account,
            region=plan.cell.region,
            labels=plan.ci_labels,
            endpoint=endpoint,
            subnet_ids=subnet_ids,
            node_security_group_id=node_security_group_id,
            volumes_key_arn=volumes_key_arn,
            kubernetes=kubernetes,
            chart_version=plan.pins.value(CHART_PIN),
            replicas=AwsSettings.of(plan.cell).karpenter_replicas,
            reservation_ids=tuple(sorted(reservations)),
            after=tuple(after),
        )


class Autoscaler(pulumi.ComponentResource):
    """Karpenter in a cluster.

    Attributes:
        node_role_name: Name of the role of the machines that it starts.
        node_role_arn: ARN of that role.
        instance_profile_name: Name of the instance profile that carries it.
        queue_name: Name of the queue of interruptions.
        ready: What must exist before a node pool works, and outlive it.
    """

    node_role_name: pulumi.Output[str]
    node_role_arn: pulumi.Output[str]
    instance_profile_name: pulumi.Output[str]
    queue_name: pulumi.Output[str]
    ready: Sequence[pulumi.Resource]

    def __init__(
        self,
        name: str,
        args: AutoscalerArgs,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Install Karpenter.

        Args:
            name: Name of the component; children are called ``<name>-<suffix>``.
            args: What it is made from.
            opts: Options; the explicit provider comes with them.
        """
        super().__init__("runfleet:aws:Autoscaler", name, None, opts)
        self._name = name
        self._args = args
        self._place = Place(args.cluster, args.account, args.region, args.labels)
        node_role, node_policies = roles.node_role(
            f"{name}-node-role", "runner-nodes", self._place, self
        )
        profile = aws.iam.InstanceProfile(
            f"{name}-node-profile",
            name=IAM_ROLE.encode(args.cluster, "runner-nodes"),
            role=node_role.name,
            tags=self._tags("node-profile"),
            opts=self._opts(),
        )
        entry = aws.eks.AccessEntry(
            f"{name}-node-access",
            cluster_name=args.cluster,
            principal_arn=node_role.arn,
            type="EC2_LINUX",
            tags=self._tags("node-access"),
            opts=self._opts(depends_on=list(args.after)),
        )
        queue, events = self._queue()
        role, policies = roles.service_role(
            f"{name}-role",
            "karpenter",
            self._place,
            roles.trusts_pod(self._place, NAMESPACE, SERVICE_ACCOUNT),
            self,
            policies=controller_policies(
                ControllerReach(
                    place=self._place,
                    node_role_arn=node_role.arn,
                    instance_profile_arn=profile.arn,
                    subnet_ids=args.subnet_ids,
                    security_group_id=args.node_security_group_id,
                    reservation_ids=args.reservation_ids,
                    volumes_key_arn=args.volumes_key_arn,
                    queue_arn=queue.arn,
                )
            ),
        )
        identity = aws.eks.PodIdentityAssociation(
            f"{name}-identity",
            cluster_name=args.cluster,
            namespace=NAMESPACE,
            service_account=SERVICE_ACCOUNT,
            role_arn=role.arn,
            tags=self._tags("identity"),
            opts=self._opts(depends_on=list(args.after)),
        )
        kinds = self._kinds()
        before: list[pulumi.Resource] = [*policies, identity, *kinds, *events]
        release = self._release(queue, before)
        self.node_role_name = node_role.name
        self.node_role_arn = node_role.arn
        self.instance_profile_name = profile.name
        self.queue_name = queue.name
        self.ready = (release, *before, profile, entry, *node_policies)
        self.register_outputs(
            {
                "node_role_name": self.node_role_name,
                "node_role_arn": self.node_role_arn,
                "instance_profile_name": self.instance_profile_name,
                "queue_name": self.queue_name,
            }
        )

    def _opts(self, **more: Any) -> pulumi.ResourceOptions:
        return pulumi.ResourceOptions(parent=self, **more)

    def _tags(self, suffix: str) -> dict[str, str]:
        return tags(self._args.labels, Name=f"{self._name}-{suffix}")

    def _queue(self) -> tuple[aws.sqs.Queue, list[pulumi.Resource]]:
        """Make the queue and what fills it."""
        name, args = self._name, self._args
        queue = aws.sqs.Queue(
            f"{name}-interruptions",
            name=SQS_QUEUE.encode(args.cluster, "karpenter"),
            message_retention_seconds=300,
            sqs_managed_sse_enabled=True,
            tags=self._tags("interruptions"),
            opts=self._opts(),
        )
        made: list[pulumi.Resource] = []
        rule_arns: list[pulumi.Output[str]] = []
        for event, (source, detail_type) in EVENTS.items():
            rule = aws.cloudwatch.EventRule(
                f"{name}-event-{event}",
                name=EVENT_RULE.encode(args.cluster, event),
                description=f"Karpenter: {detail_type}",
                event_pattern=json.dumps(
                    {"source": [source], "detail-type": [detail_type]}
                ),
                tags=self._tags(f"event-{event}"),
                opts=self._opts(),
            )
            target = aws.cloudwatch.EventTarget(
                f"{name}-event-{event}-target",
                rule=rule.name,
                target_id="karpenter",
                arn=queue.arn,
                opts=self._opts(),
            )
            rule_arns.append(rule.arn)
            made += [rule, target]
        policy = aws.sqs.QueuePolicy(
            f"{name}-interruptions-policy",
            queue_url=queue.id,
            policy=policy_document(
                [
                    {
                        "Sid": "OwnRules",
                        "Effect": "Allow",
                        "Principal": {"Service": "events.amazonaws.com"},
                        "Action": "sqs:SendMessage",
                        "Resource": queue.arn,
                        "Condition": {
                            "StringEquals": {"aws:SourceAccount": args.account},
                            "ArnEquals": {"aws:SourceArn": rule_arns},
                        },
                    },
                    {
                        "Sid": "TlsOnly",
                        "Effect": "Deny",
                        "Principal": "*",
                        "Action": "sqs:*",
                        "Resource": queue.arn,
                        "Condition": {"Bool": {"aws:SecureTransport": "false"}},
                    },
                ]
            ),
            opts=self._opts(),
        )
        return queue, [*made, policy]

    def _kinds(self) -> list[pulumi.Resource]:
        return [
            CustomResourceDefinition(
                f"{self._name}-kind-{kind.plural}",
                metadata=ObjectMetaArgs(
                    name=kind.full_name, labels=dict(self._args.labels)
                ),
                spec=crds.definition_args(kind),
                opts=self._opts(
                    provider=self._args.kubernetes, depends_on=list(self._args.after)
                ),
            )
            for kind in crds.kinds()
        ]

    def _release(
        self, queue: aws.sqs.Queue, before: Sequence[pulumi.Resource]
    ) -> Release:
        args = self._args
        return Release(
            f"{self._name}-karpenter",
            name="karpenter",
            namespace=NAMESPACE,
            chart=CHART,
            version=args.chart_version,
            skip_crds=True,
            atomic=True,
            timeout=600,
            values=chart_values(args, queue.name),
            opts=self._opts(
                provider=args.kubernetes, depends_on=[*args.after, *before]
            ),
        )


def chart_values(args: AutoscalerArgs, queue: pulumi.Input[str]) -> dict[str, Any]:
    """Return the values of Karpenter's chart.

    Args:
        args: What the autoscaler is made from.
        queue: Name of the queue of interruptions.
    """
    size = {"cpu": "1", "memory": "2Gi"}
    return {
        "replicas": args.replicas,
        "additionalLabels": dict(args.labels),
        "podLabels": dict(args.labels),
        "serviceAccount": {"create": True, "name": SERVICE_ACCOUNT},
        "nodeSelector": {"kubernetes.io/os": "linux", **base_nodes.LABELS},
        "tolerations": [
            {
                "key": "CriticalAddonsOnly",
                "operator": "Equal",
                "value": "true",
                "effect": "NoSchedule",
            }
        ],
        "controller": {
            "resources": {"requests": size, "limits": size},
            "env": [{"name": "AWS_REGION", "value": args.region}],
        },
        "settings": {
            "clusterName": args.cluster,
            "clusterEndpoint": args.endpoint,
            "eksControlPlane": True,
            "interruptionQueue": queue,
            "batchMaxDuration": BATCH,
            "batchIdleDuration": BATCH,
            "vmMemoryOverheadPercent": MEMORY_OVERHEAD,
            "featureGates": {"reservedCapacity": True},
        },
    }
