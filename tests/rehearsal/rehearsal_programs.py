"""Small stack programs that the rehearsal's tests run."""

from __future__ import annotations

import json

import pulumi
import pulumi_aws as aws
import pulumi_kubernetes as k8s

SECRET = "correct horse battery staple"

TRUST = json.dumps(
    {
        "Version": "2012-10-17",
        "Statement": [
            {
                "Effect": "Allow",
                "Principal": {"Service": "pods.eks.amazonaws.com"},
                "Action": ["sts:AssumeRole", "sts:TagSession"],
            }
        ],
    }
)


def policy(action: str, resource: str, effect: str = "Allow") -> str:
    """Return a policy document of one statement."""
    statement = {"Effect": effect, "Action": [action], "Resource": resource}
    return json.dumps({"Version": "2012-10-17", "Statement": [statement]})


class Inner(pulumi.ComponentResource):
    """A component inside a component."""

    def __init__(self, name: str, opts: pulumi.ResourceOptions) -> None:
        super().__init__("test:index:Inner", name, None, opts)
        child = pulumi.ResourceOptions(parent=self)
        self.bucket = aws.s3.Bucket(f"{name}-bucket", tags={"a": "b"}, opts=child)
        self.register_outputs({"bucket": self.bucket.id})


class Outer(pulumi.ComponentResource):
    """A component with a network and an inner component."""

    def __init__(self, name: str, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("test:index:Outer", name, None, opts)
        child = pulumi.ResourceOptions(parent=self)
        self.vpc = aws.ec2.Vpc(f"{name}-vpc", cidr_block="10.0.0.0/16", opts=child)
        self.subnet = aws.ec2.Subnet(
            f"{name}-subnet",
            vpc_id=self.vpc.id,
            cidr_block="10.0.1.0/24",
            opts=child,
        )
        self.inner = Inner(f"{name}-inner", child)
        self.register_outputs({"vpc": self.vpc.id})


def provider(account: str = "111122223333") -> aws.Provider:
    """Return an explicit provider of one account and region."""
    return aws.Provider("prod", region="us-east-2", allowed_account_ids=[account])


def network() -> None:
    """Components with children, and an exported value."""
    outer = Outer("net", pulumi.ResourceOptions(providers=[provider()]))
    pulumi.export("vpc", outer.vpc.id)
    pulumi.export("subnet_arn", outer.subnet.arn)


def secrets() -> None:
    """Secrets from settings, in inputs, in other inputs and in outputs."""
    token = pulumi.Config().require_secret("token")
    options = pulumi.ResourceOptions(provider=provider())
    secret = aws.secretsmanager.Secret("app", name="app", opts=options)
    aws.secretsmanager.SecretVersion(
        "value", secret_id=secret.id, secret_string=token, opts=options
    )
    parameter = aws.ssm.Parameter(
        "param", type="SecureString", value=token, opts=options
    )
    aws.s3.Bucket("tagged", tags={"copy": parameter.value}, opts=options)
    aws.sqs.Queue("named", name=token.apply(lambda t: t[:5]), opts=options)
    k8s.core.v1.Secret(
        "k8s",
        metadata={"name": "k8s", "namespace": "runners", "annotations": {"t": token}},
        string_data={"token": SECRET},
    )
    pulumi.export("token", token)
    pulumi.export("nested", {"inside": [token]})
    pulumi.export("leaked", pulumi.Config().require("token"))
    pulumi.export("pins", [{"name": "chart", "value": "1.0"}])
    pulumi.export("unresolved_pins", ["image/runner"])
