"""Every provider of the fleet file is plugged in, or listed as not."""

from __future__ import annotations

import inspect

import pytest

from contract.floors import NOT_PLUGGED_IN, PLUGGED_IN, cases, package_is_there
from runfleet.clouds import floor_for, protocols
from runfleet.spec.cells import Provider


def test_each_provider_stands_in_one_place() -> None:
    named = [*PLUGGED_IN, *NOT_PLUGGED_IN]
    assert sorted(named) == sorted(str(provider) for provider in Provider)
    assert {case.provider for case in cases()} == set(PLUGGED_IN)


@pytest.mark.parametrize("provider", list(Provider), ids=str)
def test_plugged_in(provider: Provider) -> None:
    if str(provider) not in NOT_PLUGGED_IN:
        assert package_is_there(str(provider))
        return
    pytest.skip(f"not plugged in: {NOT_PLUGGED_IN[str(provider)]}")


@pytest.mark.parametrize("provider", PLUGGED_IN)
def test_a_floor_gives_every_room(provider: str) -> None:
    floor = floor_for(Provider(provider))
    wanted = {
        name: inspect.signature(method)
        for name, method in vars(protocols.Floor).items()
        if inspect.isfunction(method) and not name.startswith("_")
    }
    assert "network" in wanted
    for name, signature in wanted.items():
        method = getattr(floor, name, None)
        assert method is not None, name
        given = list(inspect.signature(method).parameters)
        assert given == [p for p in signature.parameters if p != "self"], name


@pytest.mark.parametrize("provider", PLUGGED_IN)
def test_a_floor_serves_one_stack_and_can_be_asked_for_again(provider: str) -> None:
    """A process that rehearses two stacks asks twice."""
    first = floor_for(Provider(provider))
    second = floor_for(Provider(provider))
    assert type(first) is type(second)
    assert first is not second
