"""AWS machines: metadata, disks, user data; also those Karpenter makes later.

Karpenter's defaults are those of its documentation (karpenter.sh, "NodeClasses"):
since v1 a node class that says nothing gets IMDSv2 with hop limit 1 and, except for
the AMI family ``Custom``, an encrypted root disk. The older v1beta1 had hop limit 2.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator

from runfleet.spec.findings import Severity
from runfleet_policies.rule import Breach, Context, Rule, guarded
from runfleet_policies.values import CannotTell
from runfleet_policies.view import ResourceView, StackView

LAUNCH_TEMPLATE = "aws:ec2/launchTemplate:LaunchTemplate"
LAUNCH_CONFIGURATION = "aws:ec2/launchConfiguration:LaunchConfiguration"
INSTANCE = "aws:ec2/instance:Instance"
NODE_CLASS = "kubernetes:karpenter.k8s.aws/*:EC2NodeClass"
METADATA_DEFAULTS = "aws:ec2/instanceMetadataDefaults:InstanceMetadataDefaults"
ENCRYPTION_DEFAULT = "aws:ebs/encryptionByDefault:EncryptionByDefault"
MACHINES = (LAUNCH_TEMPLATE, LAUNCH_CONFIGURATION, INSTANCE, NODE_CLASS)

_SECRETS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("an AWS access key", re.compile(r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b")),
    ("an AWS secret key", re.compile(r"(?i)aws_secret_access_key\s*[=:]\s*\S{16,}")),
    ("a private key", re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----")),
    (
        "a GitHub token",
        re.compile(r"\b(?:gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,})"),
    ),
    ("a Slack token", re.compile(r"\bxox[abprs]-[A-Za-z0-9-]{10,}")),
    (
        "a password or token",
        re.compile(
            r"(?im)^\s*(?:export\s+)?[A-Z0-9_]*(?:PASSWORD|PASSWD|SECRET|TOKEN|API_KEY)"
            r"\s*=\s*['\"]?(?![$<{(])[^\s'\"$]{6,}"
        ),
    ),
)


def rules() -> tuple[Rule, ...]:
    """Return the rules about AWS machines."""
    return (
        Rule(
            id="R-AWS-01",
            severity=Severity.CRITICAL,
            title="The metadata service answers only with a session token (IMDSv2)",
            rationale="Without a token, one forged request from a job reads the "
            "node's credentials.",
            fix='set metadataOptions.httpTokens to "required"',
            anchors=("S15", "S30", "CIS 2.2.5"),
            types=MACHINES,
            resource=_tokens,
        ),
        Rule(
            id="R-AWS-02",
            severity=Severity.HIGH,
            title="The metadata service is out of reach of pods (hop limit 1)",
            rationale="A pod is one hop further away than its node: with hop limit 1 "
            "the answer never reaches it.",
            fix="set httpPutResponseHopLimit to 1",
            anchors=("S15", "S30", "S04"),
            types=MACHINES,
            resource=_hops,
        ),
        Rule(
            id="R-AWS-03",
            severity=Severity.MEDIUM,
            title="The account's own default asks for IMDSv2 with hop limit 1",
            rationale="Machines that other tools start in the account take the "
            "account's default, not ours.",
            fix="add InstanceMetadataDefaults with httpTokens required, hop limit 1",
            anchors=("S15", "S06"),
            stack=_account_default,
        ),
        Rule(
            id="R-AWS-16",
            severity=Severity.HIGH,
            title="Every disk is encrypted",
            rationale="Disks hold checkouts, caches and what jobs left behind; a "
            "snapshot of a plain one can be read by whoever gets it.",
            fix="set encrypted to true on every block device",
            anchors=("S09", "S36"),
            stack=_disks,
        ),
        Rule(
            id="R-AWS-25",
            severity=Severity.HIGH,
            title="User data holds no secret",
            rationale="User data can be read from the machine and from the API by "
            "everybody who may describe it, and stays in Pulumi's state.",
            fix="keep the secret in Secrets Manager and read it with the node's role",
            anchors=("S30", "BR-07.01"),
            types=(*MACHINES, "aws:ec2/spotInstanceRequest:SpotInstanceRequest"),
            resource=_user_data,
        ),
    )


def _is_node_class(resource: ResourceView) -> bool:
    return resource.type.endswith(":EC2NodeClass")


def _options(resource: ResourceView) -> tuple[str, ...]:
    node_class = _is_node_class(resource)
    return ("spec", "metadataOptions") if node_class else ("metadataOptions",)


def _metadata_off(resource: ResourceView) -> bool:
    return resource.text(*_options(resource), "httpEndpoint") == "disabled"


def _tokens(resource: ResourceView, context: Context) -> Iterator[Breach]:
    if _metadata_off(resource):
        return
    unset = "required" if _is_node_class(resource) else ""
    found = resource.text(*_options(resource), "httpTokens", default=unset)
    if found != "required":
        why = f"httpTokens is {found or 'not set'}"
        yield Breach(why, ".".join((*_options(resource), "httpTokens")))


def _hops(resource: ResourceView, context: Context) -> Iterator[Breach]:
    if _metadata_off(resource):
        return
    found = resource.number(*_options(resource), "httpPutResponseHopLimit")
    if found is None and _is_node_class(resource):
        found = 2 if "/v1beta1:" in resource.type else 1
    if found != 1:
        spelled = "not set" if found is None else f"{found:g}"
        place = ".".join((*_options(resource), "httpPutResponseHopLimit"))
        yield Breach(f"the hop limit is {spelled}", place)


def _account_default(stack: StackView, context: Context) -> Iterator[Breach]:
    defaults = list(stack.of(METADATA_DEFAULTS))
    machines = next(
        stack.of(*MACHINES, "aws:eks/cluster:Cluster", "aws:eks/nodeGroup:NodeGroup"),
        None,
    )
    if not defaults and machines is not None:
        yield Breach("the stack starts machines and sets no InstanceMetadataDefaults")
    for found in defaults:
        yield from guarded(_good_default(found), found.urn)


def _good_default(found: ResourceView) -> Iterator[Breach]:
    tokens = found.text("httpTokens")
    if tokens != "required":
        why = f"httpTokens is {tokens or 'not set'}"
        yield Breach(why, "httpTokens", urn=found.urn)
    hops = found.number("httpPutResponseHopLimit")
    if hops != 1:
        spelled = "not set" if hops is None else f"{hops:g}"
        why = f"the hop limit is {spelled}"
        yield Breach(why, "httpPutResponseHopLimit", urn=found.urn)


def _disks(stack: StackView, context: Context) -> Iterator[Breach]:
    by_default = False
    for setting in stack.of(ENCRYPTION_DEFAULT):
        try:
            on = bool(setting.truth("enabled", default=True))
        except CannotTell as unknown:
            yield Breach(f"cannot tell: {unknown}", "enabled", True, setting.urn)
            continue
        by_default = by_default or on
        if not on:
            why = "encryption by default is switched off"
            yield Breach(why, "enabled", urn=setting.urn)
    for resource in stack.of(*MACHINES, "aws:ebs/volume:Volume"):
        yield from guarded(_plain_disks(resource, by_default), resource.urn)


def _plain_disks(resource: ResourceView, by_default: bool) -> Iterator[Breach]:
    for place, path in _devices(resource):
        on = resource.truth(*path, "encrypted", default=None)
        if on is False or (on is None and not by_default):
            said = "false" if on is False else "not set"
            yield Breach(f"encrypted is {said}", place, urn=resource.urn)
    if by_default:
        return
    kind = resource.type.rpartition(":")[2]
    if kind == "LaunchTemplate" and not resource.items("blockDeviceMappings"):
        why = "names no block device, so the image decides about encryption"
        yield Breach(why, "blockDeviceMappings", urn=resource.urn)
    if kind in ("Instance", "LaunchConfiguration") and not (
        resource.mapping("rootBlockDevice")
    ):
        why = "names no root disk, so the image decides about encryption"
        yield Breach(why, "rootBlockDevice", urn=resource.urn)
    if (
        kind == "EC2NodeClass"
        and resource.text("spec", "amiFamily") == "Custom"
        and not resource.items("spec", "blockDeviceMappings")
    ):
        why = "a Custom image without block devices: the image decides"
        yield Breach(why, "spec.blockDeviceMappings", urn=resource.urn)


def _devices(resource: ResourceView) -> Iterator[tuple[str, tuple[str | int, ...]]]:
    kind = resource.type.rpartition(":")[2]
    if kind == "Volume":
        yield "encrypted", ()
        return
    if kind in ("LaunchTemplate", "EC2NodeClass"):
        base = ("spec",) if kind == "EC2NodeClass" else ()
        for index, _ in enumerate(resource.items(*base, "blockDeviceMappings")):
            path = (*base, "blockDeviceMappings", index, "ebs")
            if resource.get(*path) is not None:
                yield f"blockDeviceMappings[{index}]", path
        return
    if resource.mapping("rootBlockDevice"):
        yield "rootBlockDevice", ("rootBlockDevice",)
    for index, _ in enumerate(resource.items("ebsBlockDevices")):
        yield f"ebsBlockDevices[{index}]", ("ebsBlockDevices", index)


def _user_data(resource: ResourceView, context: Context) -> Iterator[Breach]:
    base = ("spec",) if _is_node_class(resource) else ()
    for name in ("userData", "userDataBase64"):
        try:
            written = resource.text(*base, name)
        except CannotTell as unknown:
            if "is a secret" in unknown.reason:
                yield Breach("the program marks its user data as a secret", name)
                continue
            raise
        for content in {written, _decoded(written)}:
            for what, pattern in _SECRETS:
                if pattern.search(content):
                    yield Breach(f"holds {what}", name)


def _decoded(written: str) -> str:
    try:
        return base64.b64decode(written, validate=True).decode("utf-8", "replace")
    except (binascii.Error, ValueError):
        return written
