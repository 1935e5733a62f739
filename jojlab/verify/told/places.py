"""What a filesystem's own tool says is where on its disk: stretches of bytes."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field, replace

SECTOR = 512


@dataclass(frozen=True)
class Fact:
    """What the tool says of a stretch; what it does not say is empty, and goes with anything."""

    block_types: tuple[str, ...] = ()
    # Beginnings of the subtypes that the tracer may tell (schema/page_runs.toml, block_subtype).
    subtypes: tuple[str, ...] = ()
    inode: int | None = None
    # Of the stretch's first byte in the file.
    offset_bytes: int | None = None

    def at(self, length_bytes: int) -> Fact:
        """Return what is said of a place so far into the stretch."""
        if self.offset_bytes is None or not length_bytes:
            return self
        return replace(self, offset_bytes=self.offset_bytes + length_bytes)


@dataclass
class Places:
    """Stretches that do not overlap; a later one is kept out of what an earlier one covers."""

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
        return fact.at(position - begin) if position < begin + length else None


@dataclass(frozen=True)
class Told:
    """All that the tools said: of what is in use exactly, and of whole areas roughly."""

    sources: tuple[str, ...]
    exact: Places
    areas: Places
    # What has one owner: everything is of whole ones.
    unit_bytes: int = SECTOR
    # Whether the offsets of data are those of whole blocks of a file, and do not grow within them:
    # the nodes of UBIFS have heads, and are compressed.
    of_blocks: bool = False
