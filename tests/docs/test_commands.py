"""Every command in the docs is run here, or named with the reason why it is not."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    [ROOT / "README.md", *(ROOT / "docs").glob("*.md"), *ROOT.glob("playbooks/*/*.md")]
)

NOT_HERE = {
    "make": "run by .ci/run",
    "pulumi": "needs an account; the same program runs in every rehearsal",
    "aws": "needs an account",
    "gcloud": "needs an account",
    "az": "needs an account",
    "ibmcloud": "needs an account",
    "kubectl": "needs a cluster",
    "git": "changes the checkout",
    "gh": "needs an account",
    "export": "sets a variable of the reader's shell",
}
"""First words of commands that this test does not run, with the reason."""

EXPECTED = {"runfleet doctor": 3}
"""Exit codes other than 0, where they are what the page says."""

_BLOCK = re.compile(r"```(?:console|sh|bash)\n(.*?)```", re.DOTALL)


def commands() -> list[tuple[str, str]]:
    """Return every command of the docs with its page, in order."""
    found: list[tuple[str, str]] = []
    for page in PAGES:
        for block in _BLOCK.findall(page.read_text(encoding="utf-8")):
            text = block.replace("\\\n", " ")
            for line in text.splitlines():
                if line.strip().startswith("$ "):
                    command = line.strip()[2:].strip()
                    found.append((str(page.relative_to(ROOT)), command))
    return found


def test_every_command_is_run_or_excused() -> None:
    words = {command.split()[0] for _, command in commands()}
    assert "runfleet" in words
    assert words - {"runfleet", "python", "pip"} <= NOT_HERE.keys()


@pytest.mark.slow
def test_runfleet_commands_work(tmp_path: Path) -> None:
    checkout = tmp_path / "checkout"
    files = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    for name in files:
        source, target = ROOT / name, checkout / name
        if source.is_file():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target)
    runfleet = str(Path(sys.executable).with_name("runfleet"))
    failed: list[str] = []
    done: set[str] = set()
    ordered = sorted(
        {c for _, c in commands() if c.split()[0] == "runfleet"},
        key=lambda c: ("rehearse" not in c, c),
    )
    subprocess.run(
        [runfleet, "rehearse", "--no-emulate"], cwd=checkout, check=True,
        capture_output=True,
    )  # fmt: skip
    for command in ordered:
        line, _, target = command.partition(" > ")
        words = shlex.split(line)
        if any(word.startswith("<") for word in words):
            continue
        result = subprocess.run(
            [runfleet, *words[1:]], cwd=checkout, capture_output=True, text=True
        )
        if target:
            (checkout / target.strip()).write_text(result.stdout)
        done.add(command)
        expected = EXPECTED.get(line, 0)
        if result.returncode != expected:
            failed.append(f"{command}: exit {result.returncode}\n{result.stderr}")
    assert not failed, "\n".join(failed)
    assert len(done) >= 8
