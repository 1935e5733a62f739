"""Why did the filesystem commit, what did ext4's journal hold copies of, and whom did shared
requests serve?
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ReasonShare:
    """One reason: `requests` and `bytes` over all commits of a case."""

    part: str
    block_type: str
    cause: str
    reason: str
    requests: int
    bytes: int

    @property
    def changes(self) -> str:
        """The changes; without the file's name where the cause has named just that file."""
        file, _, words = self.reason.partition(": ")
        only = "; " not in self.reason and self.cause.endswith(f" of {file}")
        return words if only and words else self.reason


@dataclass(frozen=True)
class HomeShare:
    """Bytes of journal copies, over all commits of a case, by what is copied (page_runs.home)."""

    part: str
    home: str
    bytes: int


@dataclass(frozen=True)
class AskersShare:
    """Requests that served several calls at once, over all commits of a case, by whose these were
    (requests.askers).
    """

    part: str
    block_type: str
    askers: str
    requests: int
    bytes: int
