"""The README's output is real: its numbers are those of the golden summary."""

from __future__ import annotations

import json
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
GOLDEN = ROOT / "tests" / "data" / "golden" / "pytorch-summary.json"


def test_the_numbers_of_the_readme_are_those_of_the_rehearsal() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    stated = {
        stack: (int(total), int(types))
        for stack, total, types in re.findall(
            r"stack (\S+): (\d+) resources of (\d+) types", text
        )
    }
    golden = json.loads(GOLDEN.read_text(encoding="utf-8"))
    expected = {
        stack: (found["resources"], len(found["types"]))
        for stack, found in golden.items()
    }
    assert stated
    assert stated == expected


def test_both_blocks_are_filled() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    for name in ("rehearse", "test"):
        block = text.partition(f"<!-- {name}:begin -->")[2]
        block = block.partition(f"<!-- {name}:end -->")[0]
        assert len(block.strip().splitlines()) >= 3
