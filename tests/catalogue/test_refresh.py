"""Refreshing pins: each kind of source, failures, and what is written."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import httpx

from runfleet.catalogue.pins import load_pins
from runfleet.catalogue.refresh import PinChange, Sources, refresh_pins

TODAY = dt.date(2026, 12, 1)


class Eks:
    def describe_addon_versions(
        self, addonName: str, kubernetesVersion: str
    ) -> dict[str, Any]:
        assert kubernetesVersion == "1.35"
        versions = [
            {"addonVersion": "v9", "compatibilities": [{"defaultVersion": False}]},
            {
                "addonVersion": f"v1-{addonName}",
                "compatibilities": [{"defaultVersion": True}],
            },
        ]
        return {"addons": [{"addonVersions": versions}]}


class Ssm:
    def get_parameter(self, Name: str) -> dict[str, Any]:
        assert "/1.35/amazon-linux-2023/" in Name
        return {"Parameter": {"Value": "1.35.9-20261120"}}


def answer(request: httpx.Request) -> httpx.Response:
    if request.url.path.endswith("/releases/latest"):
        return httpx.Response(200, json={"tag_name": "v7.8.9"})
    return httpx.Response(200, json={"sha": "a" * 40})


def sources(handler: Any = answer) -> Sources:
    client = httpx.Client(transport=httpx.MockTransport(handler))
    return Sources(http=client, eks=Eks, ssm=Ssm)


def test_every_kind_of_source(tmp_path: Path) -> None:
    lock = tmp_path / "pins.lock"
    changes = {c.name: c for c in refresh_pins(lock, sources(), TODAY)}
    assert changes["eks-addon-vpc-cni"].after == "v1-vpc-cni"
    assert changes["eks-image-al2023"].after == "al2023@v20261120"
    assert changes["eks-node-release"].after == "1.35.9-20261120"
    assert changes["karpenter-chart"].after == "7.8.9"
    assert changes["action-checkout"].after == "a" * 40
    pins = load_pins(lock)
    assert pins.value("karpenter-chart") == "7.8.9"
    assert pins.pins["karpenter-chart"].read == TODAY
    assert pins.value("eks-version") == "1.35", "what is not refreshed stays"
    assert refresh_pins(lock, sources(), TODAY) == []


def test_a_source_that_fails_leaves_the_pin(tmp_path: Path) -> None:
    lock = tmp_path / "pins.lock"

    def refuse(request: httpx.Request) -> httpx.Response:
        return httpx.Response(403)

    class Down:
        def describe_addon_versions(self, **_: str) -> dict[str, Any]:
            raise RuntimeError("no route")

        def get_parameter(self, **_: str) -> dict[str, Any]:
            raise RuntimeError("no route")

    client = httpx.Client(transport=httpx.MockTransport(refuse))
    changes = refresh_pins(lock, Sources(client, Down, Down), TODAY)
    assert changes
    assert all(change.failed for change in changes)
    assert not lock.exists()


def test_a_change_says_what_happened() -> None:
    assert str(PinChange("a", "1", "2")) == "a: 1 -> 2"
    assert str(PinChange("a", "1", "1", "down")) == "a: stays 1: down"
