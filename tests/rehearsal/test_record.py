"""The record's file: round trip, exact bytes, and what is refused."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from runfleet.errors import InputError
from runfleet.rehearsal.record import (
    FORMAT,
    Record,
    ResourceRecord,
    dump_record,
    read_record,
    write_record,
)
from runfleet.rehearsal.values import UNKNOWN, secret

ROOT = ResourceRecord(
    urn="urn:root", type="pulumi:pulumi:Stack", name="p-s", custom=False
)
BUCKET = ResourceRecord(
    urn="urn:bucket",
    type="aws:s3/bucket:Bucket",
    name="bucket",
    parent="urn:root",
    id="bucket-1",
    inputs={"tags": {"b": "2", "a": "1"}, "size": 3, "password": secret("[secret]")},
    outputs={"arn": "arn:aws:s3:::bucket-1"},
    dependencies=("urn:root",),
    property_dependencies={"tags": ("urn:root",)},
    protect=True,
    delete_before_replace=False,
    replacement_trigger=[1, "x"],
    custom_timeouts={"create": "5m"},
)
READ = ResourceRecord(
    urn="urn:read", type="aws:s3/bucket:Bucket", name="read", external=True
)
RECORD = Record(
    project="p",
    stack="s",
    sources={"fleet.yaml": "00"},
    resources=(ROOT, BUCKET, READ),
    outputs={"arn": "arn:aws:s3:::bucket-1"},
    references=("central",),
    invokes=({"tok": "t", "args": {}, "result": {"a": 1}},),
    pins=({"name": "chart"},),
    unresolved_pins=("image",),
)


def test_what_is_written_is_read_back_equal(tmp_path: Path) -> None:
    path = tmp_path / "out" / "s" / "record.json"
    write_record(RECORD, path)
    assert read_record(path) == RECORD
    assert dump_record(read_record(path)) == path.read_text()


def test_key_order_of_the_data_does_not_reach_the_file() -> None:
    other = replace(BUCKET, inputs=dict(reversed(BUCKET.inputs.items())))
    swapped = replace(RECORD, resources=(ROOT, other, READ))
    assert dump_record(swapped) == dump_record(RECORD)


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "record.json"
    write_record(RECORD, path)
    before = path.read_text()
    broken = replace(RECORD, outputs={"a": object()})
    with pytest.raises(TypeError):
        write_record(broken, path)
    assert path.read_text() == before
    assert [found.name for found in tmp_path.iterdir()] == ["record.json"]


def test_helpers() -> None:
    assert RECORD.by_urn("urn:bucket") is BUCKET
    assert RECORD.by_type("aws:s3/bucket:Bucket") == (BUCKET, READ)
    assert RECORD.children("urn:root") == (BUCKET,)
    assert RECORD.children("urn:bucket") == ()
    assert RECORD.count_by_type() == {"aws:s3/bucket:Bucket": 1}


def test_unknowns_name_the_resource_and_path() -> None:
    unknown = replace(BUCKET, inputs={"a": [{"b": f"x{UNKNOWN}"}], "c": "known"})
    record = replace(RECORD, resources=(unknown,))
    assert list(record.unknowns()) == [("urn:bucket", "a[0].b")]


def _damaged(change: dict[str, object]) -> str:
    return json.dumps({**json.loads(dump_record(RECORD)), **change})


@pytest.mark.parametrize(
    ("text", "messages"),
    [
        pytest.param("{", ["1: (document): not JSON"], id="not-json"),
        pytest.param("[]", ["a record is a JSON object"], id="not-an-object"),
        pytest.param(
            "{}", [f"format: not a record: format is not {FORMAT}"], id="empty"
        ),
        pytest.param(
            _damaged({"format": "runfleet-record/2"}),
            ["format: the record has format runfleet-record/2, newer than"],
            id="newer",
        ),
        pytest.param(
            _damaged({"format": "runfleet-record/0"}),
            ["format: the record has the unknown format"],
            id="older",
        ),
        pytest.param(
            _damaged({"stack": 1, "colour": "red"}),
            ["colour: unknown member", "stack: has the wrong type int"],
            id="all-problems-at-once",
        ),
        pytest.param(
            _damaged({"resources": [{"urn": "u", "type": "t"}]}),
            ["resources[0].name: missing"],
            id="resource-without-name",
        ),
    ],
)
def test_bad_records_are_refused(
    tmp_path: Path, text: str, messages: list[str]
) -> None:
    path = tmp_path / "record.json"
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        read_record(path)
    assert caught.value.exit_code == 2
    assert len(caught.value.problems) == len(messages)
    for message, problem in zip(messages, caught.value.problems, strict=True):
        assert message in str(problem)
        assert str(path) in str(problem)


def test_a_missing_record_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot read the record: No such file"):
        read_record(tmp_path / "record.json")
