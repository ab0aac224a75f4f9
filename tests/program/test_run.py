"""The program on wrong settings and files: a clear message, all problems at once."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pulumi
import pytest

from contract.records import write_project
from runfleet import program
from runfleet.errors import InputError, RunfleetError
from runfleet.rehearsal.runner import rehearse
from runfleet.spec.source import parse_source
from spec.fleets import SMALL, changed

SETTINGS = {"runfleet:fleet": "fleet.yaml"}
Run = Callable[..., Exception]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    write_project(root, SMALL, "aws")
    return root


@pytest.fixture
def refused(root: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run the program as the engine does, and return what it raises."""

    def run(stack: str = "aws", **settings: str) -> Exception:
        monkeypatch.chdir(root / "stacks")
        caught: list[Exception] = []

        def started() -> None:
            try:
                program.run()
            except Exception as error:
                caught.append(error)

        config = {f"runfleet:{name}": value for name, value in settings.items()}
        rehearse(
            started,
            project="runfleet",
            stack=stack,
            config=config,
            root=root,
            emulate=False,
        )
        assert caught, "the program ran"
        return caught[0]

    return run


def expect(error: Exception, kind: type[RunfleetError], message: str) -> Any:
    """Assert what a deployment shows, and return the error behind it."""
    assert isinstance(error, pulumi.RunError)
    assert str(error) == message
    assert isinstance(error.__cause__, kind)
    return error.__cause__


def test_an_unknown_stack(refused: Run, root: Path) -> None:
    error = refused("nowhere", fleet="fleet.yaml")
    cause = expect(
        error,
        InputError,
        f"{root}/fleet.yaml: cells: the stack 'nowhere' is not a cell of the fleet; "
        "found nowhere; allowed: central, aws",
    )
    assert cause.exit_code == 2


@pytest.mark.parametrize(
    ("fleet", "message"),
    [("other.yaml", "there is no such file"), ("stacks", "is a folder, not a file")],
)
def test_a_missing_fleet_file(
    refused: Run, root: Path, fleet: str, message: str
) -> None:
    error = refused(fleet=fleet)
    cause = expect(error, InputError, f"{root}/{fleet}: (document): {message}")
    assert cause.exit_code == 2


def test_no_fleet_setting(refused: Run) -> None:
    error = refused()
    assert isinstance(error, pulumi.RunError)
    assert "runfleet:fleet" in str(error)
    assert isinstance(error.__cause__, InputError), "exit code 2 needs an InputError"


def test_a_lock_older_than_the_fleet(refused: Run, root: Path) -> None:
    path = root / "fleet.yaml"
    path.write_text(changed(("scale: 0..5", "scale: 0..6"), document=SMALL))
    lock = root / "placement.lock.yaml"
    lines = lock.read_text().splitlines()
    line = next(n for n, text in enumerate(lines, 1) if "fleet_sha256" in text)
    cause = expect(
        refused(fleet="fleet.yaml"),
        InputError,
        f"{lock}:{line}: fleet_sha256: the lock is older than the fleet file; run "
        "`runfleet place --write`",
    )
    assert cause.exit_code == 2


def test_a_missing_lock(refused: Run, root: Path) -> None:
    lock = root / "placement.lock.yaml"
    lock.unlink()
    expect(
        refused(fleet="fleet.yaml"),
        InputError,
        f"{lock}: (document): there is no such file",
    )


def test_every_problem_of_the_fleet_file_at_once(refused: Run, root: Path) -> None:
    path = root / "fleet.yaml"
    text = changed(
        ("role: tester", "role: tster"), ("scale: 0..5", "scale: 5..0"), document=SMALL
    )
    path.write_text(text)
    error = refused(fleet="fleet.yaml")
    assert isinstance(error, pulumi.RunError)
    cause = error.__cause__
    assert isinstance(cause, InputError)
    name = "l-x86iavx2-2-4"
    source = parse_source(str(path), text)
    assert [(p.path.split(".")[:3], p.line) for p in cause.problems] == [
        (["runner_classes", name, key], source.line(("runner_classes", name, key)))
        for key in ("role", "scale")
    ]
    assert all(str(path) in line for line in str(error).splitlines())


def test_a_malformed_pins_file(refused: Run, root: Path) -> None:
    pins = root / "pins.lock"
    pins.write_text("version: 1\npins: {a: {}}\n")
    cause = expect(
        refused(fleet="fleet.yaml"),
        InputError,
        "\n".join(
            f"{pins}:2: pins.a.{key}: is missing"
            for key in ("kind", "source", "used_by", "value")
        ),
    )
    assert len(cause.problems) == 4


def test_central_of_a_fleet_without_one(refused: Run) -> None:
    error = refused("central", fleet="fleet.yaml")
    assert isinstance(error, pulumi.RunError)
    assert "central" in str(error)
    assert isinstance(error.__cause__, InputError)


def test_no_project_file(
    refused: Run, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "Pulumi.yaml").unlink()
    expect(
        refused(fleet="fleet.yaml"),
        InputError,
        f"Pulumi.yaml: (document): not found at or above {root / 'stacks'}",
    )


def test_a_rehearsal_says_the_same(root: Path) -> None:
    with pytest.raises(InputError) as caught:
        rehearse(
            root / "stacks",
            project="runfleet",
            stack="nowhere",
            config=SETTINGS,
            root=root,
            emulate=False,
        )
    assert caught.value.exit_code == 2
    assert "the stack 'nowhere' is not a cell of the fleet" in str(caught.value)


NOT_INSTALLED = """
import sys
sys.modules["pulumi_aws"] = None
from runfleet.clouds import floor_for
from runfleet.errors import MissingError
from runfleet.spec.cells import Provider
try:
    floor_for(Provider.AWS)
except MissingError as error:
    print(error)
"""


def test_a_floor_without_its_sdk() -> None:
    done = subprocess.run(
        [sys.executable, "-c", NOT_INSTALLED],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == (
        "the SDK of aws is not installed (pulumi_aws)\n"
        "  get it with: pip install 'runfleet[aws]'\n"
    ), done.stderr.strip().splitlines()[-1]


def test_a_misspelt_setting_names_the_nearest(refused: Run) -> None:
    error = refused(fleet="fleet.yaml", deployRol="x", payerAccount="perhaps")
    assert isinstance(error.__cause__, InputError)
    text = str(error)
    assert "config.runfleet:deployRol: is not a known setting" in text
    assert "did you mean deployRole?" in text
    assert "config.runfleet:payerAccount: is not valid; found perhaps" in text
