"""Reads what the memory of a core adds to each case, by joj run --memory-model: what the model
counted of each part of a run, as memory-model-CORE.json of a run folder has it.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec

from jojlab.foundation.errors import DataError

_FILES = "memory-model-*.json"
# Parts of a run whose time is no transaction's.
_BESIDE = ("make", "mount", "prepare", "warm-up", "checkpoint", "settle")


class Counts(msgspec.Struct, frozen=True):
    """Loads, stores, the bytes that they moved, and what they missed; the time that the misses
    would take on a core, where that is known.
    """

    loads: int = 0
    stores: int = 0
    bytes: int = 0
    micro_tlb_misses: int = 0
    walk_levels: int = 0
    l1_misses: int = 0
    l2_misses: int = 0
    added_ns: float = 0.0

    def plus(self, other: Counts) -> Counts:
        """Return both together."""
        pairs = zip(msgspec.structs.astuple(self), msgspec.structs.astuple(other), strict=True)
        return Counts(*(one + another for one, another in pairs))


class CountedPart(msgspec.Struct, frozen=True):
    """One part of a run: in all, by buffer, and by function."""

    all: Counts
    buffers: dict[str, Counts] = {}
    functions: dict[str, Counts] = {}


# The parts of a run in their order: the steps that prepare it (make, mount, prepare), and its
# phases; instead of the phase `commit` its parts, where the workload divides it.
CountedRun = dict[str, CountedPart]


class CaseMemory(msgspec.Struct, frozen=True):
    """The counts of one case, by seed and part."""

    case_id: str
    seeds: dict[str, CountedRun]

    def parts_of_commits(self, part: str = "") -> list[list[CountedPart]]:
        """Return by seed what was counted while transactions ran: of one part of it, or of all."""
        return [
            [
                found
                for name, found in parts.items()
                if name == part or not (part or name in _BESIDE)
            ]
            for parts in self.seeds.values()
        ]

    def median(self, name: str) -> float:
        """Return the median over the seeds of one count, added up while transactions ran."""
        sums = [sum(getattr(each.all, name) for each in seed) for seed in self.parts_of_commits()]
        return float(statistics.median(sums))


class MemoryModel(msgspec.Struct, frozen=True):
    """All that the model of one core counted."""

    core: str
    title: str
    sources: list[str]
    cases: list[CaseMemory]

    @property
    def parts(self) -> tuple[str, ...]:
        """Return the parts of the runs, in their order."""
        every = (name for case in self.cases for seed in case.seeds.values() for name in seed)
        return tuple(dict.fromkeys(every))

    def touches(self) -> list[Touches]:
        """Return a row for each buffer: how often it was accessed in each part, over all cases."""
        every = [parts for case in self.cases for parts in case.seeds.values()]
        names = dict.fromkeys(
            name for parts in every for part in parts.values() for name in part.buffers
        )
        return [Touches(name, dict(self._buffer_touches(name, every))) for name in names]

    def _buffer_touches(
        self, name: str, every: list[CountedRun]
    ) -> Iterator[tuple[str, tuple[int, int]]]:
        for part in self.parts:
            found = [parts[part].buffers for parts in every if part in parts]
            counts = [own[name].loads + own[name].stores for own in found if name in own]
            if counts:
                yield part, (min(counts), max(counts))


@dataclass(frozen=True)
class Touches:
    """Loads and stores in one buffer, by part: the fewest and the most of any case and seed that
    has this buffer. A part that no such case has is not there.
    """

    buffer: str
    counts_by_part: Mapping[str, tuple[int, int]]


def read_memory_models(folder: Path) -> tuple[MemoryModel, ...]:
    """Read what is in a run folder; DataError where a file is damaged."""
    found = []
    for path in sorted(folder.glob(_FILES)):
        try:
            found.append(msgspec.json.decode(path.read_bytes(), type=MemoryModel))
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, OSError) as error:
            raise DataError(
                f"{path}: {error}", "remove it, or run the experiment with --memory-model again"
            ) from error
    return tuple(found)
