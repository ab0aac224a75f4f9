"""The reference page: made from the models, committed, and complete."""

from __future__ import annotations

import re
from pathlib import Path

from runfleet.cli.reference import (
    FLEET_PAGE,
    SMALLEST_FLEET,
    fleet_reference,
    write_pages,
)
from runfleet.spec.roles import Role, matrix
from runfleet.spec.schema import fleet_schema
from spec.fleets import fleet_of

ROOT = Path(__file__).parents[2]


def test_the_committed_page_is_what_the_code_says() -> None:
    page = (ROOT / FLEET_PAGE).read_text(encoding="utf-8")
    assert page == fleet_reference(), "run `python -m runfleet.cli.reference`"


def test_writing_the_pages(tmp_path: Path) -> None:
    assert write_pages(tmp_path) == [tmp_path / FLEET_PAGE]
    assert (tmp_path / FLEET_PAGE).read_text(encoding="utf-8") == fleet_reference()


def test_every_model_and_every_key_is_on_the_page() -> None:
    page = fleet_reference()
    sections = re.split(r"^### ", page, flags=re.MULTILINE)[1:]
    tables = [set(re.findall(r"^\| `([a-z_]+)` \|", s, re.MULTILINE)) for s in sections]
    schema = fleet_schema()
    models = {"Fleet": schema, **schema["$defs"]}
    checked = 0
    for name, model in models.items():
        for part in model.get("anyOf", [model]):
            if "properties" in part:
                assert any(set(part["properties"]) <= table for table in tables), name
                checked += 1
    assert checked == len(sections) == 24


def test_links_lead_somewhere() -> None:
    page = fleet_reference()
    titles = re.findall(r"^#+ (.+)$", page, re.MULTILINE)
    anchors = {title.lower().replace(",", "").replace(" ", "-") for title in titles}
    links = set(re.findall(r"\]\(#([^)]+)\)", page))
    assert links
    assert links <= anchors


def test_rows_have_as_many_cells_as_their_heads() -> None:
    width = 0
    for line in fleet_reference().splitlines():
        if not line.startswith("|"):
            width = 0
            continue
        cells = len(re.findall(r"(?<!\\)\|", line))
        width = width or cells
        assert cells == width, line


def test_types_defaults_and_limits_in_words() -> None:
    rows = set(fleet_reference().splitlines())
    for row in (
        "| `cidr` | IP range, such as `10.12.0.0/16` | **required** | "
        "Range of the network; must not overlap others. |",
        "| `weight` | whole number, at least 1, at most 100 | `100` | "
        "Preference; the highest is tried first. |",
        "| `memory` | size, such as `64GiB` | **required** | Memory. |",
        "| `triggers` | list of (one of `on-demand`, `periodic`, `some-prs`, "
        "`all-prs`) | `[on-demand]` | When jobs may ask for it. |",
        "| `start` | day, such as `2026-09-30` | **required** | First day. |",
        "| `public` | `true` or `false` | `false` | Whether public repositories may "
        "use it (needs an approval policy for outside collaborators). |",
    ):
        assert row in rows


def test_the_matrix_is_on_the_page() -> None:
    page = fleet_reference()
    for grant in matrix(Role.RELEASER):
        yes = ["yes" if grant in matrix(role) else "" for role in Role]
        assert f"| `{grant.text}` | {' | '.join(yes)} |" in page


def test_the_example_is_a_fleet() -> None:
    assert SMALLEST_FLEET in fleet_reference()
    fleet = fleet_of(SMALLEST_FLEET)
    names = [c.name for c in fleet.classes_in(fleet.cells["aws"])]
    assert names == ["l-x86iavx512-8-16"]
