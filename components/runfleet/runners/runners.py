"""All runners of a cell: the shared parts once, then one component per class."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pulumi

from runfleet.clouds.protocols import AppSecretSource, RunnerIdentity
from runfleet.placement.plan import CellPlan
from runfleet.runners.access import make_manager_role
from runfleet.runners.admission import DEFAULT_IMAGE_SOURCES, make_admission
from runfleet.runners.controllers import make_controllers
from runfleet.runners.devices import devices_in
from runfleet.runners.isolation import EgressException
from runfleet.runners.runner_class import RunnerClassArgs, RunnerClassResources
from runfleet.runners.scale_sets import runner_image
from runfleet.runners.scheduling import SchedulingError, scheduling_problems
from runfleet.runners.secrets import make_store
from runfleet.runners.tenancy import make_priorities, scale_limits
from runfleet.spec.roles import Trust


@dataclass(frozen=True)
class RunnersArgs:
    """What the runners of a cell are made from.

    Attributes:
        plan: The plan of the cell.
        identities: Cloud identity of each class by name; ``None`` or absent for a
            class without grants.
        app_secrets: Where the GitHub App's key of each class is kept, by class name.
            Classes of one trust level share the secret store of the first of them;
            the key in it is each class's own.
        registries: Addresses of the fleet's own image registries, which job images
            of every class may come from.
        image_sources: Where else job images may come from, by trust level.
        exceptions: Declared exceptions from isolation.
        api_addresses: Ranges of the API server as runner pods see it; ``None`` for
            the cell's network and the first address of its service range.
        service_endpoints: Ranges of the cloud's private service endpoints, which job
            pods of classes with an identity reach over HTTPS.
        ready: What must exist before anything is put on the cluster.
        secrets_annotations: Annotations of External Secrets' service account.
    """

    plan: CellPlan
    identities: Mapping[str, RunnerIdentity | None]
    app_secrets: Mapping[str, AppSecretSource]
    registries: Sequence[pulumi.Input[str]] = ()
    image_sources: Mapping[Trust, Sequence[str]] = field(
        default_factory=lambda: dict(DEFAULT_IMAGE_SOURCES)
    )
    exceptions: Sequence[EgressException] = ()
    api_addresses: Sequence[str] | None = None
    service_endpoints: Sequence[str] = ()
    ready: Sequence[pulumi.Resource] = ()
    secrets_annotations: Mapping[str, pulumi.Input[str]] = field(
        default_factory=dict[str, pulumi.Input[str]]
    )


class Runners(pulumi.ComponentResource):
    """The runner side of a cell; the options carry its Kubernetes provider.

    Attributes:
        classes: The component of each class, by name.
        scale_sets: Names of the scale sets, which are the labels that jobs use.
    """

    classes: Mapping[str, RunnerClassResources]
    scale_sets: Sequence[str]

    def __init__(
        self,
        name: str,
        args: RunnersArgs,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Make the runner side of a cell.

        Raises:
            SchedulingError: Pods of a class would match no pool, or others' nodes.
            MissingError: A class needs a device that cannot be had in this cell.
        """
        plan = args.plan
        problems = scheduling_problems(plan)
        if problems:
            raise SchedulingError(problems)
        devices_in(plan)
        super().__init__("runfleet:runners:Runners", name, None, opts)
        first = pulumi.ResourceOptions(parent=self, depends_on=list(args.ready))
        controllers = make_controllers(
            name, plan, args.api_addresses, first, args.secrets_annotations
        )
        shared = [
            *make_priorities(name, plan.ci_labels, first),
            make_manager_role(name, plan.ci_labels, first),
        ]
        admission = make_admission(name, plan.ci_labels, first)
        after_secrets = pulumi.ResourceOptions(
            parent=self, depends_on=[controllers.secrets]
        )
        stores: dict[Trust, pulumi.Resource] = {}
        for planned in plan.classes:
            trust = planned.runner_class.trust
            if trust not in stores:
                stores[trust] = make_store(
                    name,
                    trust,
                    args.app_secrets[planned.name],
                    plan.ci_labels,
                    after_secrets,
                )
        limits = scale_limits(plan)
        self.classes = {
            planned.name: RunnerClassResources(
                f"{name}-{planned.name}",
                RunnerClassArgs(
                    plan=plan,
                    planned=planned,
                    limits=limits[planned.name],
                    identity=args.identities.get(planned.name),
                    app_secret=args.app_secrets[planned.name],
                    image_sources=_sources(args, planned.runner_class.trust),
                    exceptions=args.exceptions,
                    api_addresses=args.api_addresses,
                    service_endpoints=args.service_endpoints,
                    admission=admission,
                    controllers=[
                        controllers.arc,
                        controllers.secrets,
                        stores[planned.runner_class.trust],
                        *shared,
                    ],
                    ready=args.ready,
                ),
                pulumi.ResourceOptions(parent=self),
            )
            for planned in plan.classes
        }
        self.scale_sets = [c.scale_set for c in self.classes.values()]
        self.register_outputs({"scale_sets": self.scale_sets})


def _sources(args: RunnersArgs, trust: Trust) -> list[pulumi.Input[str]]:
    """Return where job images of a trust level may come from.

    The runner's image is always among them: the hooks' init container uses it.
    """
    return [
        runner_image(args.plan.pins),
        *(_repository(registry) for registry in args.registries),
        *args.image_sources.get(trust, ()),
    ]


def _repository(registry: pulumi.Input[str]) -> pulumi.Input[str]:
    """Return a registry's address as a prefix that no other name can continue."""
    if isinstance(registry, str):
        return f"{registry.rstrip('/')}/"
    return pulumi.Output.from_input(registry).apply(lambda text: f"{text.rstrip('/')}/")
