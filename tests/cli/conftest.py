"""Run the command line in this process, as a shell would see it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from runfleet.cli.main import run

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Outcome:
    """What a command printed, and its exit code."""

    code: int
    out: str
    err: str


Cli = Callable[..., Outcome]


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Cli:
    def call(*arguments: object) -> Outcome:
        monkeypatch.setattr(sys, "argv", ["runfleet", *map(str, arguments)])
        with pytest.raises(SystemExit) as end:
            run()
        captured = capsys.readouterr()
        code = end.value.code
        assert isinstance(code, int)
        return Outcome(code, captured.out, captured.err)

    return call
