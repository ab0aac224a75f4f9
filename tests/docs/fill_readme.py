"""Put real command output into README.md.

Run from the root of the checkout, after the commands::

    make rehearse > rehearse.txt 2>&1; make test > test.txt 2>&1
    .venv/bin/python tests/docs/fill_readme.py rehearse.txt test.txt

Long tables of resource types are shortened and say so; nothing else is changed.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

README = Path(__file__).parents[2] / "README.md"
KEEP = 4


def shortened(text: str) -> str:
    """Return output with only the first rows of each table of types."""
    lines: list[str] = []
    rows = 0
    in_table = False
    for line in text.splitlines():
        if line.startswith("type  "):
            in_table, rows = True, 0
            lines.append(re.sub(r"  +", "  ", line))
            continue
        if in_table and line.strip():
            rows += 1
            if rows <= KEEP:
                lines.append(re.sub(r"  +", "  ", line))
            continue
        if in_table:
            lines.append(f"... {rows - KEEP} more types")
            in_table = False
        lines.append(line.rstrip())
    return "\n".join(lines).strip()


def fill(name: str, text: str) -> None:
    """Replace what stands between a block's markers."""
    content = README.read_text(encoding="utf-8")
    begin, end = f"<!-- {name}:begin -->", f"<!-- {name}:end -->"
    head, _, rest = content.partition(begin)
    _, _, tail = rest.partition(end)
    block = f"{begin}\n```text\n{text}\n```\n{end}"
    README.write_text(f"{head}{block}{tail}", encoding="utf-8")


def main(rehearse: str, test: str) -> None:
    """Fill both blocks."""
    output = Path(rehearse).read_text(encoding="utf-8")
    fill("rehearse", shortened(output[output.index("stack central") :]))
    last = Path(test).read_text(encoding="utf-8").strip().splitlines()[-1]
    fill("test", last)


if __name__ == "__main__":
    main(*sys.argv[1:])
