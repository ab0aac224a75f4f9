"""Run all benchmarks: ``make bench``, after ``make rehearse``."""

from __future__ import annotations

import platform
import sys

from benchmarks import growth, placement, policies, rehearsal, startup


def main() -> None:
    """Print the machine and every comparison."""
    print(f"Python {platform.python_version()} on {platform.machine()}", flush=True)
    for module in (startup, growth, placement, policies, rehearsal):
        module.run()


if __name__ == "__main__":
    sys.exit(main())
