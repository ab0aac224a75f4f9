"""Labels reach everything that takes tags, and the list of what does is right."""

from __future__ import annotations

import importlib
import inspect
from typing import Any

import pulumi
import pytest

from clouds.azure.fleets import Recording
from runfleet.clouds.azure import aliases
from runfleet.clouds.azure.tags import TAGGABLE, UNTAGGED, label_transform, tags
from runfleet.spec.labels import KEYS

SHARED = {
    "ci_project": "demo",
    "ci_env": "prod",
    "ci_vendor": "shared",
    "ci_funder": "foundation",
    "ci_provider": "azure",
    "ci_role": "shared",
    "ci_runner_class": "shared",
    "ci_runner_label": "shared",
    "ci_trust": "shared",
    "ci_owner": "infra",
    "ci_stack": "azure",
    "ci_managed_by": "runfleet",
    "ci_cost_model": "on-demand",
}


def signature_of(token: str) -> set[str]:
    module, _, name = token.removeprefix("azure-native:").partition(":")
    loaded = importlib.import_module(f"pulumi_azure_native.{module}")
    return set(inspect.signature(getattr(loaded, name)._internal_init).parameters)


@pytest.mark.parametrize("token", sorted(TAGGABLE))
def test_the_sdk_gives_tags_to_what_is_tagged(token: str) -> None:
    assert "tags" in signature_of(token)


@pytest.mark.parametrize("token", sorted(UNTAGGED))
def test_the_sdk_gives_no_tags_to_the_others(token: str) -> None:
    assert "tags" not in signature_of(token)


def test_every_recorded_type_is_in_one_of_the_lists(
    cell: Recording, gpu: Recording, central: Recording
) -> None:
    made = {r.type for record in (cell, gpu, central) for r in record.native}
    assert made == {*TAGGABLE, *UNTAGGED}
    assert not TAGGABLE & set(UNTAGGED)


def test_recorded_tags_are_the_labels(cell: Recording, gpu: Recording) -> None:
    for resource in cell.native:
        if resource.type in UNTAGGED:
            assert "tags" not in resource.inputs
            continue
        found = resource.inputs["tags"]
        assert set(found) == set(KEYS), resource.name
        if "-identity-" not in resource.name:
            assert found == SHARED, resource.name
    spread = {r.inputs["tags"]["ci_stack"] for r in gpu.native if "tags" in r.inputs}
    assert spread == {"azure-gpu"}


def test_an_identity_carries_the_labels_of_its_class(cell: Recording) -> None:
    found = cell.inputs("azure-identity-nightlies-identity")["tags"]
    assert found == SHARED | {
        "ci_vendor": "amd",
        "ci_role": "publisher",
        "ci_runner_class": "nightlies",
        "ci_runner_label": "nightlies",
        "ci_trust": "trusted",
    }


def test_pools_carry_the_labels_of_what_they_cost(gpu: Recording) -> None:
    (pool,) = [r for r in gpu.of("containerservice:AgentPool") if "h100" in r.name]
    assert pool.inputs["tags"]["ci_cost_model"] == "reserved"
    system = gpu.inputs("azure-gpu-cluster-aks")["agentPoolProfiles"][0]
    assert system["tags"] == SHARED | {"ci_stack": "azure-gpu"}


def transformed(kind: str, props: dict[str, Any]) -> Any:
    args = pulumi.ResourceTransformArgs(
        custom=True,
        type_=kind,
        name="thing",
        props=props,
        opts=pulumi.ResourceOptions(),
    )
    return label_transform({"ci_project": "demo", "ci_env": "prod"})(args)


def test_what_a_resource_says_of_itself_wins() -> None:
    found = transformed("azure-native:keyvault:Vault", {"tags": {"ci_env": "test"}})
    assert found.props["tags"] == {"ci_env": "test", "ci_project": "demo"}


def test_other_types_are_left_alone() -> None:
    assert transformed("azure-native:network:Subnet", {}) is None
    assert transformed("kubernetes:core/v1:Namespace", {}) is None


@pytest.mark.parametrize(
    "labels",
    [
        pytest.param({"a<b": "c"}, id="alphabet"),
        pytest.param({"a": "c" * 257}, id="value"),
        pytest.param({"": "c"}, id="empty"),
        pytest.param({f"k{n}": "v" for n in range(51)}, id="count"),
    ],
)
def test_tags_that_azure_refuses(labels: dict[str, str]) -> None:
    with pytest.raises(ValueError, match=r"no Azure tag|51 tags"):
        tags(labels)


def test_old_types_are_no_aliases_and_others_stay(cell: Recording) -> None:
    old = pulumi.Alias(type_="azure-native:network/v20240101:Subnet")
    renamed = pulumi.Alias(name="old-name")
    moved = pulumi.Alias(type_="azure-native:network:InterfaceEndpoint")
    both = pulumi.Alias(name="x", type_="azure-native:network/v20240101:Subnet")
    args = pulumi.ResourceTransformationArgs(
        resource=None,  # type: ignore[arg-type]
        type_="azure-native:network:Subnet",
        name="subnet",
        props={},
        opts=pulumi.ResourceOptions(aliases=[old, renamed, moved, both]),
    )
    found = aliases.drop_old_types(args)
    assert found is not None
    assert found.opts.aliases == [renamed, moved, both]
    assert not any("/v20" in str(a) for r in cell.native for a in r.aliases)
