"""The figures of a case: name, meaning, unit, source, and whether less of each is better."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

Number = int | float

Unit = Literal["ns", "bytes", "1/s", "%", "count", "ratio"]
# What must be there for a figure to be counted: the tables `transactions` and `requests`, which
# not every capture has (rows/ask.py); the `passes` over a file of workload file-passes; the
# `flash model` counts what it does, and the `machine` (kernel, process, adapter, replay) what it
# can: a counter that is missing is not zero.
Source = Literal["transactions", "passes", "requests", "flash model", "machine"]
Better = Literal["lower", "higher", "neither"]

# The parts of a bill that commits cause: their own, and what they left to be done later.
CAUSED = ("commit", "deferred")

# Names of the percentiles of latencies; latency.sql has their shares.
PERCENTILES = ("p50", "p90", "p99", "p999", "max")


# What the transactions of a pass over a file are called (agent/src/workload/file_passes).
PASSES = ("write-pass", "rewrite-pass", "read-pass", "random-read-pass", "random-write-pass")


def pass_figure(verb: str) -> str:
    """Return the name of the throughput of a pass."""
    return f"{verb.replace('-', '_')}_tps"


@dataclass(frozen=True)
class Figure:
    """One figure."""

    name: str
    meaning: str
    unit: Unit
    source: Source
    better: Better = "lower"
    # Whether it is a sum over the commits, given for one of them: so it can be given for a row.
    is_sum: bool = False
    # The question of jojlab/analysis whose rows have case_id, seed and the figure, by its name; of
    # others, jojlab/analysis/figures/case_figures.py says what they are made of.
    question: str = ""


def _latencies() -> Iterator[Figure]:
    for prefix, meaning in (
        ("latency_ns", "BEGIN to return of COMMIT with its checkpoint, or one file operation"),
        ("commit_latency_ns", "only COMMIT, or only the sync of a file operation"),
    ):
        for name in PERCENTILES:
            yield Figure(f"{prefix}_{name}", f"{meaning}, {name}", "ns", "transactions")


def _sums(source: Source, unit: Unit, meanings: dict[str, str]) -> Iterator[Figure]:
    for name, meaning in meanings.items():
        yield Figure(name, meaning, unit, source, is_sum=True)


# In the order in which they are shown.
_ALL = (
    Figure(
        "throughput_tps",
        "transactions per second, without the time of checkpoints, of transactions that only read "
        "or were rolled back, and of the tracer's pauses",
        "1/s", "transactions", "higher",
    ),
    Figure(
        "throughput_with_checkpoints_tps", "the same, with the time of checkpoints",
        "1/s", "transactions", "higher",
    ),
    *(
        Figure(
            pass_figure(verb),
            f"records per second of the {verb.removesuffix('-pass').replace('-', ' ')} pass of "
            "file-passes, with the syncs of those that write",
            "1/s", "passes", "higher",
        )
        for verb in PASSES
    ),
    *_latencies(),
    *(
        Figure(
            f"paying_latency_ns_{name}",
            "the same, of transactions that pay for a checkpoint, inside COMMIT or right after it, "
            f"or for opening the connection again, {name}",
            "ns", "transactions",
        )
        for name in ("p50", "p99")
    ),
    *_sums("transactions", "ns", {
        "checkpoint_ns_per_commit": "time of all checkpoints and openings, shared out evenly",
    }),
    *_sums("requests", "count", {
        "requests_per_commit": "block requests that commits cause, with flushes, checkpoints and "
        "the sync at the end",
    }),
    *_sums("requests", "bytes", {"bytes_per_commit": "bytes of all these requests"}),
    *_sums("requests", "count", {
        "writes_per_commit": "write requests while commits run, without flushes",
        "flushes_per_commit": "cache flushes among all these requests",
    }),
    *_sums("requests", "bytes", {
        "data_bytes_per_commit": "bytes of file data",
        "fs_journal_bytes_per_commit": "bytes of the filesystem's journal",
    }),
    Figure(
        "first_journal_write_bytes",
        "a commit's first write to the filesystem's journal, median; 0: none",
        "bytes", "requests", question="figures/first_journal_writes",
    ),
    *(
        Figure(
            name, f"writes {whose} that go on where the last one of them ended; 0: none",
            "%", "requests", "neither", question="figures/sequential_writes",
        )
        for name, whose in (
            ("sequential_data_percent", "of file data"),
            ("sequential_journal_percent", "to the filesystem's journal"),
        )
    ),
    *_sums("requests", "bytes", {
        "fs_metadata_bytes_per_commit": "bytes of the filesystem's metadata",
        "unknown_bytes_per_commit": "unattributed bytes",
    }),
    *_sums("requests", "count", {
        "deferred_requests_per_commit": "those of checkpoints and of the sync at the end",
    }),
    *_sums("requests", "bytes", {"deferred_bytes_per_commit": "bytes of deferred requests"}),
    *_sums("requests", "count", {
        "deferred_flushes_per_commit": "flushes among deferred requests",
        "background_requests_per_commit": "requests of the background load",
    }),
    *_sums("requests", "bytes", {
        "background_bytes_per_commit": "bytes of the background load's requests",
    }),
    *_sums("requests", "count", {
        "background_flushes_per_commit": "flushes among the background load's requests",
    }),
    *_sums("flash model", "bytes", {
        "nand_bytes_per_commit": "bytes the device programmed, including checkpoints and settling",
    }),
    Figure(
        "ftl_wa", "programmed bytes / bytes written to the device; whole program units, with "
        "padding", "ratio", "flash model",
    ),
    *_sums("transactions", "count", {
        "sync_calls_per_commit": "calls that sync a file or a directory",
        "busy_retries_per_commit": "waits for another connection's lock",
    }),
    *_sums("machine", "ns", {
        "cpu_ns_per_commit": "the agent's CPU time, user and kernel mode, from getrusage(2)",
        "iowait_ns_per_commit": "idle CPU time during I/O, from /proc/stat in ticks of 10 ms",
    }),
    *_sums("machine", "count", {
        "voluntary_switches_per_commit": "times the agent gave up the CPU to wait",
        "involuntary_switches_per_commit": "times the agent was preempted",
        "context_switches_per_commit": "context switches of the whole machine, from /proc/stat",
        "interrupts_per_commit": "interrupts of the whole machine, including timers, from "
        "/proc/stat",
        "device_interrupts_per_commit": "interrupts of the disk's adapter, from /proc/interrupts",
    }),
    *_sums("flash model", "count", {
        "dispatch_voluntary_switches_per_commit": "times the driver's dispatch thread slept to "
        "wait",
        "dispatch_involuntary_switches_per_commit": "times the driver's dispatch thread was "
        "preempted",
    }),
    *_sums("flash model", "ns", {
        "dispatch_cpu_ns_per_commit": "CPU time of the driver's dispatch thread",
    }),
    Figure(
        "dispatch_cpu_percent", "CPU time of the driver's dispatch thread, per cent of one "
        "processor", "%", "flash model",
    ),
    Figure(
        "transactions", "measured commits or operations of one capture",
        "count", "transactions", "neither",
    ),
    Figure(
        "checkpoints", "checkpoints of one capture, and openings of the connection again",
        "count", "transactions", "neither",
    ),
    Figure("checkpoint_ns_max", "the longest of them; 0: none", "ns", "transactions"),
    Figure(
        "io_time_ns", "of a replay: time within all its calls, added up over its threads",
        "ns", "machine",
    ),
)  # fmt: skip

FIGURES = MappingProxyType({figure.name: figure for figure in _ALL})
