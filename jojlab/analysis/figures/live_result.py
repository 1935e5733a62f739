"""What did a live run take as a whole: time, CPU and context switches of its first seed?"""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from jojlab.analysis.rows.ask import ask
from jojlab.trace.dataset import Dataset
from jojlab.trace.manifest import Phase


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
        """Return the time from the first BEGIN to the last COMMIT's return, without the checkpoints
        between.
        """
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
    counted = _counters(data, seed)
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
    counts = [0] * ((result.end_ns - result.begin_ns) // 1_000_000_000)
    for return_ns in result.returns_ns:
        second = (return_ns - result.begin_ns) // 1_000_000_000
        if second < len(counts):
            counts[second] += 1
    return counts


_CPU = ("user", "nice", "system", "idle", "iowait")


def _percent(part: int, whole: int) -> float:
    """Return a share; a run shorter than the kernel's ticks of 10 ms has counted none."""
    return 100 * part / whole if whole else 0.0


def _counters(data: Dataset, seed: int) -> dict[tuple[str, str], int]:
    rows = ask(data, "figures/counted")
    return {(row["source"], row["name"]): row["value"] for row in rows if row["seed"] == seed}


def _settle_ns(data: Dataset, seed: int) -> int:
    """Return how long the first seed's syncs at the end took."""
    values = [row["value"] for row in ask(data, "figures/phases") if row["seed"] == seed]
    phases = msgspec.json.decode(values[0], type=list[Phase])
    return sum(phase.end_ns - phase.begin_ns for phase in phases if phase.name == "settle")
