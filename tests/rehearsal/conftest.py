"""Makes the tests' stack programs importable, however pytest imports tests."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))


def pytest_configure(config: pytest.Config) -> None:
    """Ignore coroutines that the Pulumi SDK leaves behind when a program fails."""
    config.addinivalue_line(
        "filterwarnings",
        "ignore:coroutine 'Output.* was never awaited:RuntimeWarning",
    )
