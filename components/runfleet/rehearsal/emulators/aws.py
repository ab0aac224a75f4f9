"""AWS in memory: creates network, access and data types for real in moto.

moto (https://docs.getmoto.org) implements AWS's APIs in this process and refuses
what AWS would refuse: overlapping or malformed ranges, names out of the allowed
alphabet, malformed policy documents, references to things that do not exist.
Calls go through boto3, so that botocore's own checks of parameters apply too; no
socket is opened, because moto answers inside botocore.

The record must not depend on moto, so moto's ids never leave this module: each
derived id is mapped to the id that moto gave, and later calls are translated. A
resource that refers to something outside this stack (an adopted network, another
stack's key) cannot be created here and is left alone; :attr:`AwsEmulator.skipped`
lists it.

One emulator serves one rehearsal. Clients are made once for each service, account
and region: making one costs far more than calling it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any, cast

import boto3  # pyright: ignore[reportMissingTypeStubs]
import botocore.session  # pyright: ignore[reportMissingTypeStubs]
from botocore.config import Config  # pyright: ignore[reportMissingTypeStubs]
from botocore.exceptions import BotoCoreError, ClientError  # pyright: ignore[reportMissingTypeStubs]
from moto import mock_aws

from runfleet.rehearsal.emulators import aws_access, aws_data, aws_network
from runfleet.rehearsal.emulators.aws_call import Call, Foreign
from runfleet.rehearsal.emulators.base import Creation, Refused
from runfleet.rehearsal.providers.aws import DEFAULT_ACCOUNT, location

NOT_EMULATED: Mapping[str, str] = {
    "aws:costexplorer/costAllocationTag:CostAllocationTag": "moto has no cost "
    "allocation tags",
    "aws:ebs/encryptionByDefault:EncryptionByDefault": "an account setting that "
    "nothing else in moto depends on",
    "aws:ec2/instanceMetadataDefaults:InstanceMetadataDefaults": "moto lacks "
    "ModifyInstanceMetadataDefaults",
    "aws:ec2/placementGroup:PlacementGroup": "moto lacks CreatePlacementGroup",
    "aws:ecr/pullThroughCacheRule:PullThroughCacheRule": "moto lacks pull-through "
    "cache",
    "aws:ecr/repositoryCreationTemplate:RepositoryCreationTemplate": "moto lacks "
    "repository creation templates",
    "aws:eks/accessEntry:AccessEntry": "moto lacks EKS access entries",
    "aws:eks/accessPolicyAssociation:AccessPolicyAssociation": "moto lacks EKS "
    "access policies",
    "aws:eks/addon:Addon": "moto lacks EKS add-ons",
    "aws:eks/podIdentityAssociation:PodIdentityAssociation": "moto lacks EKS Pod "
    "Identity",
    "aws:servicequotas/serviceQuota:ServiceQuota": "moto lacks quota requests",
}
"""Types that moto 5.2.5 lacks, with the reason.

Types that are neither here nor in :func:`handlers` are outside network, data and
access; they are not created either.
"""

Handler = Callable[[Call], None]


def handlers() -> dict[str, Handler]:
    """Return the function that creates each type, by ``module/type``."""
    return {**aws_network.HANDLERS, **aws_access.HANDLERS, **aws_data.HANDLERS}


class AwsEmulator:
    """A fresh in-memory AWS for one rehearsal.

    Attributes:
        created: URNs of the resources that moto accepted.
        skipped: URN and reason of each resource that was left alone.
    """

    def __init__(self) -> None:
        """Start moto with empty backends."""
        self.created: list[str] = []
        self.skipped: list[tuple[str, str]] = []
        self._handlers = handlers()
        self._real: dict[str, str] = {}
        self._sessions: dict[str, Any] = {}
        self._clients: dict[tuple[str, str, str], Any] = {}
        self._config = Config(
            retries={"max_attempts": 0},
            parameter_validation=True,
            ignore_configured_endpoint_urls=True,
        )
        self._mock = mock_aws(config={"core": {"mock_credentials": False}})
        self._mock.start()

    def create(self, creation: Creation) -> None:
        """Create one resource in moto, when moto has its type.

        Raises:
            Refused: moto or botocore did not accept it; the text is their message.
        """
        module = creation.type.removeprefix("aws:").partition(":")[0]
        handler = self._handlers.get(module)
        if handler is None:
            reason = NOT_EMULATED.get(creation.type, "not network, data or access")
            self.skipped.append((creation.urn, reason))
            return
        account, region = location(creation.inputs, creation.provider)
        call = Call(creation, account, region, self._real, self._client)
        try:
            handler(call)
        except Foreign as error:
            self.skipped.append((creation.urn, str(error)))
        except ClientError as error:
            response = cast("Mapping[str, Any]", error.response)  # pyright: ignore[reportUnknownMemberType]
            found = cast("Mapping[str, Any]", response.get("Error", {}))
            code, message = found.get("Code", ""), found.get("Message", "")
            raise Refused(f"refused by AWS (moto): {code}: {message}") from error
        except BotoCoreError as error:
            text = " ".join(str(error).split())
            raise Refused(f"refused by botocore: {text}") from error
        else:
            self.created.append(creation.urn)

    def close(self) -> None:
        """Drop the backends and undo moto's patches."""
        self._mock.stop()

    def _client(self, service: str, account: str, region: str) -> Any:
        key = (service, account, region)
        if key not in self._clients:
            self._clients[key] = self._session(account).client(
                service, region_name=region, config=self._config
            )
        return self._clients[key]

    def _session(self, account: str) -> Any:
        """Return a session whose calls land in one account of moto."""
        session = self._sessions.get(account)
        if session is not None:
            return session
        session = _session("rehearsal", "rehearsal", None)
        if account != DEFAULT_ACCOUNT:
            granted: Mapping[str, str] = session.client(
                "sts", config=self._config
            ).assume_role(
                RoleArn=f"arn:aws:iam::{account}:role/rehearsal",
                RoleSessionName="rehearsal",
            )["Credentials"]
            session = _session(
                granted["AccessKeyId"],
                granted["SecretAccessKey"],
                granted["SessionToken"],
            )
        self._sessions[account] = session
        return session


def _session(key: str, secret: str, token: str | None) -> Any:
    """Return a session that reads neither the user's profile nor their files."""
    alone = botocore.session.Session(
        session_vars={
            "config_file": (None, None, os.devnull, None),
            "credentials_file": (None, None, os.devnull, None),
            "profile": (None, None, None, None),
        }
    )
    return boto3.Session(
        aws_access_key_id=key,
        aws_secret_access_key=secret,
        aws_session_token=token,
        region_name="us-east-1",
        botocore_session=alone,
    )
