"""A map of an unmounted disk, made from what the filesystem's own tools report: which stretch of
bytes holds what. Also runs these tools, and reads numbers from what they print.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from bisect import bisect_right
from dataclasses import dataclass, field, replace
from pathlib import Path

SECTOR = 512


@dataclass(frozen=True)
class Fact:
    """The statement of a tool on a stretch; what it does not say agrees with anything."""

    block_types: tuple[str, ...] = ()
    # Beginnings of the subtypes that the tracer may tell (schema/page_runs.toml, block_subtype).
    subtypes: tuple[str, ...] = ()
    inode: int | None = None
    # Of the stretch's first byte in the file.
    offset_bytes: int | None = None

    def shift(self, length_bytes: int) -> Fact:
        """Return what is said of a place so far into the stretch."""
        if self.offset_bytes is None or not length_bytes:
            return self
        return replace(self, offset_bytes=self.offset_bytes + length_bytes)


@dataclass
class Stretches:
    """Stretches of bytes that do not overlap; a later one is kept out of an earlier one."""

    facts: dict[int, tuple[int, Fact]] = field(default_factory=dict)
    _begins: list[int] = field(default_factory=list)

    def add_bytes(self, begin: int, length: int, fact: Fact) -> None:
        """Add a stretch."""
        self.facts.setdefault(begin, (length, fact))
        self._begins = []

    def find(self, position: int) -> Fact | None:
        """Return what is said of the byte at a position."""
        if not self._begins:
            self._begins = sorted(self.facts)
        index = bisect_right(self._begins, position) - 1
        if index < 0:
            return None
        begin = self._begins[index]
        length, fact = self.facts[begin]
        return fact.shift(position - begin) if position < begin + length else None


@dataclass(frozen=True)
class DiskMap:
    """All that the tools reported: exactly what is in use, and roughly what whole areas hold."""

    sources: tuple[str, ...]
    exact: Stretches
    areas: Stretches
    # What has one owner: everything is of whole ones.
    unit_bytes: int = SECTOR
    # Whether the offsets of data are those of whole blocks of a file, and do not grow within them:
    # the nodes of UBIFS have heads, and are compressed.
    has_blocks: bool = False


class ToolError(Exception):
    """A tool is missing, fails, or prints what we do not know: the address check is left out."""


def tool_output(*command: str, package: str, folder: Path | None = None, commands: str = "") -> str:
    """Run a tool in a folder with commands on its input; return what it prints."""
    if not shutil.which(command[0]):
        raise ToolError(f"{command[0]} is not installed: sudo apt-get install {package}")
    answer = subprocess.run(
        command, capture_output=True, text=True, errors="replace", cwd=folder, input=commands
    )
    if answer.returncode:
        raise ToolError(f"{' '.join(command)}: {answer.stderr.strip()}")
    return answer.stdout


def read_number(pattern: str, text: str) -> int:
    """Return the one number of a pattern; ToolError where the text has none."""
    found = re.search(pattern, text)
    if not found:
        raise ToolError(f"no {pattern!r} in what the tool prints")
    return int(found[1], 0)
