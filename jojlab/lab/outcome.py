"""What came of a job: the files that a guest handed out, or the error in their place."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jojlab.foundation.disk import disk_errors
from jojlab.lab.answers import read_answer
from jojlab.lab.job import Kind
from jojlab.lab.tries import failure


@dataclass(frozen=True)
class Outcome:
    """A job that went well: the files by name, and whether they came from the cache."""

    files: Mapping[str, bytes]
    from_cache: bool = False

    def write(self, folder: Path) -> None:
        """Write the files into `folder`, which is made if need be."""
        with disk_errors(folder):
            folder.mkdir(parents=True, exist_ok=True)
            for name, content in self.files.items():
                (folder / name).write_bytes(content)

    def answer(self, kind: Kind) -> dict[str, Any]:
        """Return the answer of a job of POWER_CUTS or SELF_TEST; MachineError when it is wrong."""
        return read_answer(kind, self.files[kind.answer])


@dataclass(frozen=True)
class Failed:
    """A job that failed, and harmed no other."""

    error: Exception

    @property
    def why(self) -> str:
        """The reason in words."""
        return failure(self.error)
