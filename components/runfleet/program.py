"""The Pulumi program: joins one cell's cloud with the runners.

Every stack runs this one program; the stack's name says which cell it deploys, and
``central`` deploys what exists once. It reads the committed fleet file, its
placement lock and the pins, and nothing else: the same files give the same
resources, under the real engine and under a rehearsal.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pulumi
import pulumi_github as github
from pulumi.runtime.config import CONFIG, get_config_env

from runfleet.catalogue.pins import PINS_NAME, Pins, load_pins
from runfleet.catalogue.read import read_fleet
from runfleet.clouds import floor_for
from runfleet.clouds.protocols import (
    Floor,
    RunnerIdentity,
    StackSettings,
    StoreHandle,
    Stores,
)
from runfleet.errors import InputError, Problem, RunfleetError
from runfleet.placement.lock import LOCK_NAME, read_lock
from runfleet.placement.plan import (
    CENTRAL_STACK,
    CellPlan,
    CentralPlan,
    PlannedClass,
    plan_cell,
    plan_central,
)
from runfleet.runners.controllers import SECRETS_ACCOUNT, SECRETS_NAMESPACE
from runfleet.runners.isolation import api_addresses
from runfleet.runners.registration import RunnerGroups, RunnerGroupsArgs
from runfleet.runners.runners import Runners, RunnersArgs
from runfleet.spec.cells import Cell
from runfleet.spec.fleet import Fleet
from runfleet.spec.roles import Scope, StoreKind
from runfleet.spec.source import nearest

SETTINGS = (
    "deployEnvironment",
    "deployRepository",
    "payerAccount",
    "secretsKey",
    "stateBucket",
)
"""Settings of a stack beside ``fleet`` and ``deployRole``; all may be left out."""


_FORMS: Mapping[str, tuple[str, str]] = {
    "deployRole": (r"\S+", "the id of an identity, such as arn:aws:iam::...:role/..."),
    "deployRepository": (r"[\w.-]+/[\w.-]+", "a repository as owner/name"),
    "payerAccount": (r"true|false", "true or false"),
}


class UnresolvedPinsError(RunfleetError):
    """A real deployment would use a version that nobody has read from a source."""

    exit_code = 3


def run() -> None:
    """Run the program for the current stack.

    Raises:
        pulumi.RunError: A file has problems, or a real ``up`` would use an
            unresolved pin; the message says all of them.
    """
    try:
        _run(pulumi.get_stack(), pulumi.Config("runfleet"))
    except RunfleetError as error:
        raise pulumi.RunError(str(error)) from error


@dataclass(frozen=True)
class RunnerFleetArgs:
    """What a cell needs.

    Attributes:
        plan: The fleet and the placement, cut down to the cell.
        settings: The stack's settings.
        central: The central stores, as stack ``central`` exports them.
    """

    plan: CellPlan
    settings: StackSettings
    central: Mapping[StoreKind, StoreHandle]


class RunnerFleet(pulumi.ComponentResource):
    """One cell: network, cluster, node pools, stores, identities and runners.

    Outputs:
        cluster_name: Name of the cluster.
        stores: The local stores by kind.
        roles: Cloud identity of each class with grants, by class name.
    """

    cluster_name: pulumi.Output[str]
    stores: Mapping[StoreKind, StoreHandle]
    roles: Mapping[str, pulumi.Output[str]]

    def __init__(
        self,
        name: str,
        args: RunnerFleetArgs,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Make the cell.

        Args:
            name: Name of the cell; every logical name below starts with it.
            args: What it needs.
            opts: Pulumi's options.
        """
        super().__init__("runfleet:index:RunnerFleet", name, None, opts)
        plan, settings = args.plan, args.settings
        floor = floor_for(plan.cell.provider)
        provider = floor.provider(f"{name}-cloud", plan, settings)
        cloud = pulumi.ResourceOptions(parent=self, provider=provider)

        network = floor.network(f"{name}-network", plan, cloud)
        cluster = floor.cluster(f"{name}-cluster", plan, network, settings, cloud)
        both = pulumi.ResourceOptions(
            parent=self, providers=[provider, cluster.kubernetes]
        )
        autoscaler = floor.autoscaler(
            f"{name}-autoscaler", plan, network, cluster, both
        )
        for pool in plan.node_pools:
            floor.node_pool(
                f"{name}-pool-{pool.name}",
                plan,
                pool,
                network,
                cluster,
                autoscaler,
                both,
            )
        stores = floor.stores(f"{name}-stores", plan, cloud)
        identities: dict[str, RunnerIdentity] = {}
        for planned in plan.classes:
            if _has_stores(plan, planned):
                identities[planned.name] = floor.runner_identity(
                    f"{name}-identity-{planned.name}",
                    plan,
                    planned,
                    cluster,
                    stores.handles,
                    args.central,
                    cloud,
                )
        floor.budget(f"{name}-budget", plan, cloud)
        secrets = floor.secrets_reader(
            f"{name}-secrets-reader",
            plan,
            cluster,
            SECRETS_NAMESPACE,
            SECRETS_ACCOUNT,
            cloud,
        )
        Runners(
            f"{name}-runners",
            RunnersArgs(
                plan=plan,
                identities=identities,
                app_secrets={
                    planned.name: floor.app_secret(plan, planned)
                    for planned in plan.classes
                },
                registries=_registries(stores.handles, args.central),
                api_addresses=_api_addresses(plan.cell, network.api_ranges),
                service_endpoints=tuple(network.service_ranges),
                ready=(*cluster.ready, *secrets.ready),
                secrets_annotations=secrets.annotations,
            ),
            pulumi.ResourceOptions(parent=self, provider=cluster.kubernetes),
        )
        self.cluster_name = cluster.cluster_name
        self.stores = stores.handles
        self.roles = {
            class_name: identity.identity_id
            for class_name, identity in identities.items()
        }
        self.register_outputs(
            {"cluster_name": self.cluster_name, "roles": dict(self.roles)}
        )


@dataclass(frozen=True)
class CentralArgs:
    """What the stack ``central`` needs.

    Attributes:
        plan: The fleet, cut down to what exists once.
        settings: The stack's settings.
    """

    plan: CentralPlan
    settings: StackSettings


class Central(pulumi.ComponentResource):
    """What exists once: central stores, promoter, federation, runner groups.

    Outputs:
        stores: The central stores by kind.
        promoter: Id of the promoter's identity.
        federated: Id of the identity of each external class, by class name.
        account: What else the account has once, by name.
    """

    stores: Stores
    promoter: pulumi.Output[str]
    federated: Mapping[str, pulumi.Output[str]]
    account: Mapping[str, pulumi.Output[str]]

    def __init__(
        self,
        name: str,
        args: CentralArgs,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Make the things that exist once.

        Args:
            name: Name that every logical name below starts with.
            args: What they need.
            opts: Pulumi's options.
        """
        super().__init__("runfleet:index:Central", name, None, opts)
        plan, settings = args.plan, args.settings
        floor: Floor = floor_for(plan.central.provider)
        provider = floor.provider(f"{name}-cloud", plan, settings)
        cloud = pulumi.ResourceOptions(parent=self, provider=provider)
        self.stores = floor.stores(f"{name}-stores", plan, cloud)
        handles = self.stores.handles
        self.promoter = floor.promoter(f"{name}-promoter", plan, handles, cloud)
        self.federated = {
            runner_class.name: floor.federated_identity(
                f"{name}-federated-{runner_class.name}",
                plan,
                runner_class,
                handles,
                cloud,
            )
            for runner_class in plan.external
            if runner_class.federation
            and any(grant.scope is Scope.CENTRAL for grant in runner_class.granted())
        }
        floor.budget(f"{name}-budget", plan, cloud)
        self.account = floor.account(f"{name}-account", plan, settings, cloud)
        organization = github.Provider(
            f"{name}-github",
            owner=plan.fleet.github.organization,
            base_url=f"{plan.fleet.github.url}/",
        )
        RunnerGroups(
            f"{name}-runner-groups",
            RunnerGroupsArgs(plan=plan),
            pulumi.ResourceOptions(parent=self, provider=organization),
        )
        self.register_outputs(
            {"promoter": self.promoter, "federated": dict(self.federated)}
        )


def _run(stack: str, config: pulumi.Config) -> None:
    root = project_root(Path.cwd())
    settings = _settings(stack, config)
    fleet_path = root / settings.values["fleet"]
    fleet = read_fleet(fleet_path).fleet
    pins = load_pins(fleet_path.with_name(PINS_NAME))
    _export_pins(stack, fleet, pins)
    if stack == CENTRAL_STACK:
        if fleet.central is None:
            message = "is missing, and stack central deploys it"
            raise InputError([Problem(str(fleet_path), 0, "central", message)])
        central = Central(
            CENTRAL_STACK, CentralArgs(plan_central(fleet, pins), settings)
        )
        pulumi.export("stores", _exported(central.stores.handles))
        pulumi.export("promoter", central.promoter)
        pulumi.export("federated", dict(central.federated))
        pulumi.export("account", dict(central.account))
        return
    if stack not in fleet.cells:
        message = f"the stack {stack!r} is not a cell of the fleet"
        raise InputError(
            [
                Problem(
                    str(fleet_path),
                    0,
                    "cells",
                    message,
                    found=stack,
                    allowed=", ".join([CENTRAL_STACK, *fleet.cells]),
                )
            ]
        )
    lock = read_lock(fleet_path.with_name(LOCK_NAME), fleet)
    plan = plan_cell(fleet, lock, fleet.cells[stack], pins)
    cell = RunnerFleet(stack, RunnerFleetArgs(plan, settings, _central_stores(fleet)))
    pulumi.export("cluster_name", cell.cluster_name)
    pulumi.export("stores", _exported(cell.stores))
    pulumi.export("roles", dict(cell.roles))
    pulumi.export("labels", [planned.label for planned in plan.classes])


def _settings(stack: str, config: pulumi.Config) -> StackSettings:
    """Read the stack's settings; all problems at once."""
    values = {
        name: value
        for name in ("fleet", "deployRole", *SETTINGS)
        if (value := config.get(name)) is not None
    }
    file = f"Pulumi.{stack}.yaml"
    problems: list[Problem] = []
    if not values.get("fleet"):
        message = "is missing: the fleet file, from the folder of Pulumi.yaml"
        problems.append(Problem(file, 0, "config.runfleet:fleet", message))
    known = ("fleet", "deployRole", *SETTINGS)
    for key in {**get_config_env(), **CONFIG.get()}:
        namespace, _, name = key.partition(":")
        if namespace == "runfleet" and name not in known:
            problems.append(
                Problem(
                    file,
                    0,
                    f"config.{key}",
                    "is not a known setting",
                    found=name,
                    allowed=", ".join(sorted(known)),
                    nearest=nearest(name, known),
                )
            )
    for name, (pattern, form) in _FORMS.items():
        value = values.get(name)
        if value is not None and not re.fullmatch(pattern, value):
            problems.append(
                Problem(
                    file,
                    0,
                    f"config.runfleet:{name}",
                    "is not valid",
                    found=value,
                    allowed=form,
                )
            )
    if problems:
        raise InputError(problems)
    return StackSettings(values.get("deployRole", ""), values)


def project_root(start: Path) -> Path:
    """Return the folder of ``Pulumi.yaml`` at or above a folder.

    Raises:
        InputError: There is none.
    """
    for folder in (start, *start.parents):
        if (folder / "Pulumi.yaml").exists():
            return folder
    raise InputError([Problem("Pulumi.yaml", 0, "", f"not found at or above {start}")])


def _has_stores(plan: CellPlan, planned: PlannedClass) -> bool:
    """Say whether a class has a grant on a store that the fleet has."""
    stores = plan.fleet.stores
    return any(
        grant.store in stores and stores[grant.store].in_scope(grant.scope)
        for grant in planned.grants
    )


def _registries(
    *stores: Mapping[StoreKind, StoreHandle],
) -> list[pulumi.Input[str]]:
    """Return the addresses of the fleet's own image registries."""
    return [
        handle.repository
        for handles in stores
        for handle in handles.values()
        if handle.repository is not None
    ]


def _api_addresses(cell: Cell, ranges: Sequence[str]) -> tuple[str, ...] | None:
    """Return where runner pods reach the API: its own ranges and its service."""
    if not ranges:
        return None
    network = cell.network.cidr if cell.network else ""
    return (*ranges, *(a for a in api_addresses(cell) if a != network))


def _central_stores(fleet: Fleet) -> dict[StoreKind, StoreHandle]:
    stores = list(fleet.stores_in(Scope.CENTRAL))
    if not stores:
        return {}
    name = f"{pulumi.get_organization()}/{pulumi.get_project()}/{CENTRAL_STACK}"
    exported = pulumi.StackReference(name).require_output("stores")
    return {
        store.kind: StoreHandle.imported(
            store.kind,
            Scope.CENTRAL,
            _entry(exported, str(store.kind)),
        )
        for store in stores
    }


def _entry(exported: pulumi.Output[Any], kind: str) -> pulumi.Output[Any]:
    def pick(value: Mapping[str, Any] | None) -> Any:
        return (value or {}).get(kind)

    return exported.apply(pick)


def _exported(handles: Mapping[StoreKind, StoreHandle]) -> dict[str, Any]:
    return {str(kind): handle.exported() for kind, handle in handles.items()}


def _export_pins(stack: str, fleet: Fleet, pins: Pins) -> None:
    """Export the unresolved pins; a real deployment is refused with them."""
    cell = fleet.cells.get(stack)
    names = pins.unresolved(str(cell.provider)) if cell is not None else []
    if names and not pulumi.runtime.is_dry_run():
        listed = "\n".join(f"  {name}: {pins.pins[name].source}" for name in names)
        raise UnresolvedPinsError(
            f"{len(names)} pins of stack {stack} are unresolved:\n{listed}\n"
            "  resolve them with: runfleet pins refresh"
        )
    pulumi.export("unresolved_pins", names)
