"""EKS clusters and their node groups.

Dates of support are those of AWS's release calendar
(https://docs.aws.amazon.com/eks/latest/userguide/kubernetes-versions.html, as
collected by https://endoflife.date/amazon-eks, read in February 2026).
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping

from runfleet.spec.findings import Severity
from runfleet_policies.rule import Breach, Context, Parameter, Rule, guarded
from runfleet_policies.rules.aws_network import is_world
from runfleet_policies.values import CannotTell
from runfleet_policies.view import ResourceView, StackView

CLUSTER = "aws:eks/cluster:Cluster"
NODE_GROUP = "aws:eks/nodeGroup:NodeGroup"
LAUNCH_TEMPLATE = "aws:ec2/launchTemplate:LaunchTemplate"

LOG_TYPES = ("api", "audit", "authenticator", "controllerManager", "scheduler")

STANDARD_SUPPORT_ENDS: Mapping[tuple[int, int], dt.date] = {
    (1, 29): dt.date(2025, 3, 23),
    (1, 30): dt.date(2025, 7, 23),
    (1, 31): dt.date(2025, 11, 26),
    (1, 32): dt.date(2026, 3, 23),
    (1, 33): dt.date(2026, 7, 29),
    (1, 34): dt.date(2026, 12, 2),
    (1, 35): dt.date(2027, 3, 27),
}
"""Last day of standard support of each Kubernetes version on EKS."""


def rules() -> tuple[Rule, ...]:
    """Return the rules about EKS clusters."""
    return (
        Rule(
            id="R-AWS-11",
            severity=Severity.HIGH,
            title="The cluster's API is not open to the internet",
            rationale="The default of EKS is a public endpoint for 0.0.0.0/0: one "
            "leaked token or one flaw in the API server is then enough.",
            fix="set endpointPublicAccess to false, or list publicAccessCidrs",
            anchors=("S02", "S33", "CIS EKS"),
            types=(CLUSTER,),
            resource=_public_api,
        ),
        Rule(
            id="R-AWS-12",
            severity=Severity.HIGH,
            title="Kubernetes secrets are encrypted with a key of our own",
            rationale="The App's key passes through etcd; a key of our own makes "
            "every use of it visible and revocable.",
            fix="set encryptionConfig with a KMS key and resources [secrets]",
            anchors=("S18", "S19", "CIS EKS"),
            types=(CLUSTER,),
            resource=_secret_encryption,
        ),
        Rule(
            id="R-AWS-13",
            severity=Severity.MEDIUM,
            title="All five control-plane logs are on",
            rationale="The audit log says who used which credential; without it an "
            "incident has no history.",
            fix="list all five types in enabledClusterLogTypes",
            anchors=("S19", "S21", "S35", "CIS EKS"),
            types=(CLUSTER,),
            resource=_logs,
        ),
        Rule(
            id="R-AWS-14",
            severity=Severity.MEDIUM,
            title="The Kubernetes version is in standard support",
            rationale="After standard support a version costs more and "
            "then is upgraded by AWS on a day of its own choosing.",
            fix="raise the cluster's version",
            anchors=("S36",),
            types=(CLUSTER,),
            resource=_version,
            parameters=(
                Parameter(
                    "minimum_version",
                    "",
                    "Least version, such as 1.33; empty: in standard support today.",
                ),
            ),
        ),
        Rule(
            id="R-AWS-15",
            severity=Severity.HIGH,
            title="Nobody logs in to nodes with SSH",
            rationale="A key pair is a long-lived secret shared between people and an "
            "open port; naming source groups narrows it and does not remove it.",
            fix="remove remoteAccess and keyName; use Session Manager",
            anchors=("S16", "S33", "S36"),
            stack=_remote_access,
        ),
    )


def _public_api(cluster: ResourceView, context: Context) -> Iterator[Breach]:
    if not cluster.truth("vpcConfig", "endpointPublicAccess", default=True):
        return
    ranges = cluster.texts("vpcConfig", "publicAccessCidrs")
    if not ranges:
        yield Breach(
            "the public endpoint is on and open to 0.0.0.0/0, the default",
            "vpcConfig.publicAccessCidrs",
        )
    for found in ranges:
        if is_world(found):
            why = f"the public endpoint is open to {found}"
            yield Breach(why, "vpcConfig.publicAccessCidrs")


def _secret_encryption(cluster: ResourceView, context: Context) -> Iterator[Breach]:
    resources = cluster.texts("encryptionConfig", "resources")
    if "secrets" not in resources:
        yield Breach("secrets are not encrypted with a KMS key", "encryptionConfig")
        return
    try:
        key = cluster.text("encryptionConfig", "provider", "keyArn")
    except CannotTell:
        return
    if not key:
        yield Breach("encryptionConfig names no key", "encryptionConfig.provider")


def _logs(cluster: ResourceView, context: Context) -> Iterator[Breach]:
    on = cluster.texts("enabledClusterLogTypes")
    missing = [kind for kind in LOG_TYPES if kind not in on]
    if missing:
        yield Breach(f"{', '.join(missing)} are off", "enabledClusterLogTypes")


def _version(cluster: ResourceView, context: Context) -> Iterator[Breach]:
    version = _parse(cluster.text("version"))
    if version is None:
        return
    spelled = ".".join(str(part) for part in version)
    minimum = _parse(context.text("minimum_version"))
    if minimum is not None:
        if version < minimum:
            why = f"version {spelled} is below {context.text('minimum_version')}"
            yield Breach(why, "version")
        return
    end = STANDARD_SUPPORT_ENDS.get(version)
    if end is None and version < min(STANDARD_SUPPORT_ENDS):
        end = min(STANDARD_SUPPORT_ENDS.values())
    if end is not None and context.today > end:
        why = f"standard support of version {spelled} ended by {end}"
        yield Breach(why, "version")


def _parse(version: str) -> tuple[int, int] | None:
    major, _, minor = version.partition(".")
    minor = minor.partition(".")[0]
    return (int(major), int(minor)) if major.isdigit() and minor.isdigit() else None


def _remote_access(stack: StackView, context: Context) -> Iterator[Breach]:
    for group in stack.of(NODE_GROUP):
        yield from guarded(_remote_access_of(stack, group), group.urn)


def _remote_access_of(stack: StackView, group: ResourceView) -> Iterator[Breach]:
    if group.get("remoteAccess") is not None:
        yield Breach("remoteAccess is set", "remoteAccess", urn=group.urn)
    for urn in group.points_at.get("launchTemplate", ()):
        template = stack.by_urn(urn)
        if template is None or template.type != LAUNCH_TEMPLATE:
            continue
        key = template.get("keyName")
        if key:
            why = f"its launch template has the key pair {key}"
            yield Breach(why, "launchTemplate", urn=group.urn)
