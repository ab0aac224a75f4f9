"""The errors that a person can cause, and the exit code that each one ends with.

Every error that Runfleet raises on purpose derives from :class:`RunfleetError`;
the command line turns it into one message and the class's ``exit_code``, never
into a traceback. The codes are: 1 findings, 2 bad input, 3 something is missing.
"""

from __future__ import annotations

from dataclasses import dataclass


class RunfleetError(Exception):
    """Base of all errors that end a command with a message.

    Attributes:
        exit_code: The process exit code that the command line ends with.
    """

    exit_code = 1


class MissingError(RunfleetError):
    """Something that the command needs is not there (exit 3).

    Attributes:
        remedy: The one line that gets what is missing.
    """

    exit_code = 3

    def __init__(self, message: str, remedy: str) -> None:
        """Make the error from what is missing and the line that gets it."""
        super().__init__(f"{message}\n  get it with: {remedy}")
        self.remedy = remedy


@dataclass(frozen=True)
class Problem:
    """One thing in an input file that cannot be built.

    Attributes:
        file: The file as the user named it.
        line: 1-based line, or 0 when the file as a whole is meant.
        path: Dotted path inside the document, such as ``cells.aws.region``.
        message: What is wrong, in one sentence.
        found: The value that stands there, as text; empty when nothing does.
        allowed: What may stand there; empty when that cannot be listed.
        nearest: The closest valid spelling; empty when none is close.
    """

    file: str
    line: int
    path: str
    message: str
    found: str = ""
    allowed: str = ""
    nearest: str = ""

    def __str__(self) -> str:
        """Render the problem as ``file:line: path: message`` with its hints."""
        where = f"{self.file}:{self.line}" if self.line else self.file
        text = f"{where}: {self.path or '(document)'}: {self.message}"
        if self.found:
            text += f"; found {self.found}"
        if self.allowed:
            text += f"; allowed: {self.allowed}"
        if self.nearest:
            text += f"; did you mean {self.nearest}?"
        return text

    def as_dict(self) -> dict[str, object]:
        """Return the problem as plain data for ``--json``."""
        return {
            "file": self.file,
            "line": self.line,
            "path": self.path,
            "message": self.message,
            "found": self.found,
            "allowed": self.allowed,
            "nearest": self.nearest,
        }


class InputError(RunfleetError):
    """An input file holds problems; all of them are reported at once (exit 2).

    Attributes:
        problems: Every problem found, in file order.
    """

    exit_code = 2

    def __init__(self, problems: list[Problem]) -> None:
        """Keep the problems sorted by file and line."""
        self.problems = sorted(problems, key=lambda p: (p.file, p.line, p.path))
        super().__init__("\n".join(str(problem) for problem in self.problems))
