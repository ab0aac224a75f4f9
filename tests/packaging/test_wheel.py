"""The built wheel in a fresh environment: what a fork has, and nothing else.

The wheel is installed into a new virtual environment. Its dependencies are lent by the
environment of the tests through ``PYTHONPATH``; path files (``.pth``) are not read
there, so the checkout itself is not importable.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def runfleet(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir",
         str(folder), str(ROOT)],
        check=True,
        capture_output=True,
    )  # fmt: skip
    (wheel,) = folder.glob("runfleet-*.whl")
    environment = folder / "venv"
    venv.create(environment, with_pip=False)
    python = str(environment / "bin" / "python")
    subprocess.run(
        [sys.executable, "-m", "pip", "--python", python, "install", "--no-deps",
         "--no-index", "--quiet", str(wheel)],
        check=True,
    )  # fmt: skip
    return [python, "-m", "runfleet"]


def run(
    command: list[str], *arguments: str, cwd: Path
) -> subprocess.CompletedProcess[str]:
    lent = sysconfig.get_paths()["purelib"]
    return subprocess.run(
        [*command, *arguments],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": lent},
        capture_output=True,
        text=True,
    )


def test_it_is_the_wheel_that_runs(runfleet: list[str], tmp_path: Path) -> None:
    code = "import runfleet, runfleet_policies; print(runfleet.__file__)"
    found = run([runfleet[0], "-c", code], cwd=tmp_path)
    assert found.returncode == 0, found.stderr
    assert not found.stdout.startswith(str(ROOT))


def test_importing_is_cheap(runfleet: list[str], tmp_path: Path) -> None:
    code = (
        "import sys, runfleet, runfleet.spec, runfleet.placement;"
        "print([m for m in sys.modules if m.split('.')[0] in"
        " ('pulumi', 'pulumi_aws', 'boto3', 'moto', 'rich')])"
    )
    found = run([runfleet[0], "-c", code], cwd=tmp_path)
    assert found.stdout.strip() == "[]", found.stderr


def test_a_folder_with_data_only_rehearses(runfleet: list[str], tmp_path: Path) -> None:
    code = (
        "from runfleet.playbooks import playbook_path; print(playbook_path('pytorch'))"
    )
    found = run([runfleet[0], "-c", code], cwd=tmp_path)
    playbook = Path(found.stdout.strip())
    assert not str(playbook).startswith(str(ROOT)), found.stderr
    fork = tmp_path / "fork"
    shutil.copytree(playbook, fork / "fleet")
    (fork / "stacks").mkdir()
    (fork / "stacks" / "__main__.py").write_text(
        "from runfleet import program\n\nprogram.run()\n"
    )
    (fork / "Pulumi.yaml").write_text(
        "name: fork\nruntime: python\nmain: stacks\nstackConfigDir: stacks\n"
    )
    for stack in ("central", "aws"):
        (fork / "stacks" / f"Pulumi.{stack}.yaml").write_text(
            "config:\n  runfleet:fleet: fleet/fleet.yaml\n"
        )
    checked = run(runfleet, "check", "fleet/fleet.yaml", cwd=fork)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    rehearsed = run(runfleet, "rehearse", "--no-emulate", "--json", cwd=fork)
    summaries = {s["stack"]: s for s in json.loads(rehearsed.stdout)}
    assert summaries["aws"]["error"] == "", rehearsed.stderr
    assert summaries["aws"]["class_count"] == 44
    assert (fork / "out" / "aws" / "record.json").exists()
