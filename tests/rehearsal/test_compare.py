"""The difference of two records."""

from __future__ import annotations

from dataclasses import replace

from runfleet.rehearsal.compare import ABSENT, Change, compare
from runfleet.rehearsal.record import Record, ResourceRecord


def resource(name: str, **members: object) -> ResourceRecord:
    found = ResourceRecord(urn=f"urn:{name}", type="t", name=name)
    return replace(found, **members)  # pyright: ignore[reportArgumentType]


def record(*resources: ResourceRecord, **outputs: object) -> Record:
    return Record(project="p", stack="s", resources=resources, outputs=outputs)


def test_a_record_equals_itself() -> None:
    one = record(resource("a", inputs={"x": [1, {"y": True}]}), url="u")
    assert compare(one, one).empty


def test_added_and_removed() -> None:
    found = compare(record(resource("a"), resource("b")), record(resource("c")))
    assert [r.name for r in found.added] == ["c"]
    assert [r.name for r in found.removed] == ["a", "b"]
    assert found.changed == ()


def test_changed_properties_have_exact_paths() -> None:
    old = resource("a", inputs={"x": {"y": [1, 2]}, "gone": "z", "n": 1})
    new = resource("a", inputs={"x": {"y": [1, 3, 4]}, "new": "z", "n": True})
    found = compare(record(old), record(new))
    assert found.changed == (
        Change("urn:a", "inputs.gone", "z", ABSENT),
        Change("urn:a", "inputs.n", 1, True),
        Change("urn:a", "inputs.new", ABSENT, "z"),
        Change("urn:a", "inputs.x.y[1]", 2, 3),
        Change("urn:a", "inputs.x.y[2]", ABSENT, 4),
    )
    assert found.changed_urns() == ("urn:a",)


def test_options_and_stack_outputs_are_compared() -> None:
    old = record(resource("a", protect=True), url="1")
    new = record(resource("a", ignore_changes=("tags",)), url="2")
    assert compare(old, new).changed == (
        Change("urn:a", "options.protect", True, False),
        Change("urn:a", "options.ignore_changes", (), ("tags",)),
        Change("", "outputs.url", "1", "2"),
    )


def test_an_alias_is_a_rename_and_not_a_replacement() -> None:
    old = record(resource("old"), resource("user", dependencies=("urn:old",)))
    new = record(
        resource("new", aliases=("urn:older", "urn:old")),
        resource("user", dependencies=("urn:new",)),
    )
    found = compare(old, new)
    assert (found.added, found.removed) == ((), ())
    assert found.changed == (Change("urn:new", "urn", "urn:old", "urn:new"),)


def test_an_alias_does_not_take_a_resource_that_is_still_there() -> None:
    old = record(resource("a"))
    new = record(resource("a"), resource("b", aliases=("urn:a",)))
    found = compare(old, new)
    assert [r.name for r in found.added] == ["b"]
    assert found.changed == ()


def test_one_old_resource_is_matched_once() -> None:
    old = record(resource("a"))
    new = record(resource("b", aliases=("urn:a",)), resource("c", aliases=("urn:a",)))
    found = compare(old, new)
    assert [r.name for r in found.added] == ["c"]
    assert found.removed == ()
