"""The golden summary of the PyTorch fleet: how many resources of which type per stack.

The summary is small enough to read in a review: a change that adds or removes a
resource shows as one line in the difference. When that is what you wanted, write it
anew and commit it together with the change::

    python tests/program/golden.py

The command rehearses all stacks of the checkout without emulators, which records the
same bytes as with them, and needs about a minute and no cloud account.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from runfleet.rehearsal.record import Record, read_record
from runfleet.rehearsal.stacks import rehearse_stacks

ROOT = Path(__file__).resolve().parents[2]
STACKS = ("central", "aws", "aws-ue2")
FLEET = ROOT / "playbooks" / "pytorch" / "fleet.yaml"
GOLDEN = ROOT / "tests" / "data" / "golden" / "pytorch-summary.json"


def rehearse_pytorch(out: Path, emulate: bool) -> dict[str, Record]:
    """Rehearse all stacks of the checkout and return their records.

    Raises:
        RuntimeError: A stack does not rehearse; the message says why.
    """
    outcomes = rehearse_stacks(ROOT, STACKS, out, emulate=emulate)
    failed = [f"{o.stack}: {o.error}" for o in outcomes if o.exit_code]
    if failed:
        raise RuntimeError("\n".join(failed))
    return {stack: read_record(out / stack / "record.json") for stack in STACKS}


def summary(records: Mapping[str, Record]) -> dict[str, Any]:
    """Return the number of resources by type, and in all, of each stack."""
    counts = {stack: record.count_by_type() for stack, record in records.items()}
    return {
        stack: {"resources": sum(types.values()), "types": types}
        for stack, types in counts.items()
    }


def read_golden() -> dict[str, Any]:
    """Return the committed summary."""
    return json.loads(GOLDEN.read_text(encoding="utf-8"))


def main() -> int:
    """Write the summary anew and say which counts changed."""
    old = read_golden() if GOLDEN.exists() else {}
    with tempfile.TemporaryDirectory() as folder:
        try:
            new = summary(rehearse_pytorch(Path(folder), emulate=False))
        except RuntimeError as error:
            print(error, file=sys.stderr)
            return 1
    for stack, found in new.items():
        before = old.get(stack, {}).get("types", {})
        for kind in sorted({*before, *found["types"]}):
            was, now = before.get(kind, 0), found["types"].get(kind, 0)
            if was != now:
                print(f"{stack}: {kind}: {was} -> {now}")
        print(f"{stack}: {found['resources']} resources")
    GOLDEN.parent.mkdir(parents=True, exist_ok=True)
    GOLDEN.write_text(json.dumps(new, indent=2) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
