"""How many transactions come back per second of the capture's clock, how are their latencies
spread, and what did a live run take as a whole?

Reads the transactions, and from the manifest when the phases were: between two of their intervals
nothing is measured. There the tracer empties its ring, and counters are read.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import msgspec

from jojlab.analysis.rows.ask import ask, ask_by_case
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
        paused_ns = _sum_between(gaps.get((row["case_id"], row["seed"]), ()), first_ns, last_ns)
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
        paused_ns = _sum_between(gaps.get((row["case_id"], row["seed"]), ()), first_ns, last_ns)
        row["throughput_tps"] = _rate(row["operations"], last_ns - first_ns - paused_ns)
    return rows


def _sum_between(gaps: Iterable[tuple[int, int]], first_ns: int, last_ns: int) -> int:
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


@dataclass(frozen=True)
class ApartTransactions:
    """Transactions of one `kind`, read-only or rollback, over all seeds; times in ns."""

    kind: str
    transactions: int
    latency_ns_p50: int
    latency_ns_p99: int


def transactions_apart(data: Dataset) -> dict[str, tuple[ApartTransactions, ...]]:
    """Return them by case_id, of the cases that have any."""
    return ask_by_case(data, "figures/apart", ApartTransactions)


def apart_json(apart: Iterable[ApartTransactions]) -> dict[str, Any]:
    """Return them as `--json` prints them, by kind."""
    return {
        each.kind: {name: value for name, value in vars(each).items() if name != "kind"}
        for each in apart
    }


@dataclass(frozen=True)
class LiveResult:
    """Times in ns by the clock on the wall; CPU of the whole machine, in per cent of its time."""

    transactions: int
    begin_ns: int
    end_ns: int
    checkpoint_ns: int  # of that time, and after it
    between_ns: int  # of that time alone
    settle_ns: int
    active_percent: float
    idle_percent: float
    iowait_percent: float
    voluntary_switches: int
    involuntary_switches: int
    latencies_ns: tuple[int, ...]  # in the order of the transactions
    returns_ns: tuple[int, ...]  # when each came back, in order

    @property
    def running_ns(self) -> int:
        """Return the time from the first BEGIN to the last COMMIT's return, less checkpoints."""
        return self.end_ns - self.begin_ns - self.between_ns

    @property
    def latency_sum_ns(self) -> int:
        """Return the sum over all transactions, those of several threads at one time too."""
        return sum(self.latencies_ns)


def live_result(data: Dataset) -> LiveResult:
    """Return the result of the first seed of a run of one case."""
    seed = min(captured.seed for captured in data.captured)
    rows = ask(data, "figures/live_transactions")
    commits = [row for row in rows if not row["is_checkpoint"]]
    begin_ns = min(row["begin_ns"] for row in commits)
    end_ns = max(row["return_ns"] for row in commits)
    checkpoints = [row for row in rows if row["is_checkpoint"] and row["begin_ns"] > begin_ns]
    rows = [row for row in ask(data, "figures/counted") if row["seed"] == seed]
    counted = {(row["source"], row["name"]): row["value"] for row in rows}
    cpu = {name: counted.get(("kernel", f"{name}_ns"), 0) for name in _CPU}
    whole = sum(cpu.values())
    return LiveResult(
        len(commits),
        begin_ns,
        end_ns,
        sum(row["return_ns"] - row["begin_ns"] for row in checkpoints),
        sum(r["return_ns"] - r["begin_ns"] for r in checkpoints if r["begin_ns"] < end_ns),
        _settle_ns(data, seed),
        _percent(cpu["user"] + cpu["nice"] + cpu["system"], whole),
        _percent(cpu["idle"], whole),
        _percent(cpu["iowait"], whole),
        counted.get(("process", "voluntary_switches"), 0),
        counted.get(("process", "involuntary_switches"), 0),
        tuple(row["latency_ns"] for row in commits),
        tuple(sorted(row["return_ns"] for row in commits)),
    )


def rates_per_second(result: LiveResult) -> list[int]:
    """Return how many transactions came back in each second that was whole."""
    counts = Counter((time_ns - result.begin_ns) // 10**9 for time_ns in result.returns_ns)
    return [counts[second] for second in range((result.end_ns - result.begin_ns) // 10**9)]


_CPU = ("user", "nice", "system", "idle", "iowait")


def _percent(part: int, whole: int) -> float:
    """Return a share; a run shorter than the kernel's ticks of 10 ms has counted none."""
    return 100 * part / whole if whole else 0.0


def _settle_ns(data: Dataset, seed: int) -> int:
    """Return how long the first seed's syncs at the end took."""
    values = [row["value"] for row in ask(data, "figures/phases") if row["seed"] == seed]
    phases = msgspec.json.decode(values[0], type=list[Phase])
    return sum(phase.end_ns - phase.begin_ns for phase in phases if phase.name == "settle")
