"""What a cell on Azure must say; everything wrong is said at once."""

from __future__ import annotations

import pytest

from clouds.azure import fleets
from runfleet.clouds.azure.modes import Mode, mode_of
from runfleet.clouds.azure.settings import AzureSettings, zone_labels, zone_numbers
from runfleet.errors import InputError
from runfleet.spec.cells import Cell
from runfleet.spec.fleet import Fleet


def changed(old: str, new: str) -> Fleet:
    assert old in fleets.FLEET
    return fleets.fleet(text=fleets.FLEET.replace(old, new))


def cell_of(old: str, new: str) -> Cell:
    return changed(old, new).cells["azure"]


def test_zones_are_read_in_both_spellings() -> None:
    cells = fleets.fleet().cells
    assert zone_numbers(cells["azure"]) == ("1", "2")
    assert zone_labels(cells["azure"]) == ("eastus-1", "eastus-2")
    assert zone_numbers(cells["azure-gpu"]) == ("1", "2", "3")
    assert zone_labels(cells["azure-gpu"]) == ("eastus2-1", "eastus2-2", "eastus2-3")


def test_every_problem_is_said_at_once() -> None:
    cell = cell_of(
        f"account: {fleets.SUBSCRIPTION}\n    account_number: {fleets.TENANT}\n"
        '    region: eastus\n    zones: ["1", "2"]',
        'account: "123"\n    region: eastus\n    zones: ["1", westus-2]',
    )
    cell = cell.model_copy(
        update={"settings": {"redundancy": "GRS", "karpenter": 1, "budget_start": "2"}}
    )
    with pytest.raises(InputError) as caught:
        AzureSettings.of(cell)
    assert [(p.path, p.found) for p in caught.value.problems] == [
        ("cells.azure.account", "123"),
        ("cells.azure.account_number", ""),
        ("cells.azure.settings.budget_start", "'2'"),
        ("cells.azure.settings.karpenter", "1"),
        ("cells.azure.settings.redundancy", "'GRS'"),
        ("cells.azure.zones", "westus-2"),
    ]
    assert caught.value.exit_code == 2


def test_an_adopted_network_needs_its_subnets() -> None:
    vnet = f"{fleets.GROUP}/providers/Microsoft.Network/virtualNetworks/theirs"
    cell = cell_of("cidr: 10.20.0.0/16}", f"cidr: 10.20.0.0/16, adopt: {vnet}}}")
    with pytest.raises(InputError) as caught:
        AzureSettings.of(cell)
    assert [p.path.rpartition(".")[2] for p in caught.value.problems] == [
        "api_subnet",
        "endpoint_subnet",
        "node_subnet",
    ]


def test_a_budget_starts_on_the_first_of_a_month() -> None:
    cell = cell_of("budget_start: 2026-11-01", "budget_start: 2026-11-02")
    with pytest.raises(InputError, match="first day of a month"):
        AzureSettings.of(cell)


def test_the_mode_follows_from_the_shapes() -> None:
    assert mode_of(fleets.cell_plan()) is Mode.AUTO_PROVISIONED
    assert mode_of(fleets.cell_plan(cell="azure-gpu")) is Mode.CLUSTER_AUTOSCALED


@pytest.mark.parametrize(
    ("old", "new", "cell", "message"),
    [
        pytest.param(
            "kubelogin: workloadidentity",
            "autoscaling: auto-provisioned",
            "azure-gpu",
            "cannot be auto-provisioned: h100--standard-nc40ads-h100-v5 has GPUs",
            id="gpu",
        ),
        pytest.param(
            "deployers: [",
            "autoscaling: cluster-autoscaled, deployers: [",
            "azure",
            "cannot be cluster-autoscaled: das--standard-d16as-v6 is bought as spot",
            id="spot",
        ),
        pytest.param(
            "weight: 90, disk: 3000GiB, nvme: true}",
            "weight: 90, disk: 3000GiB, capacity: spot}",
            "azure-gpu",
            "is bought as spot; it must be because h100--",
            id="both",
        ),
    ],
)
def test_shapes_that_do_not_fit_are_refused(
    old: str, new: str, cell: str, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        mode_of(fleets.cell_plan(changed(old, new), cell))


def test_large_disks_need_pools() -> None:
    fleet = changed("disk: 600GiB}", "disk: 2049GiB}")
    plan = fleets.cell_plan(fleet)
    with pytest.raises(InputError, match="disk above 2048 GiB"):
        mode_of(plan)
