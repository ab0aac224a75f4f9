"""The settings of a deployment: root ``Pulumi.yaml`` and one file for each stack.

A rehearsal reads what the Pulumi CLI reads (format: "Pulumi project file
reference" and "Pulumi stack settings file reference" at
https://www.pulumi.com/docs/iac/concepts/projects/), so that the program gets the
same configuration. Three differences from plain YAML:

- a key without a namespace belongs to the project;
- a list or an object reaches the program as JSON text;
- a value under ``secure:`` is encrypted: it cannot be read here, and a placeholder
  marked as secret takes its place.

Neither Pulumi nor its CLI is needed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError

from runfleet.errors import InputError, MissingError, Problem
from runfleet.rehearsal.values import SECRET_TEXT

_NAME = re.compile(r"[A-Za-z0-9_.-]{1,100}")


@dataclass(frozen=True)
class Project:
    """What the root ``Pulumi.yaml`` says.

    Attributes:
        root: Folder of ``Pulumi.yaml``.
        name: Name of the project.
        program: Folder of the program (``main``).
        stack_dir: Folder of the stack settings (``stackConfigDir``).
    """

    root: Path
    name: str
    program: Path
    stack_dir: Path

    def stack_file(self, stack: str) -> Path:
        """Return the settings file of a stack."""
        return self.stack_dir / f"Pulumi.{stack}.yaml"

    def stacks(self) -> tuple[str, ...]:
        """Return the names of all stacks that have settings, sorted."""
        found = (path.name for path in self.stack_dir.glob("Pulumi.*.yaml"))
        return tuple(
            sorted(name.removeprefix("Pulumi.").removesuffix(".yaml") for name in found)
        )


@dataclass(frozen=True)
class StackSettings:
    """What a stack's settings file says.

    Attributes:
        stack: Name of the stack.
        config: Values by ``namespace:key``, as the program gets them.
        secret_keys: Keys whose values are secret.
    """

    stack: str
    config: Mapping[str, str] = field(default_factory=dict[str, str])
    secret_keys: frozenset[str] = frozenset()


def read_project(root: Path | str) -> Project:
    """Read the root ``Pulumi.yaml``.

    Raises:
        InputError: The file is missing, malformed, or lacks its name.
    """
    folder = Path(root)
    file = folder / "Pulumi.yaml"
    data = _load(file)
    problems: list[Problem] = []
    name = data.get("name")
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        problems.append(
            Problem(
                str(file),
                _line(data, "name"),
                "name",
                "the project needs a name",
                found="" if name is None else repr(name),
                allowed="letters, digits, '_', '-' and '.', at most 100",
            )
        )
    places: dict[str, Path] = {}
    for key in ("main", "stackConfigDir"):
        value = data.get(key, ".")
        if not isinstance(value, str):
            text = "must be a path relative to Pulumi.yaml"
            problems.append(
                Problem(str(file), _line(data, key), key, text, found=repr(value))
            )
            continue
        places[key] = folder / value
    if problems:
        raise InputError(problems)
    main = places["main"]
    if main.name == "__main__.py":
        main = main.parent
    return Project(folder, cast("str", name), main, places["stackConfigDir"])


def read_stack_settings(project: Project, stack: str) -> StackSettings:
    """Read the settings of one stack.

    Raises:
        InputError: The file is malformed; all problems at once.
        MissingError: The stack has no settings file.
    """
    file = project.stack_file(stack)
    if not file.is_file():
        known = ", ".join(project.stacks()) or "none"
        raise MissingError(
            f"stack {stack} has no settings: {file} is not there (stacks: {known})",
            f"pulumi stack init {stack}, or copy another stack's settings",
        )
    data = _load(file)
    given = data.get("config")
    if given is None:
        return StackSettings(stack)
    if not isinstance(given, Mapping):
        text = "must be an object of settings"
        raise InputError(
            [Problem(str(file), _line(data, "config"), "config", text, repr(given))]
        )
    return _Config(project.name, str(file)).read(
        stack, cast("Mapping[Any, Any]", given)
    )


@dataclass
class _Config:
    """Turns the ``config`` of one file into what the program gets."""

    project: str
    file: str
    problems: list[Problem] = field(default_factory=list[Problem])

    def read(self, stack: str, given: Mapping[Any, Any]) -> StackSettings:
        config: dict[str, str] = {}
        secret: set[str] = set()
        for key, value in given.items():
            if not isinstance(key, str) or key.count(":") > 1:
                self._problem(given, key, "a key is 'name' or 'namespace:name'", key)
                continue
            name = key if ":" in key else f"{self.project}:{key}"
            if name in config:
                self._problem(given, key, f"{name} is set twice", key)
                continue
            plain, hidden = _plain(value)
            if plain is None:
                self._problem(given, key, "the setting has no value", "null")
                continue
            config[name] = plain if isinstance(plain, str) else _text(plain)
            if hidden:
                secret.add(name)
        if self.problems:
            raise InputError(self.problems)
        return StackSettings(stack, config, frozenset(secret))

    def _problem(self, given: Any, key: Any, message: str, found: Any) -> None:
        line, path = _line(given, key), f"config.{key}"
        self.problems.append(Problem(self.file, line, path, message, str(found)))


def _plain(value: Any) -> tuple[Any, bool]:
    """Return a value without encryption, and whether any part was encrypted."""
    if isinstance(value, Mapping):
        members = cast("Mapping[str, Any]", value)
        if set(members) == {"secure"} and isinstance(members["secure"], str):
            return SECRET_TEXT, True
        pairs = {str(key): _plain(item) for key, item in members.items()}
        hidden = any(secret for _, secret in pairs.values())
        return {key: item for key, (item, _) in pairs.items()}, hidden
    if isinstance(value, list):
        found = [_plain(item) for item in cast("list[Any]", value)]
        return [item for item, _ in found], any(secret for _, secret in found)
    return value, False


def _text(value: Any) -> str:
    """Return a scalar or object as the text that Pulumi hands to the program."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (dict, list)):
        return json.dumps(value, separators=(",", ":"), default=str)
    return str(value)


def _load(file: Path) -> dict[str, Any]:
    try:
        text = file.read_text(encoding="utf-8")
    except OSError as error:
        message = f"cannot read the file: {error.strerror}"
        raise InputError([Problem(str(file), 0, "", message)]) from error
    except UnicodeDecodeError as error:
        raise InputError([Problem(str(file), 0, "", "not UTF-8 text")]) from error
    reader: Any = YAML(typ="rt")
    try:
        data: Any = reader.load(text)
    except MarkedYAMLError as error:
        marked: Any = error
        line: int = marked.problem_mark.line + 1 if marked.problem_mark else 0
        message = f"not YAML: {marked.problem or marked.context}"
        raise InputError([Problem(str(file), line, "", message)]) from error
    except YAMLError as error:
        message = "not YAML that can be read"
        raise InputError([Problem(str(file), 0, "", message)]) from error
    if data is None:
        data = {}
    if not isinstance(data, dict):
        raise InputError([Problem(str(file), 1, "", "must be an object")])
    return cast("dict[str, Any]", data)


def _line(data: Any, key: Any) -> int:
    """Return the 1-based line of a key, or 0 when it is not there."""
    places = getattr(getattr(data, "lc", None), "data", None)
    if isinstance(places, dict) and key in places:
        return int(cast("dict[Any, list[int]]", places)[key][0]) + 1
    return 0
