"""RunnerIdentity: the IBM Cloud identity of one runner class, made from its grants.

Every class with grants has a trusted profile of its own in every cell; a class without
grants has none. A trusted profile has no key and no password. Its *link* lets exactly
one service account of one namespace of one cluster take it on: a pod gives IAM the
token of its service account, which the API server has signed for the audience ``iam``
and for an hour at most, and gets a token of the profile, which lasts an hour at most
("Authorizing pods in your cluster", ibm-cloud-docs/containers
``access-pod-identity.md``). The other way to say who may take a profile on, a rule
about claims, would match clusters that do not exist yet, and is not used.

What the profile may do is what :mod:`runfleet.clouds.ibm.grants` makes of the class's
grants, one policy for each bucket or namespace.

The token is a file, projected into job pods (:class:`ProjectedToken`); there is no
link-local endpoint to reach. For central stores on AWS a second token carries the
audience ``sts.amazonaws.com``; AWS accepts it where the cluster's issuer is public
(setting ``oidc_issuer``), else the class's jobs use GitHub's token, as on own hardware.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pulumi

from runfleet.clouds.ibm import addresses
from runfleet.clouds.ibm.grants import (
    BUCKET_KINDS,
    PATTERN,
    REPOSITORY_KINDS,
    Policy,
    StorePlace,
    StorePlaces,
    policies,
)
from runfleet.clouds.ibm.keys import tagged
from runfleet.clouds.ibm.names import POLICY_LINK, TRUSTED_PROFILE
from runfleet.clouds.ibm.resources.access import (
    ComputeLink,
    IamTrustedProfile,
    IamTrustedProfileLink,
    IamTrustedProfilePolicy,
)
from runfleet.clouds.ibm.settings import IbmSettings
from runfleet.clouds.ibm.tags import tags
from runfleet.clouds.protocols import StoreHandle
from runfleet.placement.plan import CellPlan, PlannedClass
from runfleet.spec.cells import Provider
from runfleet.spec.roles import Grant, StoreKind, Trust

TOKEN_SECONDS = 3600
"""The longest token of a service account that IAM takes, and of a profile: an hour."""

IAM_AUDIENCE = "iam"
AWS_AUDIENCE = "sts.amazonaws.com"

TOKEN_FOLDER = "/var/run/secrets/tokens"
"""Where IBM's SDKs look for the token of a compute resource by default."""

PRIVATE_IAM = "https://private.iam.cloud.ibm.com"
"""IAM's endpoint inside the VPC."""

PROFILE_ANNOTATION = "runfleet/trusted-profile"
"""Annotation of a service account with the id of the profile that it may take on."""


@dataclass(frozen=True)
class ProjectedToken:
    """A token of the pod's service account, as a file in the pod.

    Attributes:
        audience: Who accepts it.
        path: Path of the file.
        seconds: How long it lasts; the kubelet renews it.
    """

    audience: str
    path: str
    seconds: int = TOKEN_SECONDS


@dataclass(frozen=True)
class RunnerIdentityArgs:
    """What :class:`RunnerIdentity` makes.

    Attributes:
        class_name: Name of the runner class.
        grants: What its jobs may touch, on stores that IBM Cloud has.
        trust: What code may run on it.
        profile_name: Name of the trusted profile.
        cluster_crn: CRN of the cluster that its pods run in.
        namespace: Namespace of its job pods.
        service_account: Service account of its job pods.
        places: Where the stores are.
        labels: The required labels.
        elsewhere: Audiences of central stores on other clouds.
    """

    class_name: str
    grants: frozenset[Grant]
    trust: Trust
    profile_name: str
    cluster_crn: pulumi.Input[str]
    namespace: str
    service_account: str
    places: StorePlaces
    labels: Mapping[str, str]
    elsewhere: Sequence[str] = field(default_factory=tuple[str, ...])

    @classmethod
    def from_plan(
        cls,
        plan: CellPlan,
        planned: PlannedClass,
        cluster_crn: pulumi.Input[str],
        local: Mapping[StoreKind, StoreHandle],
        central: Mapping[StoreKind, StoreHandle],
    ) -> RunnerIdentityArgs:
        """Take the identity of a class in a cell.

        Args:
            plan: The cell.
            planned: The class in it.
            cluster_crn: CRN of the cluster that its pods run in.
            local: The cell's stores.
            central: The central stores.

        Raises:
            InputError: A central store is in another account of IBM Cloud.
        """
        site = addresses.central_site(plan.fleet)
        cell_site = addresses.cell_site(plan.fleet, plan.cell)
        wide = plan.fleet.central
        on_aws = wide is not None and wide.provider is Provider.AWS
        issuer = IbmSettings.of(plan.cell).oidc_issuer
        beyond = addresses.federated(planned.grants, plan)
        return cls(
            class_name=planned.name,
            grants=addresses.effective(planned.grants, plan),
            trust=planned.runner_class.trust,
            profile_name=TRUSTED_PROFILE.encode(plan.cell.cluster, "job", planned.name),
            cluster_crn=cluster_crn,
            namespace=planned.job_namespace,
            service_account=planned.service_account,
            places=StorePlaces(
                {k: place_of(h, cell_site.registry_region) for k, h in local.items()},
                {k: place_of(h, site.registry_region) for k, h in central.items()}
                if site is not None
                else {},
            ),
            labels=planned.ci_labels,
            elsewhere=(AWS_AUDIENCE,) if beyond and on_aws and issuer else (),
        )


class RunnerIdentity(pulumi.ComponentResource):
    """The identity of a class: a trusted profile, its one link and its policies.

    A class whose grants are all on another cloud's central stores has a profile without
    policies: IAM refuses everything, and the profile names the class in audit events.

    Attributes:
        identity_id: Id of the trusted profile.
        profile_name: Name of the trusted profile.
        service_account_annotations: The profile that the service account may take on.
        pod_labels: None.
        endpoints: None: the token is a file.
        tokens: The files, for job pods.
        environment: What IBM's SDKs read to use the token, for job containers.
    """

    identity_id: pulumi.Output[str]
    profile_name: pulumi.Output[str]
    service_account_annotations: Mapping[str, pulumi.Input[str]]
    pod_labels: Mapping[str, pulumi.Input[str]]
    endpoints: Sequence[str]
    tokens: Sequence[ProjectedToken]
    environment: Mapping[str, pulumi.Input[str]]

    def __init__(
        self,
        name: str,
        args: RunnerIdentityArgs,
        options: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Make the identity."""
        super().__init__("runfleet:ibm:RunnerIdentity", name, None, options)
        profile = trusted_profile(
            name,
            args.profile_name,
            f"Jobs of runner class {args.class_name}",
            args.labels,
            self,
        )
        made = give(
            name,
            profile,
            policies(args.grants, args.trust, args.places),
            args.labels,
            self,
        )
        link(
            name,
            profile,
            ComputeLink(args.cluster_crn, args.namespace, args.service_account),
            self,
            made,
        )
        self.identity_id = profile.profile_id
        self.profile_name = pulumi.Output.from_input(args.profile_name)
        self.service_account_annotations = {PROFILE_ANNOTATION: self.identity_id}
        self.pod_labels = {}
        self.endpoints = ()
        self.tokens = (
            ProjectedToken(IAM_AUDIENCE, f"{TOKEN_FOLDER}/sa-token"),
            *(
                ProjectedToken(audience, f"{TOKEN_FOLDER}/{audience}")
                for audience in args.elsewhere
            ),
        )
        self.environment = sdk_environment(self.identity_id)
        self.register_outputs(
            {
                "identity_id": self.identity_id,
                "profile_name": self.profile_name,
                "service_account_annotations": dict(self.service_account_annotations),
                "pod_labels": {},
                "endpoints": [],
                "tokens": [
                    {"audience": t.audience, "path": t.path, "seconds": t.seconds}
                    for t in self.tokens
                ],
            }
        )


def trusted_profile(
    name: str,
    profile_name: str,
    description: str,
    labels: Mapping[str, str],
    parent: pulumi.Resource,
) -> IamTrustedProfile:
    """Make a trusted profile that nobody may take on yet, and tag it."""
    own = pulumi.ResourceOptions(parent=parent)
    profile = IamTrustedProfile(
        f"{name}-profile", name=profile_name, description=description, opts=own
    )
    tagged(f"{name}-profile", profile.crn, labels, own)
    return profile


def give(
    name: str,
    profile: IamTrustedProfile,
    wanted: Sequence[Policy],
    labels: Mapping[str, str],
    parent: pulumi.Resource,
) -> list[IamTrustedProfilePolicy]:
    """Give a profile its policies."""
    return [
        IamTrustedProfilePolicy(
            f"{name}-{policy.name}",
            iam_id=profile.iam_id,
            roles=list(policy.roles),
            resource_attributes=policy.attributes,
            rule_conditions=policy.conditions or None,
            rule_operator="or" if len(policy.conditions) > 1 else None,
            pattern=PATTERN if policy.conditions else None,
            description=f"{name}: {policy.name}",
            tags=tags(labels),
            opts=pulumi.ResourceOptions(parent=parent),
        )
        for policy in wanted
    ]


def link(
    name: str,
    profile: IamTrustedProfile,
    to: ComputeLink,
    parent: pulumi.Resource,
    after: Sequence[pulumi.Resource] = (),
) -> IamTrustedProfileLink:
    """Let the pods of one service account take a profile on.

    Args:
        name: Start of the logical name.
        profile: The profile.
        to: The service account.
        parent: Parent of the link.
        after: The profile's policies, so that the first token has them.

    Raises:
        ValueError: A part of the link is empty, which would mean any.
    """
    if not (to.namespace and to.name):
        raise ValueError(f"{name}: a link without namespace and account means any")
    return IamTrustedProfileLink(
        f"{name}-link",
        profile_id=profile.profile_id,
        cr_type="IKS_SA",
        link=to,
        name=POLICY_LINK.encode(to.namespace, to.name),
        opts=pulumi.ResourceOptions(parent=parent, depends_on=list(after)),
    )


def place_of(handle: StoreHandle, registry_region: str) -> StorePlace:
    """Return where the store of a handle is."""
    keeps_objects = handle.kind in BUCKET_KINDS or handle.kind is StoreKind.TELEMETRY
    images = handle.kind in REPOSITORY_KINDS
    return StorePlace(
        bucket=(handle.bucket or "") if keeps_objects else "",
        instance=handle.extra["instance"] if keeps_objects else None,
        namespaces={t: handle.extra[f"namespace/{t}"] for t in Trust} if images else {},
        region=registry_region if images else "",
        push_role=handle.extra["push_role"] if images else "",
    )


def sdk_environment(profile_id: pulumi.Input[str]) -> dict[str, pulumi.Input[str]]:
    """Return what IBM's Cloud Object Storage and core SDKs read to log in.

    IBM/python-sdk-core ``Authentication.md``, "Container Authentication".
    """
    settings: dict[str, pulumi.Input[str]] = {
        "AUTH_TYPE": "CONTAINER",
        "CR_TOKEN_FILENAME": f"{TOKEN_FOLDER}/sa-token",
        "IAM_PROFILE_ID": profile_id,
        "AUTH_URL": PRIVATE_IAM,
    }
    return {f"IBM_{name}": value for name, value in settings.items()}
