"""The thin classes against the provider's schema, nested names included."""

from __future__ import annotations

import base64
import dataclasses
import inspect
import json
import sys
import types
import typing
from typing import Any

import pulumi
import pytest

from clouds.ibm.fleets import (
    cell_program,
    central_of,
    central_program,
    imported,
    one,
    plan_of,
    run,
)
from clouds.ibm.schema import inputs_of, problems, schema
from runfleet.clouds.ibm import package as ibm_package
from runfleet.clouds.ibm.package import IbmResource, camel, wire
from runfleet.clouds.ibm.resources import access, containers, storage, vpc
from runfleet.clouds.ibm.resources.containers import (
    ContainerVpcWorkerPool,
    WorkerTaint,
    WorkerZone,
)
from runfleet.clouds.ibm.resources.vpc import IsVpc
from runfleet.rehearsal.record import Record

CLASSES = [
    found
    for module in (access, containers, storage, vpc)
    for found in vars(module).values()
    if isinstance(found, type)
    and issubclass(found, IbmResource)
    and found is not IbmResource
]


T = typing.TypeVar("T")


class Given(typing.Generic[T]):
    """Stands for ``pulumi.Input`` and ``Output``, which name each other by text."""


def hints_of(found: Any) -> dict[str, Any]:
    """Return annotations as types."""
    stand_in = types.SimpleNamespace(Input=Given, Output=Given, ResourceOptions=Given)
    names = {**vars(sys.modules[found.__module__]), "pulumi": stand_in}
    return {name: eval(text, names) for name, text in found.__annotations__.items()}


def arguments(found: type[IbmResource]) -> dict[str, inspect.Parameter]:
    """Return the arguments of a class, without the logical name and the options."""
    parameters = dict(inspect.signature(found).parameters)
    del parameters["resource_name"], parameters["opts"]
    return parameters


def kinds(annotation: Any) -> set[Any]:
    """Return every class inside an annotation."""
    parts = typing.get_args(annotation)
    if not parts:
        return {annotation}
    return {kind for part in parts for kind in kinds(part)}


def nested(annotation: Any) -> type | None:
    """Return the data class inside an annotation, if there is one."""
    found = {k for k in kinds(annotation) if dataclasses.is_dataclass(k)}
    assert len(found) <= 1
    return found.pop() if found else None


def listed(annotation: Any) -> bool:
    """Say whether an annotation is a sequence, or may be one."""
    origin = typing.get_origin(annotation)
    if origin in (typing.Union, types.UnionType):
        return any(listed(part) for part in typing.get_args(annotation))
    text = str(annotation)
    return "Sequence" in text and text.index("Sequence") < 60


def test_there_are_classes_for_every_kind_that_a_fleet_needs() -> None:
    assert len(CLASSES) == 23
    assert {found.TOKEN for found in CLASSES} <= set(schema())


@pytest.mark.parametrize("found", CLASSES, ids=lambda c: c.__name__)
def test_every_argument_is_one_of_the_provider(found: type[IbmResource]) -> None:
    known = inputs_of(found.TOKEN)
    names = {camel(name) for name in arguments(found)}
    assert names <= set(known), names - set(known)
    kind = found.TOKEN.rpartition(":")[2]
    assert kind == found.__name__
    assert not names & {"accessTags", "enableSecureByDefault", "timeouts"}


@pytest.mark.parametrize("found", CLASSES, ids=lambda c: c.__name__)
def test_what_the_provider_requires_is_required(found: type[IbmResource]) -> None:
    entry = schema()[found.TOKEN]
    required = {
        camel(name)
        for name, parameter in arguments(found).items()
        if parameter.default is inspect.Parameter.empty
    }
    by_terraform = {
        name for name, spec in entry["inputs"].items() if spec.get("required")
    }
    assert {*entry["required"], *by_terraform} <= required


@pytest.mark.parametrize("found", CLASSES, ids=lambda c: c.__name__)
def test_nested_objects_have_the_names_of_the_provider(
    found: type[IbmResource],
) -> None:
    hints = hints_of(found.__init__)
    known = inputs_of(found.TOKEN)
    for name in arguments(found):
        kind = known[camel(name)]
        inner = kind[0] if isinstance(kind, list) else kind
        data = nested(hints[name])
        assert (data is not None) == (isinstance(inner, dict) and "object" in inner)
        if data is None:
            continue
        assert isinstance(kind, list) == listed(hints[name]), name
        check_data_class(data, inner)


def check_data_class(data: type, kind: dict[str, Any]) -> None:
    """Hold the fields of a data class against a nested object, to any depth."""
    hints = hints_of(data)
    fields = {camel(field.name): field for field in dataclasses.fields(data)}
    assert set(fields) <= set(kind["object"]), data
    assert set(kind["required"]) <= set(fields), data
    for wire_name, field in fields.items():
        inner = kind["object"][wire_name]
        inner = inner[0] if isinstance(inner, list) else inner
        deeper = nested(hints[field.name])
        assert (deeper is not None) == (isinstance(inner, dict) and "object" in inner)
        if deeper is not None:
            check_data_class(deeper, inner)


@pytest.mark.parametrize("found", CLASSES, ids=lambda c: c.__name__)
def test_every_output_is_one_of_the_provider(found: type[IbmResource]) -> None:
    known = schema()[found.TOKEN]["outputs"]
    for name in found.OUTPUTS:
        assert camel(name) in known, name
    declared = {
        name for name, hint in found.__annotations__.items() if "Output" in str(hint)
    }
    assert set(found.OUTPUTS) <= declared
    assert declared - set(found.OUTPUTS) <= set(arguments(found))


APPLIED_ONCE = {
    "ContainerVpcCluster": {
        "flavor",
        "zones",
        "workerCount",
        "workerLabels",
        "operatingSystem",
        "secondaryStorage",
        "taints",
        "entitlement",
        "cosInstanceCrn",
        "kmsInstanceId",
        "crk",
        "kmsAccountId",
        "securityGroups",
        "hostPoolId",
    },
    "ContainerVpcWorkerPool": {
        "entitlement",
        "kmsInstanceId",
        "crk",
        "kmsAccountId",
        "securityGroups",
    },
    "IsVpc": {"noSgAclRules"},
}
"""``DiffSuppressFunc: flex.ApplyOnce`` in the provider's resources, without
``wait_till`` and ``import_on_create``, which describe nothing that lasts."""


def test_what_the_provider_applies_once_forces_a_replacement() -> None:
    found = {c.__name__: {camel(n) for n in c.APPLY_ONCE} for c in CLASSES}
    assert {name: names for name, names in found.items() if names} == APPLIED_ONCE
    for found_class in CLASSES:
        assert set(found_class.APPLY_ONCE) <= set(arguments(found_class))


def pool_with(
    *, security_groups: list[str], labels: dict[str, str] | None = None
) -> Record:
    def program() -> None:
        ContainerVpcWorkerPool(
            "pool",
            cluster="cluster",
            vpc_id="vpc",
            worker_pool_name="pool",
            flavor="bx2.4x16",
            zones=[WorkerZone("us-south-1", "subnet")],
            worker_count=1,
            labels=labels,
            taints=[WorkerTaint("key", "value", "NoSchedule")],
            security_groups=security_groups,
        )

    return run(program)


def test_the_trigger_is_set_from_the_first_deployment_and_follows_the_inputs() -> None:
    first = one(pool_with(security_groups=["a"]), "pool")
    assert json.loads(first.replacement_trigger) == {
        "crk": None,
        "entitlement": None,
        "kmsAccountId": None,
        "kmsInstanceId": None,
        "securityGroups": ["a"],
    }
    changed = one(pool_with(security_groups=["a", "b"]), "pool")
    assert changed.replacement_trigger != first.replacement_trigger
    other = one(pool_with(security_groups=["a"], labels={"x": "y"}), "pool")
    assert other.replacement_trigger == first.replacement_trigger


def test_an_existing_thing_is_read_without_arguments_or_trigger() -> None:
    def program() -> None:
        pulumi.export("crn", IsVpc.existing("vpc", "r006-abc").crn)

    made = run(program)
    vpc_read = one(made, "vpc")
    assert (vpc_read.id, vpc_read.external) == ("r006-abc", True)
    assert (dict(vpc_read.inputs), vpc_read.replacement_trigger) == ({}, None)
    assert made.outputs["crn"].endswith(":vpc:r006-abc")


def test_wire_names_reach_every_depth_and_unset_fields_stay_out() -> None:
    condition = access.Condition("{{resource.attributes.path}}", "stringMatch", ["a/*"])
    rule = access.RuleCondition(operator="and", conditions=[condition])
    assert wire([rule]) == [
        {
            "operator": "and",
            "conditions": [
                {
                    "key": "{{resource.attributes.path}}",
                    "operator": "stringMatch",
                    "values": ["a/*"],
                }
            ],
        }
    ]
    assert wire({"runfleet/part_of": "x"}) == {"runfleet/part_of": "x"}
    assert camel("vpe_service_endpoint_url") == "vpeServiceEndpointUrl"


def test_an_output_that_is_not_there_is_no_attribute() -> None:
    caught: list[str] = []

    def program() -> None:
        found = IsVpc("vpc", name="vpc")
        try:
            getattr(found, "floating_ip")  # noqa: B009 - hidden from the type checker
        except AttributeError as error:
            caught.append(str(error))

    run(program)
    assert caught == ["IsVpc has no attribute 'floating_ip'"]


@pytest.fixture(scope="module")
def records() -> list[Record]:
    central = run(central_program(central_of()), "central")
    return [central, run(cell_program(plan_of(), central=imported(central)))]


def test_every_registered_input_is_one_of_the_provider(records: list[Record]) -> None:
    wrong = {
        resource.name: found
        for record in records
        for resource in record.resources
        if resource.type.startswith("ibm:")
        and (found := problems(resource.type, resource.inputs))
    }
    assert wrong == {}


def test_the_check_finds_a_misspelt_nested_key() -> None:
    zones = [{"name": "us-south-1", "subnet_id": "x"}]
    token = "ibm:index/containerVpcWorkerPool:ContainerVpcWorkerPool"
    inputs = {
        "cluster": "c",
        "flavor": "f",
        "vpcId": "v",
        "workerCount": "1",
        "workerPoolName": "p",
        "zones": zones,
        "taint": [],
    }
    assert problems(token, inputs) == [
        "workerCount is no number: '1'",
        "zones[0].subnetId is missing",
        "zones[0].subnet_id is unknown",
        "taint is unknown",
    ]


def test_one_package_reference_for_all_and_the_same_in_every_run(
    records: list[Record],
) -> None:
    references = {
        resource.package_ref
        for record in records
        for resource in record.resources
        if resource.type.startswith(("ibm:", "pulumi:providers:ibm"))
    }
    assert len(references) == 1
    assert references.pop().startswith("ibm@2.5.0#")


def test_the_package_parameter_is_the_published_provider() -> None:
    assert json.loads(base64.b64decode(ibm_package.PARAMETER)) == {
        "remote": {
            "url": "registry.opentofu.org/ibm-cloud/ibm",
            "version": "2.5.0",
        }
    }
