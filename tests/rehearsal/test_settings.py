"""Project and stack settings, as Pulumi reads them."""

from __future__ import annotations

from pathlib import Path

import pytest

from runfleet.errors import InputError, MissingError
from runfleet.rehearsal.settings import read_project, read_stack_settings

PROJECT = "name: fleet\nruntime: python\nmain: stacks\nstackConfigDir: stacks\n"


def write(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def test_project_and_stack(tmp_path: Path) -> None:
    stack = """config:
  fleet: playbooks/pytorch/fleet.yaml
  aws:region: us-east-2
  count: 3
  on: true
  cell:
    zones: [a, b]
  appKey:
    secure: AAABAK5
  nested:
    list: [{secure: AAAB}]
"""
    root = write(tmp_path, {"Pulumi.yaml": PROJECT, "stacks/Pulumi.aws.yaml": stack})
    project = read_project(root)
    assert (project.name, project.program) == ("fleet", root / "stacks")
    assert project.stacks() == ("aws",)
    found = read_stack_settings(project, "aws")
    assert found.config == {
        "fleet:fleet": "playbooks/pytorch/fleet.yaml",
        "aws:region": "us-east-2",
        "fleet:count": "3",
        "fleet:on": "true",
        "fleet:cell": '{"zones":["a","b"]}',
        "fleet:appKey": "[secret]",
        "fleet:nested": '{"list":["[secret]"]}',
    }
    assert found.secret_keys == {"fleet:appKey", "fleet:nested"}


def test_a_stack_without_config_has_none(tmp_path: Path) -> None:
    root = write(tmp_path, {"Pulumi.yaml": PROJECT, "stacks/Pulumi.a.yaml": "{}\n"})
    assert read_stack_settings(read_project(root), "a").config == {}


def test_all_problems_of_a_stack_at_once_with_lines(tmp_path: Path) -> None:
    stack = "config:\n  a:b:c: 1\n  empty:\n  x: 1\n  fleet:x: 2\n"
    root = write(tmp_path, {"Pulumi.yaml": PROJECT, "stacks/Pulumi.a.yaml": stack})
    with pytest.raises(InputError) as caught:
        read_stack_settings(read_project(root), "a")
    found = [(p.line, p.path) for p in caught.value.problems]
    assert found == [(2, "config.a:b:c"), (3, "config.empty"), (5, "config.fleet:x")]


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        pytest.param("main: stacks\n", 0, "the project needs a name", id="no-name"),
        pytest.param("a: 1\nname: a b\n", 2, "the project needs a name", id="bad-name"),
        pytest.param("name: x\nmain: [1]\n", 2, "must be a path", id="bad-main"),
        pytest.param("- 1\n", 1, "must be an object", id="list"),
        pytest.param("name: x\n a: [\n", 2, "not YAML", id="not-yaml"),
    ],
)
def test_bad_projects(tmp_path: Path, text: str, line: int, message: str) -> None:
    root = write(tmp_path, {"Pulumi.yaml": text})
    with pytest.raises(InputError) as caught:
        read_project(root)
    (problem,) = caught.value.problems
    assert (problem.line, problem.file) == (line, str(root / "Pulumi.yaml"))
    assert message in problem.message


def test_an_unknown_stack_says_which_there_are(tmp_path: Path) -> None:
    root = write(tmp_path, {"Pulumi.yaml": PROJECT, "stacks/Pulumi.a.yaml": "{}\n"})
    with pytest.raises(MissingError, match=r"stack b has no settings.*stacks: a\)"):
        read_stack_settings(read_project(root), "b")


def test_no_project(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot read the file"):
        read_project(tmp_path)
