"""Find the project that a command runs in: stacks and their fleet file."""

from __future__ import annotations

import os
from pathlib import Path

from runfleet.errors import InputError, Problem


def find_root(start: Path | None = None) -> Path:
    """Return the folder of ``Pulumi.yaml`` at or above the current folder.

    Raises:
        InputError: There is none.
    """
    here = (start or Path.cwd()).resolve()
    for folder in (here, *here.parents):
        if (folder / "Pulumi.yaml").exists():
            return Path(os.path.relpath(folder))
    raise InputError(
        [
            Problem(
                "Pulumi.yaml",
                0,
                "",
                "no project here or above; run this in a folder with a Pulumi.yaml",
            )
        ]
    )


def find_stacks(root: Path) -> list[str]:
    """Return the names of the stacks of a project, ``central`` first.

    Args:
        root: Folder of ``Pulumi.yaml``.
    """
    names = sorted(
        path.name.removeprefix("Pulumi.").removesuffix(".yaml")
        for path in (root / "stacks").glob("Pulumi.*.yaml")
    )
    return sorted(names, key=lambda name: name != "central")


def find_fleet(root: Path | None = None) -> Path:
    """Return the fleet file that the project's stacks use.

    Raises:
        InputError: The stacks name none, or different ones.
    """
    from runfleet.rehearsal.settings import read_project, read_stack_settings

    folder = root or find_root()
    project = read_project(folder)
    found: dict[str, str] = {}
    for stack in find_stacks(folder):
        value = read_stack_settings(project, stack).config.get("runfleet:fleet")
        if value is not None:
            found[value] = stack
    if len(found) == 1:
        return folder / next(iter(found))
    message = (
        "no stack names a fleet file (runfleet:fleet)"
        if not found
        else "the stacks name different fleet files; say which one"
    )
    raise InputError([Problem("stacks", 0, "runfleet:fleet", message)])
