"""How are the latencies of a case spread? Counts over all its seeds, in bins of growing width."""

from __future__ import annotations

from dataclasses import dataclass

from jojlab.analysis.latency import durations
from jojlab.trace.run_tables import RunTables, rows_of

# Six bins in every decade, from 100 ns to 1000 s: what is shorter or longer is in the outer ones.
_STEPS = (1, 1.5, 2, 3, 5, 7)
EDGES_NS: tuple[int, ...] = tuple(
    int(step * 10**power) for power in range(2, 12) for step in _STEPS
)


@dataclass(frozen=True)
class Bin:
    """The latencies from `begin_ns` to just below `end_ns`."""

    begin_ns: int
    end_ns: int
    count: int


def histograms(tables: RunTables) -> dict[str, tuple[Bin, ...]]:
    """Return the latencies of the measured transactions by case_id, from BEGIN to COMMIT's return.

    The bins follow on each other, from the first to the last that is not empty.
    """
    rows = durations(tables)
    place = rows.latency_ns.clip(EDGES_NS[0], EDGES_NS[-1] - 1).bucket(list(EDGES_NS))
    rows = rows.mutate(place=place.cast("int64")).group_by("case_id", "place")
    counts: dict[str, dict[int, int]] = {}
    for row in rows_of(rows.agg(n=lambda table: table.count())):
        counts.setdefault(row["case_id"], {})[row["place"]] = row["n"]
    return {
        case_id: tuple(
            Bin(EDGES_NS[place], EDGES_NS[place + 1], found.get(place, 0))
            for place in range(min(found), max(found) + 1)
        )
        for case_id, found in sorted(counts.items())
    }
