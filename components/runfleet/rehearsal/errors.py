"""The error that a rehearsal ends with."""

from __future__ import annotations

from runfleet.errors import RunfleetError


class RehearsalError(RunfleetError):
    """The program raised, or a resource was refused (exit 1).

    Attributes:
        subject: URN or name of the resource that is concerned; empty when the
            error belongs to no resource.
        reason: What went wrong, without the resource.
    """

    def __init__(self, subject: str, reason: str) -> None:
        """Make the error from the resource (may be empty) and the reason."""
        self.subject = subject
        self.reason = reason
        super().__init__(f"{subject}: {reason}" if subject else reason)
