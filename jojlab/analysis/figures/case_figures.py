"""Which named numbers describe a case? One value per capture, then the median over the seeds."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from dataclasses import dataclass, field

from jojlab.analysis.figures.journal_writes import first_journal_writes
from jojlab.analysis.figures.latency import PERCENTILES, percentiles
from jojlab.analysis.figures.nand_writes import DEVICES, NAND_FIGURES, nand_writes
from jojlab.analysis.figures.throughput import throughput
from jojlab.analysis.rows.billed import billed_pieces
from jojlab.analysis.rows.measured import CAPTURE
from jojlab.analysis.rows.sums import requests_and_bytes
from jojlab.trace.run_tables import RunTables, rows_of

Number = int | float

# Figure -> what it is, in the order in which figures are shown. The name has the unit.
FIGURES: dict[str, str] = {
    "throughput_tps": "transactions per second, without the time of checkpoints and of the "
    "tracer's pauses",
    "throughput_with_checkpoints_tps": "transactions per second, including checkpoints",
    **{
        f"latency_ns_{name}": f"BEGIN to return of COMMIT with its checkpoint, or one file "
        f"operation, {name}"
        for name in PERCENTILES
    },
    **{
        f"commit_latency_ns_{name}": f"only COMMIT, or only the sync of a file operation, {name}"
        for name in PERCENTILES
    },
    "requests_per_commit": "block requests, including flushes",
    "bytes_per_commit": "bytes of all block requests",
    "writes_per_commit": "write requests, without flushes",
    "flushes_per_commit": "cache flushes",
    "data_bytes_per_commit": "bytes of file data",
    "fs_journal_bytes_per_commit": "bytes of the filesystem's journal",
    "first_journal_write_bytes": "a commit's first write to the filesystem's journal, median; "
    "0: none",
    "fs_metadata_bytes_per_commit": "bytes of the filesystem's metadata",
    "unknown_bytes_per_commit": "unattributed bytes",
    "deferred_requests_per_commit": "requests of checkpoints and of the sync at the end",
    "deferred_bytes_per_commit": "bytes of deferred requests",
    "deferred_flushes_per_commit": "flushes among deferred requests",
    "background_requests_per_commit": "requests of the background load",
    "background_bytes_per_commit": "bytes of the background load's requests",
    "background_flushes_per_commit": "flushes among the background load's requests",
    **NAND_FIGURES,
    "sync_calls_per_commit": "calls that sync a file or a directory",
    "busy_retries_per_commit": "waits for another connection's lock",
    "cpu_ns_per_commit": "the agent's CPU time, user and kernel mode, from getrusage(2)",
    "iowait_ns_per_commit": "idle CPU time during I/O, from /proc/stat in ticks of 10 ms",
    "voluntary_switches_per_commit": "times the agent gave up the CPU to wait",
    "involuntary_switches_per_commit": "times the agent was preempted",
    "context_switches_per_commit": "context switches of the whole machine, from /proc/stat",
    "interrupts_per_commit": "interrupts of the whole machine, including timers, from /proc/stat",
    "device_interrupts_per_commit": "interrupts of the disk's adapter, from /proc/interrupts",
    "dispatch_voluntary_switches_per_commit": "times the driver's dispatch thread slept to wait",
    "dispatch_involuntary_switches_per_commit": "times the driver's dispatch thread was preempted",
    "dispatch_cpu_ns_per_commit": "CPU time of the driver's dispatch thread",
    "dispatch_cpu_percent": "CPU time of the driver's dispatch thread, per cent of one processor",
    "transactions": "measured transactions of one capture",
    "checkpoints": "checkpoints of one capture",
    "checkpoint_ns_max": "the longest checkpoint; 0: none",
}

# Figures that only a tracer or the modelled device can count. A capture without one lacks them; it
# does not have zeroes.
TRACED = tuple(
    name
    for name in FIGURES
    if any(word in name for word in ("requests_", "bytes", "flushes_", "writes_", "dispatch_"))
)

_CLASSES = {
    "data": "data_bytes_per_commit",
    "fs-journal": "fs_journal_bytes_per_commit",
    "fs-metadata": "fs_metadata_bytes_per_commit",
    "unknown": "unknown_bytes_per_commit",
}

# Source and name of the counter of phase commit behind a figure.
_COUNTERS = {
    # Their sum is exact, and no figure is made of either alone: the kernel divides what its
    # scheduler counted by what its tick, every 4 ms, happened to meet (cputime_adjust() in
    # kernel/sched/cputime.c).
    ("process", "user_cpu_ns"): "cpu_ns_per_commit",
    ("process", "system_cpu_ns"): "cpu_ns_per_commit",
    ("kernel", "iowait_ns"): "iowait_ns_per_commit",
    ("process", "voluntary_switches"): "voluntary_switches_per_commit",
    ("process", "involuntary_switches"): "involuntary_switches_per_commit",
    ("kernel", "context_switches"): "context_switches_per_commit",
    ("kernel", "interrupts"): "interrupts_per_commit",
    **{
        (source, counter): figure
        for source in DEVICES
        for counter, figure in (
            ("dispatch_voluntary_switches", "dispatch_voluntary_switches_per_commit"),
            ("dispatch_involuntary_switches", "dispatch_involuntary_switches_per_commit"),
            ("dispatch_cpu_ns", "dispatch_cpu_ns_per_commit"),
            ("interrupts", "device_interrupts_per_commit"),
        )
    },
}

# Figures of counters that not every machine or device has. A capture has the figures whose counters
# it holds; a missing counter is not zero.
COUNTED_FIGURES = (*dict.fromkeys(_COUNTERS.values()), "dispatch_cpu_percent")


@dataclass(frozen=True)
class CaseFigures:
    """The figures of one case: median, smallest and largest over its seeds."""

    seeds: tuple[int, ...] = ()
    median: Mapping[str, Number] = field(default_factory=dict)
    spread: Mapping[str, tuple[Number, Number]] = field(default_factory=dict)


def case_figures(tables: RunTables) -> dict[str, CaseFigures]:
    """Return the figures of every case with measured transactions, by case_id."""
    by_case: dict[str, dict[int, dict[str, Number]]] = {}
    for (case_id, seed), figures in capture_figures(tables).items():
        by_case.setdefault(case_id, {})[seed] = figures
    result: dict[str, CaseFigures] = {}
    for case_id, captures in sorted(by_case.items()):
        values = {
            name: [figures[name] for figures in captures.values()]
            for name in FIGURES
            if all(name in figures for figures in captures.values())
        }
        result[case_id] = CaseFigures(
            tuple(sorted(captures)),
            {name: statistics.median(column) for name, column in values.items()},
            {name: (min(column), max(column)) for name, column in values.items()},
        )
    return result


def capture_figures(tables: RunTables) -> dict[tuple[str, int], dict[str, Number]]:
    """Return the figures of every capture, by (case_id, seed)."""
    result: dict[tuple[str, int], dict[str, Number]] = {}
    for row in throughput(tables):
        figures: dict[str, Number] = dict.fromkeys(FIGURES, 0)
        for name in COUNTED_FIGURES:
            figures.pop(name)
        figures |= {name: row[name] for name in FIGURES if name in row}
        figures["sync_calls_per_commit"] = row["sync_calls"] / row["transactions"]
        figures["busy_retries_per_commit"] = row["busy_retries"] / row["transactions"]
        result[row["case_id"], row["seed"]] = figures
    for row in rows_of(percentiles(tables, CAPTURE)):
        result[row.pop("case_id"), row.pop("seed")] |= row
    for all_sums in (_sums(tables), _counted(tables)):
        for key, sums in all_sums.items():
            if key in result:
                transactions = result[key]["transactions"]
                result[key] |= {name: value / transactions for name, value in sums.items()}
    for figures in result.values():
        if "dispatch_cpu_ns_per_commit" in figures:
            share = figures["dispatch_cpu_ns_per_commit"] * figures["throughput_tps"] / 1e9
            figures["dispatch_cpu_percent"] = 100 * share
    for row in rows_of(first_journal_writes(tables)):
        result[row["case_id"], row["seed"]]["first_journal_write_bytes"] = row["median_bytes"]
    modelled = nand_writes(tables, {key: row["transactions"] for key, row in result.items()})
    for key, figures in result.items():
        for name in NAND_FIGURES:
            figures.pop(name)
        figures |= modelled.get(key, {})
    for key in untraced(tables) & result.keys():
        result[key] = {name: v for name, v in result[key].items() if name not in TRACED}
    return result


def untraced(tables: RunTables) -> set[tuple[str, int]]:
    """Return (case_id, seed) of the captures that were made without a tracer."""
    said = tables.manifest.filter(tables.manifest.key == "traced")
    return {(row["case_id"], row["seed"]) for row in rows_of(said) if row["value"] == "false"}


def _counted(tables: RunTables) -> dict[tuple[str, int], dict[str, int]]:
    """Return what the machine counted while transactions ran, by capture and figure."""
    result: dict[tuple[str, int], dict[str, int]] = {}
    for row in rows_of(tables.counters.filter(tables.counters.phase == "commit")):
        if name := _COUNTERS.get((row["source"], row["name"])):
            sums = result.setdefault((row["case_id"], row["seed"]), {})
            sums[name] = sums.get(name, 0) + row["value"]
    return result


def _sums(tables: RunTables) -> dict[tuple[str, int], dict[str, int]]:
    """Add requests, bytes and flushes up by capture; whole numbers, to be divided later."""
    key = (*CAPTURE, "part", "operation", "block_type")
    grouped = requests_and_bytes(billed_pieces(tables), *key)
    result: dict[tuple[str, int], dict[str, int]] = {}
    for row in rows_of(grouped):
        sums = result.setdefault((row["case_id"], row["seed"]), {})
        prefix = "" if row["part"] == "commit" else f"{row['part']}_"
        flushes = row["requests"] if row["operation"] == "flush" else 0
        if not prefix and row["operation"] == "write":
            sums["writes_per_commit"] = sums.get("writes_per_commit", 0) + row["requests"]
        for name, value in (
            (f"{prefix}requests_per_commit", row["requests"]),
            (f"{prefix}bytes_per_commit", row["bytes"]),
            (f"{prefix}flushes_per_commit", flushes),
        ):
            sums[name] = sums.get(name, 0) + value
        if not prefix and row["block_type"] in _CLASSES:
            name = _CLASSES[row["block_type"]]
            sums[name] = sums.get(name, 0) + row["bytes"]
    return result
