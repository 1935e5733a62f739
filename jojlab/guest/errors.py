"""Errors of a guest, with the last lines of its console."""

from __future__ import annotations

from jojlab.foundation.errors import MachineError


class GuestError(MachineError):
    """A guest hung, panicked, ran out of memory or ended early. Harms no other case.

    A `final` one would be the same again: the guest said so itself, or used up its time.
    """

    def __init__(
        self, message: str, console: str = "", remedy: str = "", *, final: bool = False
    ) -> None:
        super().__init__(message, remedy)
        self.console = console
        self.final = final

    def __str__(self) -> str:
        """Return the message, the remedy, and what the guest printed last."""
        lines = [super().__str__()]
        if self.console:
            lines.append("  the guest's console ended with:")
            lines += [f"    {line}" for line in self.console.splitlines()]
        return "\n".join(lines)


class ContentsTooLarge(GuestError):
    """An error: the contents that a case wrote did not fit in the memory of its guest."""
