"""Why did the filesystem have to commit? Bytes of its journal and metadata by cause and reason.

A reason is the changes to files that a commit carried (`reason` in schema/requests.toml). Bytes
that carry none, such as tables that are brought up to date in place, are not here.
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
