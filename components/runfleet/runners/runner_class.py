"""One runner class on a cluster: sixteen Kubernetes objects that belong together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pulumi
from pulumi_kubernetes.core import v1 as core

from runfleet.clouds.protocols import AppSecretSource, RunnerIdentity
from runfleet.placement.plan import CellPlan, PlannedClass
from runfleet.runners.access import make_accounts
from runfleet.runners.admission import job_annotations
from runfleet.runners.isolation import (
    EgressException,
    Reach,
    https_private,
    job_reach,
    make_policy,
    runner_reach,
)
from runfleet.runners.job_pods import make_hook_template
from runfleet.runners.scale_sets import ScaleSetArgs, make_scale_set
from runfleet.runners.secrets import make_app_secret
from runfleet.runners.tenancy import (
    ScaleLimits,
    job_container_limit,
    job_quota,
    make_limits,
    make_namespace,
    pod_security,
    runner_container_limit,
    runner_quota,
)


@dataclass(frozen=True)
class RunnerClassArgs:
    """What a class on a cluster is made from.

    Attributes:
        plan: The plan of the cell.
        planned: The class.
        limits: How many runners it may have.
        identity: Its cloud identity; ``None`` for a class without grants.
        app_secret: Where its GitHub App's key is kept.
        image_sources: Where its job images may come from.
        exceptions: Declared exceptions from isolation, for any class.
        api_addresses: Ranges of the API server; ``None`` for the cell's own.
        service_endpoints: Ranges of the cloud's private service endpoints, which job
            pods of classes with an identity reach over HTTPS.
        admission: What must be in force before job pods may start.
        controllers: What makes pods and secrets of it.
        ready: What must exist before anything is put on the cluster.
    """

    plan: CellPlan
    planned: PlannedClass
    limits: ScaleLimits
    identity: RunnerIdentity | None
    app_secret: AppSecretSource
    image_sources: Sequence[pulumi.Input[str]]
    exceptions: Sequence[EgressException] = ()
    api_addresses: Sequence[str] | None = None
    service_endpoints: Sequence[str] = ()
    admission: Sequence[pulumi.Resource] = ()
    controllers: Sequence[pulumi.Resource] = ()
    ready: Sequence[pulumi.Resource] = ()


class RunnerClassResources(pulumi.ComponentResource):
    """A runner class on a cluster.

    Attributes:
        runner_namespace: Namespace of its scale set and runner pods.
        job_namespace: Namespace of its job pods.
        scale_set: Name of its scale set, which is the label that jobs use.
    """

    runner_namespace: str
    job_namespace: str
    scale_set: str

    def __init__(
        self,
        name: str,
        args: RunnerClassArgs,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Make the namespaces, what keeps them apart, and the scale set."""
        super().__init__("runfleet:runners:RunnerClass", name, None, opts)
        planned = args.planned
        runner_namespace = self._namespace(
            name, args, planned.runner_namespace, "runner"
        )
        job_namespace = self._namespace(name, args, planned.job_namespace, "job")
        child = pulumi.ResourceOptions(
            parent=self, depends_on=[runner_namespace, job_namespace]
        )
        guards = [
            *args.admission,
            *self._limits(name, args, child),
            *self._isolation(name, args, child),
        ]
        identity = args.identity
        accounts = make_accounts(
            name,
            planned.runner_namespace,
            planned.job_namespace,
            planned.service_account,
            planned.ci_labels,
            identity.service_account_annotations if identity else {},
            child,
        )
        template = make_hook_template(
            name, planned, identity.pod_labels if identity else {}, child
        )
        secret = make_app_secret(
            name,
            planned,
            args.app_secret,
            pulumi.ResourceOptions(
                parent=self, depends_on=[runner_namespace, *args.controllers]
            ),
        )
        make_scale_set(
            name,
            ScaleSetArgs(args.plan, planned, args.limits),
            [
                runner_namespace,
                job_namespace,
                *guards,
                accounts.runner,
                accounts.job,
                accounts.hooks_binding,
                accounts.manager_binding,
                template,
                secret,
                *args.controllers,
            ],
            pulumi.ResourceOptions(parent=self),
        )
        self.runner_namespace = planned.runner_namespace
        self.job_namespace = planned.job_namespace
        self.scale_set = planned.label
        self.register_outputs(
            {
                "runner_namespace": self.runner_namespace,
                "job_namespace": self.job_namespace,
                "scale_set": self.scale_set,
            }
        )

    def _namespace(
        self, name: str, args: RunnerClassArgs, namespace: str, part: str
    ) -> core.Namespace:
        job = part == "job"
        return make_namespace(
            f"{name}-{part}-namespace",
            namespace,
            args.planned.ci_labels
            | pod_security(part, "baseline" if job else "restricted"),
            job_annotations(args.planned, args.image_sources) if job else {},
            pulumi.ResourceOptions(parent=self, depends_on=list(args.ready)),
        )

    def _limits(
        self, name: str, args: RunnerClassArgs, opts: pulumi.ResourceOptions
    ) -> list[pulumi.Resource]:
        planned, cell = args.planned, args.plan.cell
        return [
            *make_limits(
                f"{name}-runner",
                planned.runner_namespace,
                planned.ci_labels,
                runner_quota(cell, args.limits),
                runner_container_limit(cell),
                opts,
            ),
            *make_limits(
                f"{name}-job",
                planned.job_namespace,
                planned.ci_labels,
                job_quota(planned, args.limits),
                job_container_limit(planned),
                opts,
            ),
        ]

    def _isolation(
        self, name: str, args: RunnerClassArgs, opts: pulumi.ResourceOptions
    ) -> list[pulumi.Resource]:
        planned, plan = args.planned, args.plan
        for_runner = [e for e in args.exceptions if e.concerns(planned, "runner")]
        for_job = [e for e in args.exceptions if e.concerns(planned, "job")]
        services: list[Reach] = []
        if args.identity is not None and args.service_endpoints:
            services.append(https_private(args.service_endpoints))
        endpoints = args.identity.endpoints if args.identity is not None else ()
        return [
            make_policy(
                f"{name}-runner-isolation",
                planned.runner_namespace,
                planned.ci_labels,
                runner_reach(plan, args.api_addresses, for_runner),
                for_runner,
                opts,
            ),
            make_policy(
                f"{name}-job-isolation",
                planned.job_namespace,
                planned.ci_labels,
                (*job_reach(plan, endpoints, for_job), *services),
                for_job,
                opts,
            ),
        ]
