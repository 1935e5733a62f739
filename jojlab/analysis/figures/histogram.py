"""How are the latencies of a case spread? Counts over all its seeds, in bins of growing width."""

from __future__ import annotations

from dataclasses import dataclass

from jojlab.analysis.rows.ask import ask
from jojlab.trace.dataset import Dataset

# From 100 ns to 1000 s: what is shorter or longer is in the outer bins. Six bins in every decade
# fill a terminal's lines; a picture has room for thirty-two, each 7.5 % wide.
_STEPS = (1, 1.5, 2, 3, 5, 7)
COARSE_NS: tuple[int, ...] = tuple(
    int(step * 10**power) for power in range(2, 12) for step in _STEPS
)
FINE_NS: tuple[int, ...] = tuple(round(100 * 10 ** (place / 32)) for place in range(10 * 32 + 1))


@dataclass(frozen=True)
class Bin:
    """The latencies from `begin_ns` to just below `end_ns`."""

    begin_ns: int
    end_ns: int
    count: int


def histograms(data: Dataset, edges_ns: tuple[int, ...] = COARSE_NS) -> dict[str, tuple[Bin, ...]]:
    """Return the latencies of the measured transactions by case_id, from BEGIN to COMMIT's return.

    `edges_ns` are those of the bins, ascending, every power of ten between the ends among them. The
    bins follow on each other, from the first to the last that is not empty.
    """
    bins = {"begins_ns": list(edges_ns[:-1]), "ends_ns": list(edges_ns[1:])}
    places = {begin_ns: place for place, begin_ns in enumerate(edges_ns)}
    counts: dict[str, dict[int, int]] = {}
    for row in ask(data, "figures/histogram", **bins):
        counts.setdefault(row["case_id"], {})[places[row["begin_ns"]]] = row["latencies"]
    return {
        case_id: tuple(
            Bin(edges_ns[place], edges_ns[place + 1], found.get(place, 0))
            for place in range(min(found), max(found) + 1)
        )
        for case_id, found in counts.items()
    }
