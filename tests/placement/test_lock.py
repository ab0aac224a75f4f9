"""``placement.lock.yaml``: what is placed, and what a lock may not say."""

from __future__ import annotations

from pathlib import Path

import pytest

from runfleet.errors import InputError, Problem
from runfleet.placement.lock import (
    Lock,
    LockError,
    Placed,
    Rung,
    Unplaced,
    fleet_digest,
    make_lock,
    read_lock,
    write_lock,
)
from runfleet.spec.pools import Capacity
from spec.fleets import FULL, SMALL, changed, fleet_of, line_of

FLEET = fleet_of(FULL)


def written(tmp_path: Path, *changes: tuple[str, str]) -> tuple[Path, str]:
    """Write the lock of the full fleet with texts replaced, each at its first place."""
    file = tmp_path / "placement.lock.yaml"
    write_lock(make_lock(FLEET), file)
    text = file.read_text(encoding="utf-8")
    for old, new in changes:
        assert old in text
        text = text.replace(old, new, 1)
    file.write_text(text, encoding="utf-8")
    return file, text


def problems(file: Path, kind: type[InputError] = InputError) -> list[Problem]:
    with pytest.raises(InputError) as caught:
        read_lock(file, FLEET)
    assert type(caught.value) is kind
    assert caught.value.exit_code == 2
    return caught.value.problems


def test_make_lock() -> None:
    lock = make_lock(FLEET)
    assert lock.fleet_sha256 == fleet_digest(FLEET)
    assert [(p.runner_class, p.cell, p.pool) for p in lock.placed] == [
        ("l-x86iavx512-16-128", "aws", "c7i"),
        ("l-x86iavx512-8-32", "aws", "c7i"),
        ("rel-l-x86iavx512-8-64", "aws", "c7i"),
        ("l-x86iamx-22-225-h100", "aws", "p5"),
        ("l-x86iavx2-4-16", "gcp", "n2"),
    ]
    assert lock.unplaced == [
        Unplaced(runner_class="linux.rocm.gpu.gfx942.1", why="external")
    ]
    assert lock.in_cell("gcp") == [lock.placed[4]]
    assert lock.in_cell("own-lab") == []


def test_rungs_are_in_order_of_weight_and_release_is_apart() -> None:
    lock = make_lock(FLEET)
    assert lock.placed[0].rungs == [
        Rung(machine="c7i.24xlarge", weight=100, capacity=Capacity.ON_DEMAND),
        Rung(machine="c7i.12xlarge", weight=50, capacity=Capacity.SPOT),
    ]
    assert lock.placed[2].rungs == [
        Rung(machine="c7i.12xlarge", weight=100, capacity=Capacity.ON_DEMAND)
    ]


def test_a_class_whose_pool_is_in_no_cell_is_unplaced() -> None:
    text = changed(
        (
            "    machines: [{machine: c7i.large, disk: 100GiB}]\n",
            "    machines: [{machine: c7i.large, disk: 100GiB}]\n"
            "    exclude_regions: [us-east-1]\n",
        ),
        document=SMALL,
    )
    lock = make_lock(fleet_of(text))
    assert lock.placed == []
    assert lock.unplaced == [
        Unplaced(runner_class="l-x86iavx2-2-4", why="no cell has its pool")
    ]


def test_round_trip(tmp_path: Path) -> None:
    file, text = written(tmp_path)
    assert text.startswith("# Written by `runfleet place --write`;")
    assert read_lock(file, FLEET) == make_lock(FLEET)


def test_digest_follows_content_and_not_order_or_comments() -> None:
    moved = "# a comment\n" + changed(
        ("labels:\n  cost-center: ci\n", ""),
        ("  shared: {}\n", ""),
        ("  telemetry: {}\n", "  telemetry: {}\n  shared: {}\n"),
        ("version: 1\n", "labels: {cost-center: ci}\nversion: 1\n"),
    )
    assert fleet_digest(fleet_of(moved)) == fleet_digest(FLEET)
    for change in (("max: 40", "max: 41"), ("keep: 14d", "keep: 15d")):
        assert fleet_digest(fleet_of(changed(change))) != fleet_digest(FLEET)


def test_digest_tells_sizes_apart_by_a_byte() -> None:
    one, other = "64000000001", "64000000002"
    digests = {
        fleet_digest(
            fleet_of(changed(("memory: 225GiB", f"memory: {size[:-6]}.{size[-6:]}MB")))
        )
        for size in (one, other)
    }
    assert len(digests) == 2


def test_an_older_lock_is_refused(tmp_path: Path) -> None:
    file, text = written(tmp_path)
    newer = fleet_of(changed(("max: 40", "max: 41")))
    with pytest.raises(LockError) as caught:
        read_lock(file, newer)
    assert caught.value.problems == [
        Problem(
            str(file),
            line_of("fleet_sha256", text),
            "fleet_sha256",
            "the lock is older than the fleet file; run `runfleet place --write`",
        )
    ]


@pytest.mark.parametrize(
    ("old", "new", "path", "message", "found"),
    [
        (
            "runner_class: l-x86iavx2-4-16",
            "runner_class: l-x86",
            "placed[4].runner_class",
            "is not in the fleet file",
            "l-x86",
        ),
        ("cell: gcp", "cell: gpc", "placed[4].cell", "is not in the fleet file", "gpc"),
        ("pool: n2", "pool: n3", "placed[4].pool", "is not in the fleet file", "n3"),
        (
            "cell: gcp",
            "cell: aws",
            "placed[4].pool",
            "does not exist in cell aws",
            "n2",
        ),
        (
            "machine: n2-standard-32",
            "machine: n2-standard-8",
            "placed[4].rungs[0].machine",
            "is not a machine of pool n2 for this class",
            "n2-standard-8",
        ),
        (
            "runner_class: l-x86iavx512-8-32",
            "runner_class: l-x86iavx512-16-128",
            "placed[1].runner_class",
            "is placed in cell aws twice",
            "l-x86iavx512-16-128",
        ),
        (
            "runner_class: linux.rocm.gpu.gfx942.1",
            "runner_class: linux.rocm",
            "unplaced[0].runner_class",
            "is not in the fleet file",
            "linux.rocm",
        ),
    ],
)
def test_what_the_fleet_does_not_bear_out(
    tmp_path: Path, old: str, new: str, path: str, message: str, found: str
) -> None:
    file, _ = written(tmp_path, (old, new))
    first = [p for p in problems(file, LockError) if p.path]
    assert [(p.path, p.message, p.found) for p in first] == [(path, message, found)]
    assert first[0].line > 1


def test_a_class_that_the_lock_forgets(tmp_path: Path) -> None:
    file, _ = written(
        tmp_path, ("runner_class: linux.rocm.gpu.gfx942.1", "runner_class: linux.rocm")
    )
    assert Problem(
        str(file), 2, "", "says nothing of a class", "linux.rocm.gpu.gfx942.1"
    ) in problems(file, LockError)


def test_a_release_machine_is_no_rung_of_another_class(tmp_path: Path) -> None:
    text = changed(("c7i.12xlarge, weight: 100", "c7i.16xlarge, weight: 100"))
    fleet = fleet_of(text)
    lock = make_lock(fleet)
    swapped = lock.model_copy(
        update={
            "placed": [
                lock.placed[0].model_copy(update={"rungs": lock.placed[2].rungs}),
                *lock.placed[1:],
            ]
        }
    )
    file = tmp_path / "placement.lock.yaml"
    write_lock(swapped, file)
    with pytest.raises(LockError) as caught:
        read_lock(file, fleet)
    assert [(p.path, p.found, p.allowed) for p in caught.value.problems] == [
        ("placed[0].rungs[0].machine", "c7i.16xlarge", "c7i.24xlarge, c7i.12xlarge")
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", [(1, "", "is not valid", "a mapping")]),
        ("- a\n", [(1, "", "is not valid", "a mapping")]),
        (
            "version: 2\nfleet_sha256: 5\nplaced: [{cell: aws}]\nmore: 1\n",
            [
                (1, "version", "is not one of the allowed values", "1"),
                (2, "fleet_sha256", "is not valid", 'text; put it in quotes: "5"'),
                (3, "placed[0].pool", "is missing", ""),
                (3, "placed[0].rungs", "is missing", ""),
                (3, "placed[0].runner_class", "is missing", ""),
                (
                    4,
                    "more",
                    "is not a known key",
                    "fallbacks, fleet_sha256, machines, placed, pools, to, unplaced, "
                    "version",
                ),
            ],
        ),
        (
            "version: 1\nfleet_sha256: a\nversion: 1\n",
            [(3, "version", "stands twice (first on line 1)", "")],
        ),
        (
            "fleet_sha256: a\nplaced:\n- {runner_class: a, cell: b, pool: c, rungs: []"
            "}",
            [(3, "placed[0].rungs", "is not valid", "at least 1 of them")],
        ),
        (
            "\ta: 1\n",
            [
                (
                    1,
                    "",
                    "is not valid YAML: found character '\\t' that cannot "
                    "start any token",
                    "",
                )
            ],
        ),
    ],
)
def test_malformed(
    tmp_path: Path, text: str, expected: list[tuple[int, str, str, str]]
) -> None:
    file = tmp_path / "placement.lock.yaml"
    file.write_text(text, encoding="utf-8")
    found = [(p.line, p.path, p.message, p.allowed) for p in problems(file)]
    assert found == expected


def test_missing_lock(tmp_path: Path) -> None:
    file = tmp_path / "placement.lock.yaml"
    assert problems(file) == [Problem(str(file), 0, "", "there is no such file")]


def test_writing_replaces_in_one_step(tmp_path: Path) -> None:
    file, before = written(tmp_path)
    write_lock(Lock(fleet_sha256="0" * 64), file)
    assert file.read_text(encoding="utf-8") != before
    assert [entry.name for entry in tmp_path.iterdir()] == ["placement.lock.yaml"]


def test_a_failed_write_leaves_the_old_lock_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, before = written(tmp_path)

    def fail(self: Path, target: Path) -> Path:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(InputError) as caught:
        write_lock(Lock(fleet_sha256="0" * 64), file)
    message = "cannot be written: No space left on device"
    assert caught.value.problems == [Problem(str(file), 0, "", message)]
    assert file.read_text(encoding="utf-8") == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["placement.lock.yaml"]


def test_writing_into_a_folder_that_is_not_there(tmp_path: Path) -> None:
    file = tmp_path / "no" / "placement.lock.yaml"
    with pytest.raises(InputError, match="cannot be written: No such file"):
        write_lock(Lock(fleet_sha256="0" * 64), file)


def test_placed_keeps_what_it_is_given() -> None:
    rung = Rung(machine="m", weight=1, capacity=Capacity.SPOT)
    placed = Placed(runner_class="a", cell="b", pool="c", rungs=[rung])
    assert placed.model_dump(mode="json") == {
        "runner_class": "a",
        "cell": "b",
        "pool": "c",
        "rungs": [{"machine": "m", "weight": 1, "capacity": "spot"}],
    }
