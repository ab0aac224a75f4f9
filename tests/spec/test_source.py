"""Reading YAML with places, and files made to break the reader."""

from __future__ import annotations

import datetime as dt
import warnings
from pathlib import Path
from textwrap import dedent

import pytest

from runfleet.errors import InputError, Problem
from runfleet.spec.load import load_fleet
from runfleet.spec.source import MAX_DEPTH, Source, dotted, parse_source, read_source


def parse(text: str) -> Source:
    return parse_source("f.yaml", dedent(text))


def only_problem(text: str) -> Problem:
    """Return the one problem of a text, whether reading stops at it or not."""
    try:
        problems = parse(text).problems
    except InputError as error:
        problems = error.problems
    assert len(problems) == 1, problems
    return problems[0]


def test_data_and_lines() -> None:
    source = parse(
        """\
        # comment
        a: 1
        b:
          - x
          - {c: true, d: 2026-01-31}
        """
    )
    assert source.data == {"a": 1, "b": ["x", {"c": True, "d": dt.date(2026, 1, 31)}]}
    assert source.lines == {
        (): 2,
        ("a",): 2,
        ("b",): 3,
        ("b", 0): 4,
        ("b", 1): 5,
        ("b", 1, "c"): 5,
        ("b", 1, "d"): 5,
    }
    assert source.line(("b", 1, "nothing", "here")) == 5
    assert source.part(("b", 1, "c")) is True
    assert source.part(("b", 7, "c")) is None
    assert source.written[("b", 1, "d")] == "2026-01-31"
    assert dotted(("b", 1, "c")) == "b[1].c"


def test_yaml_1_2_scalars() -> None:
    source = parse("a: no\nb: 0123\nc: 0o17\nd: 0x1F\ne: 1e3\nf: ~\ng: on\nh: 12:30")
    assert source.data == {
        "a": "no",
        "b": 123,
        "c": 15,
        "d": 31,
        "e": 1000.0,
        "f": None,
        "g": "on",
        "h": "12:30",
    }
    assert source.written[("b",)] == "0123"
    assert source.problems == []


def test_merge_keys_keep_own_lines_and_own_values() -> None:
    source = parse(
        """\
        base: &base {x: 1, y: 2}
        more: &more {y: 3, z: 4}
        use:
          x: 9
          <<: [*base, *more]
        """
    )
    assert source.data["use"] == {"y": 2, "z": 4, "x": 9}
    assert source.lines[("use", "x")] == 4
    assert source.lines[("use", "y")] in (1, 2)


def test_anchors_are_copied_and_may_be_reused_quietly() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        source = parse("a: &x [1]\nb: *x\nc: &x [2]\nd: *x\n")
    assert source.data == {"a": [1], "b": [1], "c": [2], "d": [2]}
    assert source.problems == []


@pytest.mark.parametrize(
    ("text", "path", "line"),
    [
        ("a: 1\nb: 2\na: 3\n", "a", 3),
        ("a:\n  b:\n    - c: 1\n      c: 2\n", "a.b[0].c", 4),
        ("{a: {b: {c: {d: 1,\n d: 2}}}}", "a.b.c.d", 2),
    ],
)
def test_duplicate_keys_at_any_depth(text: str, path: str, line: int) -> None:
    problem = only_problem(text)
    assert (problem.path, problem.line) == (path, line)
    assert problem.message.startswith("stands twice (first on line ")


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("a:\n\tb: 1\n", 2, "is not valid YAML: found character '\\t' that cannot"),
        ("a: [1\nb: 2\n", 2, "is not valid YAML: "),
        ("a: 1\n---\nb: 2\n", 2, "is not valid YAML: but found another document"),
        ("a: *nobody\n", 1, "is not valid YAML: found undefined alias 'nobody'"),
        ("a: b\nc: \x01\n", 2, "holds the character U+0001, not legal YAML"),
        ("a: \x00\n", 1, "holds the character U+0000, not legal YAML"),
        ("%YAML 9.9\n---\na: 1\n", 1, "is not valid YAML: found incompatible YAML"),
        ("a: 1\nb: &a [*a, *a]\n", 2, ""),
        ("b: &a {<<: *a, c: 1}\n", 1, "refers to itself"),
        ("a:\n  <<: 5\n", 2, "merges (<<) something that is not a mapping"),
        ("? [a]\n: 1\n", 1, "has a key that is not text"),
        ("a: 1\n? \n: 2\n", 2, "has a key that is no legal text"),
        ("a: .nan\n", 1, "is not a finite number"),
        ("a: -.inf\n", 1, "is not a finite number"),
        ("a: 9223372036854775808\n", 1, "is a number beyond 64 bits"),
        ("a: " + "9" * 5000, 1, "is too long for a number or a date"),
        ("a: 0x" + "f" * 50_000, 1, "is too long for a number or a date"),
        ("a: 2026-99-99\n", 1, "is not a plain value: month must be in 1..12"),
        ("a: !!binary gIGC\n", 1, "is not text, a number, a date, true or false"),
        ("a: !!bool maybe\n", 1, "is not a plain value: 'maybe'"),
        ("a: !!set {x, y}\n", 1, "has the tag tag:yaml.org,2002:set, which is not"),
        ("a: !!omap [x: 1]\n", 1, "has the tag tag:yaml.org,2002:omap, which is"),
        ("a: !mine b\n", 1, "is not a plain value: could not determine a constructor"),
        ("a: !!python/object:os.system x", 1, "is not a plain value: could not det"),
        ('a: "\\ud800"\n', 1, "holds characters that are not legal text"),
    ],
)
def test_what_yaml_may_not_hold(text: str, line: int, message: str) -> None:
    try:
        problems = parse_source("f.yaml", text).problems
    except InputError as error:
        problems = error.problems
    assert problems
    assert {problem.line for problem in problems} == {line}
    assert problems[0].message.startswith(message or "refers to itself")


@pytest.mark.parametrize(
    "text",
    [
        "".join(" " * level + "a:\n" for level in range(1000)),
        "- " * 10_000 + "a",
        "a: " + "{b: " * 10_000,
        "a: " + "[" * 10_000 + "]" * 10_000,
    ],
    ids=["block", "dashes", "flow-maps", "flow-lists"],
)
def test_ten_thousand_levels(text: str) -> None:
    problem = only_problem(text)
    assert problem.message == f"is nested more than {MAX_DEPTH} levels deep"
    assert problem.line >= 1


def test_nesting_is_counted_through_aliases_too() -> None:
    levels = "\n".join(
        f"a{n}: &a{n} [[[[[[[[[[*a{n - 1}]]]]]]]]]]" for n in range(1, 9)
    )
    problem = only_problem(f"a0: &a0 [x]\n{levels}\n")
    assert problem.message == f"is nested more than {MAX_DEPTH} levels deep"
    assert problem.path.endswith("...")
    assert problem.line > 1


def test_billion_laughs() -> None:
    lines = ["a0: &a0 [lol, lol]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12)]
    problem = only_problem("\n".join(lines))
    assert problem.message == "aliases expand to more than 100,000 parts"
    assert (problem.path, problem.line) == ("a5", 6)


def test_whole_files(tmp_path: Path) -> None:
    missing = tmp_path / "missing.yaml"
    binary = tmp_path / "binary.yaml"
    binary.write_bytes(b"project: \xff\xfe\x00")
    utf16 = tmp_path / "utf16.yaml"
    utf16.write_text("project: demo", encoding="utf-16")
    cases = {
        missing: "there is no such file",
        tmp_path: "is a folder, not a file",
        binary: "is not UTF-8 text (byte 10 is invalid start byte)",
        utf16: "is not UTF-8 text (byte 1 is invalid start byte)",
        tmp_path / "nul\0": "cannot be read: embedded null byte",
    }
    for path, message in cases.items():
        with pytest.raises(InputError) as caught:
            load_fleet(path)
        assert caught.value.problems == [Problem(str(path), 0, "", message)]


def test_byte_order_mark_is_no_part_of_the_first_key(tmp_path: Path) -> None:
    file = tmp_path / "f.yaml"
    file.write_bytes(b"\xef\xbb\xbfproject: demo\n")
    assert read_source(file).data == {"project": "demo"}


def test_problem_text() -> None:
    problem = Problem("f.yaml", 3, "a.b", "is wrong", "x", "y, z", "y")
    text = "f.yaml:3: a.b: is wrong; found x; allowed: y, z; did you mean y?"
    assert str(problem) == text
    assert problem.as_dict() == {
        "file": "f.yaml",
        "line": 3,
        "path": "a.b",
        "message": "is wrong",
        "found": "x",
        "allowed": "y, z",
        "nearest": "y",
    }
