"""The named numbers of a case: one value per capture, then the median over the seeds."""

from __future__ import annotations

import itertools
import statistics
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

import msgspec

from jojlab.analysis.figures.throughput import pass_throughput, throughput
from jojlab.analysis.rows.ask import ask, lacking
from jojlab.model.figures import CAUSED, FIGURES, Number, pass_figure
from jojlab.trace.dataset import Dataset
from jojlab.trace.manifest import ReplayedCalls


def nand_writes(
    data: Dataset, transactions: Mapping[tuple[str, int], int | float]
) -> dict[tuple[str, int], dict[str, float]]:
    """Return nand_bytes_per_commit and ftl_wa by (case_id, seed), of modelled devices alone.

    `transactions`: measured transactions of the same captures. ftl_wa is 0 where nothing was
    written.
    """
    found = {}
    for row in ask(data, "figures/nand_writes"):
        key = row["case_id"], row["seed"]
        programmed, written = row["programmed_bytes"], row["written_bytes"]
        if key in transactions:
            found[key] = {
                "nand_bytes_per_commit": programmed / transactions[key],
                "ftl_wa": programmed / written if written else 0.0,
            }
    return found


# Names of the figures that a part of the bill counts in.
_PREFIXES = {"commit": ("",), "deferred": ("", "deferred_"), "background": ("background_",)}

# Figure of the bytes of a block type.
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
    **{  # those of both devices, where the journal has one of its own
        (source, counter): figure
        for source in ("device", "journal-device")
        for counter, figure in (
            ("dispatch_voluntary_switches", "dispatch_voluntary_switches_per_commit"),
            ("dispatch_involuntary_switches", "dispatch_involuntary_switches_per_commit"),
            ("dispatch_cpu_ns", "dispatch_cpu_ns_per_commit"),
            ("interrupts", "device_interrupts_per_commit"),
        )
    },
}


@dataclass(frozen=True)
class CaseFigures:
    """The figures of one case: median, smallest and largest over its seeds."""

    seeds: tuple[int, ...] = ()
    median: Mapping[str, Number] = field(default_factory=dict)
    spread: Mapping[str, tuple[Number, Number]] = field(default_factory=dict)


def case_figures(data: Dataset) -> dict[str, CaseFigures]:
    """Return the figures of every case with measured transactions, by case_id."""
    by_case: dict[str, dict[int, dict[str, Number]]] = {}
    for (case_id, seed), figures in capture_figures(data).items():
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


def capture_figures(data: Dataset) -> dict[tuple[str, int], dict[str, Number]]:
    """Return the figures of every capture, by (case_id, seed)."""
    untraced = lacking(data, "requests")
    result: dict[tuple[str, int], dict[str, Number]] = {}
    for row in throughput(data):
        key = row["case_id"], row["seed"]
        sources = {"transactions"} if key in untraced else {"transactions", "requests"}
        # Whatever there is none of is zero; what cannot be counted is absent.
        figures: dict[str, Number] = {
            name: row.get(name, 0) for name, each in FIGURES.items() if each.source in sources
        }
        figures["sync_calls_per_commit"] = row["sync_calls"] / row["transactions"]
        figures["busy_retries_per_commit"] = row["busy_retries"] / row["transactions"]
        result[key] = figures
    for row in pass_throughput(data):
        result[row["case_id"], row["seed"]][pass_figure(row["kind"])] = row["throughput_tps"]
    for row in ask(data, "figures/latency"):
        figures = result[row.pop("case_id"), row.pop("seed")]
        for name, value in row.items():
            if value is None:  # nobody paid for a checkpoint
                del figures[name]
            else:
                figures[name] = value
    for key, sums in itertools.chain(_sums(data).items(), _machine_counts(data).items()):
        if key in result:
            transactions = result[key]["transactions"]
            result[key] |= {name: value / transactions for name, value in sums.items()}
    for figures in result.values():
        if "dispatch_cpu_ns_per_commit" in figures:
            share = figures["dispatch_cpu_ns_per_commit"] * figures["throughput_tps"] / 1e9
            figures["dispatch_cpu_percent"] = 100 * share
    for question in dict.fromkeys(each.question for each in FIGURES.values() if each.question):
        for row in ask(data, question):
            key = row.pop("case_id"), row.pop("seed")
            if key in result:
                result[key] |= {name: value for name, value in row.items() if name in FIGURES}
    for key, io_time_ns in _io_times(data).items():
        if key in result:
            result[key]["io_time_ns"] = io_time_ns
    modelled = nand_writes(data, {key: row["transactions"] for key, row in result.items()})
    for key, found in modelled.items():
        result[key] |= found
    for key in untraced & result.keys():
        result[key] = {
            name: value for name, value in result[key].items() if FIGURES[name].source != "requests"
        }
    return result


def _io_times(data: Dataset) -> dict[tuple[str, int], int]:
    """Return the time within the calls of every replay, by (case_id, seed)."""
    result = {}
    for row in ask(data, "figures/replayed"):
        calls = msgspec.json.decode(row["value"], type=ReplayedCalls).calls_by_name.values()
        result[row["case_id"], row["seed"]] = sum(each.time_ns for each in calls)
    return result


def _machine_counts(data: Dataset) -> dict[tuple[str, int], Counter[str]]:
    """Return what the machine counted for commits alone, by capture and figure."""
    mixed = {(row["case_id"], row["seed"]) for row in ask(data, "figures/mixed")}
    result: dict[tuple[str, int], Counter[str]] = defaultdict(Counter)
    for row in ask(data, "figures/counted"):
        key = row["case_id"], row["seed"]
        name = _COUNTERS.get((row["source"], row["name"]))
        if name and key not in mixed:
            result[key][name] += row["value"]
    return result


def _sums(data: Dataset) -> dict[tuple[str, int], Counter[str]]:
    """Add requests, bytes and flushes up by capture; whole numbers, to be divided later.

    What commits left to be done later counts as theirs, and again by itself.
    """
    result: dict[tuple[str, int], Counter[str]] = defaultdict(Counter)
    for row in ask(data, "figures/sums"):
        sums = result[row["case_id"], row["seed"]]
        flushes = row["requests"] if row["operation"] == "flush" else 0
        if row["part"] == "commit" and row["operation"] == "write":
            sums["writes_per_commit"] += row["requests"]
        for prefix in _PREFIXES.get(row["part"], ()):
            sums[f"{prefix}requests_per_commit"] += row["requests"]
            sums[f"{prefix}bytes_per_commit"] += row["bytes"]
            sums[f"{prefix}flushes_per_commit"] += flushes
        if row["part"] in CAUSED and row["block_type"] in _CLASSES:
            sums[_CLASSES[row["block_type"]]] += row["bytes"]
    return result
