"""Node pools and node classes pass Karpenter's own definitions, rules included.

The stacks bring minimal definitions of Karpenter's kinds. Upstream's have rules in
CEL that the API server evaluates; here every recorded object goes through them. They
come from the Go module of the very version that the stack installs, through the
standard `go` tool, and are read from Go's own module cache.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import Path

import pytest

from cluster.conftest import CELLS
from cluster.harness.applied import install
from cluster.harness.binaries import Binaries, Unavailable, module_folder, stop
from cluster.harness.client import Api, Refused
from cluster.harness.control_plane import control_plane
from cluster.harness.recorded import CHART, Recorded, definitions, waves
from runfleet.rehearsal.record import Record

MODULE = "github.com/aws/karpenter-provider-aws"
KINDS = ("EC2NodeClass", "NodePool")


@pytest.fixture(scope="module")
def upstream(binaries: Binaries, records: dict[str, Record]) -> Path:
    [version] = {
        chart.inputs["version"]
        for record in records.values()
        for chart in record.by_type(CHART)
        if chart.name.endswith("-karpenter")
    }
    try:
        return module_folder(MODULE, f"v{version}") / "pkg" / "apis" / "crds"
    except Unavailable as missing:
        stop(f"no definitions of Karpenter: {missing}")


@pytest.fixture(scope="module")
def api(
    request: pytest.FixtureRequest, binaries: Binaries, upstream: Path
) -> Iterator[Api]:
    session = request.session
    found = definitions(upstream)
    with control_plane(binaries, lambda: bool(session.testsfailed)) as api:
        install(api, [one for one in found if one["spec"]["names"]["kind"] in KINDS])
        yield api


@pytest.mark.parametrize("stack", CELLS)
def test_every_pool_passes_upstreams_rules(
    api: Api, records: dict[str, Record], stack: str
) -> None:
    found = _objects(records[stack])
    assert {one.kind for one in found} == set(KINDS)
    refused = {}
    for one in found:
        try:
            api.create(one.object)
        except Refused as error:
            refused[one.name] = str(error)
    assert not refused


def test_upstreams_rules_are_in_force(api: Api, records: dict[str, Record]) -> None:
    found = _objects(records[CELLS[0]])
    pool = copy.deepcopy(next(f.object for f in found if f.kind == "NodePool"))
    pool["spec"]["template"]["spec"]["requirements"].append(
        {"key": "karpenter.sh/nodepool", "operator": "In", "values": ["x"]}
    )
    with pytest.raises(Refused, match="restricted"):
        api.create(pool)


def _objects(record: Record) -> list[Recorded]:
    return [one for wave in waves(record) for one in wave if one.kind in KINDS]
