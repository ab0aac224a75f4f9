"""Access types in moto: IAM, KMS, EKS clusters and node groups.

moto validates IAM policy documents; trust documents only when a role's trust is
updated, so each role's trust is set once more after its creation.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from moto.iam.aws_managed_policies import aws_managed_policies_data

from runfleet.rehearsal.emulators.aws_call import Call, without_empty
from runfleet.rehearsal.emulators.base import Refused


def role(call: Call) -> None:
    """Create a role with its inline and managed policies."""
    iam = call.client("iam")
    name = call.text("name")
    trust = call.document("assumeRolePolicy")
    iam.create_role(
        RoleName=name,
        AssumeRolePolicyDocument=trust,
        **call.take("path", "description", "maxSessionDuration", "permissionsBoundary"),
        Tags=call.tags(),
    )
    iam.update_assume_role_policy(RoleName=name, PolicyDocument=trust)
    for found in call.items("inlinePolicies"):
        if found.get("policy"):
            iam.put_role_policy(
                RoleName=name,
                PolicyName=found.get("name"),
                PolicyDocument=found["policy"],
            )
    call.know()
    for arn in call.items("managedPolicyArns"):
        _attach(call, name, arn)


def policy(call: Call) -> None:
    """Create a managed policy."""
    call.client("iam").create_policy(
        PolicyName=call.text("name"),
        PolicyDocument=call.document("policy"),
        **call.take("path", "description"),
        Tags=call.tags(),
    )
    call.know()


def role_policy(call: Call) -> None:
    """Create an inline policy of a role."""
    call.client("iam").put_role_policy(
        RoleName=call.made("role"),
        PolicyName=call.text("name"),
        PolicyDocument=call.document("policy"),
    )


def role_policy_attachment(call: Call) -> None:
    """Attach a managed policy: one of this stack, or one of AWS's own."""
    _attach(call, call.made("role"), call.inputs.get("policyArn"))


def _attach(call: Call, role_name: str, arn: Any) -> None:
    if isinstance(arn, str) and arn.split(":")[4:5] == ["aws"]:
        if arn.partition(":iam::")[2] not in managed_policies():
            raise Refused(
                f"refused by AWS (moto): NoSuchEntity: Policy {arn} not found"
            )
        return
    call.client("iam").attach_role_policy(
        RoleName=role_name, PolicyArn=call.made_value(arn)
    )


@cache
def managed_policies() -> frozenset[str]:
    """Return the end of the ARN of every policy that AWS itself manages.

    moto carries them as one JSON text. It can also load them into its backends,
    but does so for every account and region, which takes seconds.
    """
    found: dict[str, dict[str, Any]] = json.loads(aws_managed_policies_data)
    return frozenset(f"aws:policy{p['Path']}{name}" for name, p in found.items())


def instance_profile(call: Call) -> None:
    """Create an instance profile with its role."""
    iam = call.client("iam")
    target = call.made("role") if call.inputs.get("role") else ""
    name = call.text("name")
    iam.create_instance_profile(
        InstanceProfileName=name, **call.take("path"), Tags=call.tags()
    )
    if target:
        iam.add_role_to_instance_profile(InstanceProfileName=name, RoleName=target)
    call.know()


def oidc_provider(call: Call) -> None:
    """Create an OpenID Connect provider."""
    call.client("iam").create_open_id_connect_provider(
        Url=call.text("url"),
        ClientIDList=call.items("clientIdLists"),
        ThumbprintList=call.items("thumbprintLists"),
        Tags=call.tags(),
    )
    call.know()


def kms_key(call: Call) -> None:
    """Create a key with its policy and rotation."""
    kms = call.client("kms")
    made = kms.create_key(
        **call.take("description", "keyUsage", "multiRegion"),
        **call.take(KeySpec="customerMasterKeySpec"),
        **({"Policy": call.document("policy")} if call.inputs.get("policy") else {}),
        Tags=[{"TagKey": tag["Key"], "TagValue": tag["Value"]} for tag in call.tags()],
    )["KeyMetadata"]
    call.learn(made["KeyId"])
    call.learn(made["Arn"], "arn")
    if call.flag("enableKeyRotation"):
        days = call.inputs.get("rotationPeriodInDays")
        kms.enable_key_rotation(
            KeyId=made["KeyId"],
            **({"RotationPeriodInDays": days} if days is not None else {}),
        )


def kms_alias(call: Call) -> None:
    """Give a key another name."""
    call.client("kms").create_alias(
        AliasName=call.text("name"), TargetKeyId=call.made("targetKeyId")
    )
    call.know()


def eks_cluster(call: Call) -> None:
    """Create a cluster with what moto keeps of it."""
    network = call.block("vpcConfig")
    call.client("eks").create_cluster(
        name=call.text("name"),
        roleArn=call.text("roleArn"),
        resourcesVpcConfig=without_empty(
            {
                "subnetIds": [call.translate(s) for s in network.get("subnetIds", [])],
                "securityGroupIds": [
                    call.translate(g) for g in network.get("securityGroupIds", [])
                ],
                "endpointPublicAccess": network.get("endpointPublicAccess"),
                "endpointPrivateAccess": network.get("endpointPrivateAccess"),
                "publicAccessCidrs": network.get("publicAccessCidrs"),
            }
        ),
        **_optional_cluster(call),
    )
    call.know()


def _optional_cluster(call: Call) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if call.inputs.get("version"):
        found["version"] = call.text("version")
    if call.items("enabledClusterLogTypes"):
        found["logging"] = {
            "clusterLogging": [
                {"types": call.items("enabledClusterLogTypes"), "enabled": True}
            ]
        }
    encryption = call.translate(call.block("encryptionConfig"))
    if encryption:
        found["encryptionConfig"] = [encryption]
    if call.block("tags"):
        found["tags"] = call.block("tags")
    return found


def eks_node_group(call: Call) -> None:
    """Create a node group with what moto keeps of it."""
    template = call.translate(call.block("launchTemplate"))
    scaling = call.block("scalingConfig")
    taints = call.items("taints")
    update = call.block("updateConfig")
    call.client("eks").create_nodegroup(
        clusterName=call.made("clusterName"),
        nodegroupName=call.text("nodeGroupName"),
        nodeRole=call.text("nodeRoleArn"),
        subnets=[call.translate(found) for found in call.items("subnetIds")],
        **without_empty(
            {
                "amiType": call.inputs.get("amiType"),
                "capacityType": call.inputs.get("capacityType"),
                "diskSize": call.inputs.get("diskSize"),
                "instanceTypes": call.inputs.get("instanceTypes"),
                "labels": call.block("labels"),
                "launchTemplate": template,
                "scalingConfig": scaling,
                "tags": call.block("tags"),
                "taints": taints,
                "updateConfig": update,
                "version": call.inputs.get("version"),
            }
        ),
    )
    call.know()


HANDLERS: Mapping[str, Callable[[Call], None]] = {
    "eks/cluster": eks_cluster,
    "eks/nodeGroup": eks_node_group,
    "iam/instanceProfile": instance_profile,
    "iam/openIdConnectProvider": oidc_provider,
    "iam/policy": policy,
    "iam/role": role,
    "iam/rolePolicy": role_policy,
    "iam/rolePolicyAttachment": role_policy_attachment,
    "kms/alias": kms_alias,
    "kms/key": kms_key,
}
"""Creating function by ``module/type``."""
