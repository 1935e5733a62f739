"""How many transactions come back per second of the capture's clock?

Reads the transactions, and from the manifest when the phases were: between two of their intervals
nothing is measured. There the tracer empties its ring, and counters are read.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable

import msgspec

from jojlab.analysis.rows.ask import ask
from jojlab.model.figures import PASSES
from jojlab.trace.dataset import Dataset, Row
from jojlab.trace.manifest import Phase


def throughput(data: Dataset) -> list[Row]:
    """Return one row per capture, with rates in transactions per second.

    throughput_tps: from the first BEGIN to the return of the last COMMIT, less the time of the
    checkpoints between them, of transactions that read or were rolled back, and less the pauses of
    the measurement itself.
    throughput_with_checkpoints_tps: the time of every checkpoint from the first BEGIN on is added,
    wherever it fell, so that no checkpoint is free; as is that of opening the connection again.
    checkpoint_ns_per_commit: that time, shared out evenly. checkpoint_ns_max: the longest of them;
    0 where there is none.
    """
    rows, gaps = ask(data, "figures/spans"), _gaps(data)
    for row in rows:
        first_ns, last_ns = row.pop("first_ns"), row.pop("last_ns")
        paused_ns = _within(gaps.get((row["case_id"], row["seed"]), ()), first_ns, last_ns)
        between_ns = row.pop("between_ns")
        running_ns = last_ns - first_ns - between_ns - row.pop("apart_ns") - paused_ns
        with_checkpoints_ns = running_ns + between_ns + row.pop("after_ns")
        row["checkpoint_ns_per_commit"] = row.pop("checkpoint_ns") / row["transactions"]
        row["throughput_tps"] = _rate(row["transactions"], running_ns)
        row["throughput_with_checkpoints_tps"] = _rate(row["transactions"], with_checkpoints_ns)
    return rows


def pass_throughput(data: Dataset) -> list[Row]:
    """Return one row per capture and pass over its file: its transactions' kind, `operations`, and
    `throughput_tps`, operations per second from the first one's begin to the last one's return,
    less the pauses of the measurement itself.
    """
    rows, gaps = ask(data, "figures/passes", passes=list(PASSES)), _gaps(data)
    for row in rows:
        first_ns, last_ns = row.pop("first_ns"), row.pop("last_ns")
        paused_ns = _within(gaps.get((row["case_id"], row["seed"]), ()), first_ns, last_ns)
        row["throughput_tps"] = _rate(row["operations"], last_ns - first_ns - paused_ns)
    return rows


def _within(gaps: Iterable[tuple[int, int]], first_ns: int, last_ns: int) -> int:
    return sum(
        end_ns - begin_ns for begin_ns, end_ns in gaps if first_ns <= begin_ns and end_ns <= last_ns
    )


def _rate(count: int, time_ns: int) -> float:
    """Return events per second; infinite where a clock stood still."""
    return count * 1e9 / time_ns if time_ns > 0 else math.inf


def _gaps(data: Dataset) -> dict[tuple[str, int], list[tuple[int, int]]]:
    """Return by capture what lies between the intervals of its phases, (begin_ns, end_ns)."""
    found = {}
    for row in ask(data, "figures/phases"):
        read = msgspec.json.decode(row["value"], type=list[Phase])
        phases = sorted((phase.begin_ns, phase.end_ns) for phase in read)
        found[row["case_id"], row["seed"]] = [
            (before[1], after[0]) for before, after in itertools.pairwise(phases)
        ]
    return found
