"""A capture among others: the keys that name it there, and what is in its files, which are not read
before somebody asks.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from jojlab.trace.capture import Capture
from jojlab.trace.checksums import hashes_of


@dataclass(frozen=True)
class Captured:
    """A capture among others, with the keys that name it there."""

    run: str
    case_id: str
    seed: int
    folder: Path
    # Where this process has checked it already.
    checked: Capture | None = None

    @cached_property
    def hashes(self) -> dict[Path, str]:
        """The hash of every file; OSError when one cannot be read."""
        return hashes_of(self.folder)

    @cached_property
    def capture(self) -> Capture:
        """The capture, checked; DataError when it is damaged."""
        try:
            return self.checked or Capture.open(self.folder, self.hashes)
        except OSError:
            return Capture.open(self.folder)  # which says what is wrong
