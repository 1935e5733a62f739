"""What does the memory of a core add to each case, by joj run --memory-model?

Reads memory-model-CORE.json of a run folder, which jojlab/campaign/memory_model.py wrote; gives
what was counted of each part of a run, and the figures of a case with the time that is added.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec

from jojlab.analysis.figures.case_figures import CaseFigures
from jojlab.foundation.errors import DataError
from jojlab.model.figures import PASSES, figure_of_pass

FILES = "memory-model-*.json"
# Parts of a run whose time is no transaction's.
_BESIDE = ("make", "mount", "prepare", "warm-up", "checkpoint", "settle")


class Counted(msgspec.Struct, frozen=True):
    """Loads, stores, the bytes that they moved, what they missed, and the time that that takes."""

    loads: int
    stores: int
    bytes: int
    micro_tlb_misses: int
    walk_levels: int
    l1_misses: int
    l2_misses: int
    added_ns: float


class CountedPart(msgspec.Struct, frozen=True):
    """One part of a run: in all, by buffer, and by the functions that the model adds most to."""

    all: Counted
    buffers: dict[str, Counted] = {}
    functions: dict[str, Counted] = {}


class CaseMemory(msgspec.Struct, frozen=True):
    """What was counted of one case, by seed and part."""

    case_id: str
    seeds: dict[str, dict[str, CountedPart]]

    def measured(self, part: str = "") -> list[list[CountedPart]]:
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
        sums = [sum(getattr(each.all, name) for each in seed) for seed in self.measured()]
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
        return [Touches(name, dict(self._of_buffer(name, every))) for name in names]

    def _of_buffer(
        self, name: str, every: list[dict[str, CountedPart]]
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
    by_part: Mapping[str, tuple[int, int]]


def read_memory_models(folder: Path) -> tuple[MemoryModel, ...]:
    """Read what is in a run folder; DataError where a file is damaged."""
    found = []
    for path in sorted(folder.glob(FILES)):
        try:
            found.append(msgspec.json.decode(path.read_bytes(), type=MemoryModel))
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, OSError) as error:
            raise DataError(
                f"{path}: {error}", "remove it, or run the experiment with --memory-model again"
            ) from error
    return tuple(found)


def with_memory(figures: CaseFigures, case: Mapping[str, Any], found: CaseMemory) -> CaseFigures:
    """Return figures whose throughputs have the added time in every transaction.

    The largest throughput has the smallest addition, as each seed has its own.
    """
    median, spread = dict(figures.median), dict(figures.spread)
    for name, part, operations in _throughputs(figures, case):
        added = [sum(each.all.added_ns for each in seed) for seed in found.measured(part)]
        low, high = spread[name]
        median[name] = _slower(median[name], statistics.median(added) / operations)
        spread[name] = (
            _slower(low, max(added) / operations), _slower(high, min(added) / operations),
        )  # fmt: skip
    return replace(figures, median=median, spread=spread)


def _throughputs(figures: CaseFigures, case: Mapping[str, Any]) -> Iterator[tuple[str, str, int]]:
    """Give each throughput, the part of the run that it is of, and the operations of that."""
    if "throughput_tps" in figures.median:
        yield "throughput_tps", "", int(figures.median["transactions"])
    for verb in PASSES:
        if figure_of_pass(verb) in figures.median:
            yield figure_of_pass(verb), verb, case["file_bytes"] // case["record_bytes"]


def _slower(throughput: float, added_ns: float) -> float:
    return 1 / (1 / throughput + added_ns / 1e9)
