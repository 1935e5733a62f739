"""What do the tables of a dataset say? Every answer that a summary of it needs, by case.

Reads the tables; computes nothing again that is kept from before.
"""

from __future__ import annotations

import enum
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from jojlab.analysis.commit.bill import Bill, commit_bills
from jojlab.analysis.commit.story import CommitTrace, commit_traces
from jojlab.analysis.figures.case_figures import CaseFigures, case_figures
from jojlab.analysis.figures.throughput import (
    COARSE_NS,
    FINE_NS,
    Apart,
    Bin,
    histograms,
    transactions_apart,
)
from jojlab.analysis.rows.ask import ask, lacking
from jojlab.analysis.rows.completeness import Completeness, completeness
from jojlab.analysis.traffic.characterisation import Traffic, traffic
from jojlab.analysis.traffic.live import LiveTrace, live_traces
from jojlab.foundation.cache import Cache
from jojlab.trace.dataset import Dataset


class Depth(enum.IntEnum):
    """The depth of a question: figures alone; bills, traces and bins too; traffic and fine bins
    too.
    """

    FIGURES = 0
    COMMITS = 1
    TRAFFIC = 2


@dataclass
class Manifests:
    """The contents of the captures' manifests: by case_id, where they are not of all."""

    configurations: dict[str, dict[str, Any]] = field(default_factory=dict)
    operation_hashes: dict[str, dict[int, str]] = field(default_factory=dict)
    backgrounds: dict[str, dict[int, Any]] = field(default_factory=dict)
    programs: dict[str, dict[int, Any]] = field(default_factory=dict)
    replays: dict[str, dict[int, Any]] = field(default_factory=dict)
    clocks: set[str] = field(default_factory=set)


@dataclass(frozen=True)
class Findings:
    """The answers, by case_id."""

    figures: Mapping[str, CaseFigures] = field(default_factory=dict)
    missing: Mapping[str, Completeness] = field(default_factory=dict)
    bills: Mapping[str, Bill] = field(default_factory=dict)
    traces: Mapping[str, CommitTrace] = field(default_factory=dict)
    moved: Mapping[str, Traffic] = field(default_factory=dict)
    latencies: Mapping[str, tuple[Bin, ...]] = field(default_factory=dict)
    manifests: Manifests = field(default_factory=Manifests)
    apart: Mapping[str, tuple[Apart, ...]] = field(default_factory=dict)
    live: Mapping[str, LiveTrace] = field(default_factory=dict)


def findings(data: Dataset, depth: Depth, cache: Cache | None = None) -> Findings:
    """Return what the captures of `data` say; raises DataError when one is damaged.

    Each depth is kept, as are those before it: what joj show found, joj report does not ask again,
    and the other way round.
    """
    return data.value(
        cache, f"findings {depth.name}", Findings, lambda: _compute(data, depth, cache)
    )


def _compute(data: Dataset, depth: Depth, cache: Cache | None) -> Findings:
    if depth == Depth.FIGURES:
        return Findings(
            case_figures(data),
            completeness(data),
            manifests=_manifests(data),
            apart=transactions_apart(data),
            live=live_traces(data),
        )
    # The pictures first: they read the page runs of requests once for themselves and the bill.
    moved = traffic(data) if depth == Depth.TRAFFIC else {}
    before = findings(data, Depth(depth - 1), cache)
    if depth == Depth.TRAFFIC:
        return replace(before, moved=moved, latencies=histograms(data, FINE_NS))
    bills = commit_bills(data, before.missing, before.apart)
    traces = commit_traces(data)
    for case_id, _ in lacking(data, "requests"):
        bills.pop(case_id, None)
        traces.pop(case_id, None)
    return replace(before, bills=bills, traces=traces, latencies=histograms(data, COARSE_NS))


def _manifests(data: Dataset) -> Manifests:
    """Read the configuration of the first seed of each case, and the rest of every seed."""
    found = Manifests()
    for row in ask(data, "run/manifests"):
        case_id, seed, value = row["case_id"], row["seed"], json.loads(row["value"])
        match row["key"]:
            case "clock":
                found.clocks.add(str(value))
            case "operation_hash":
                found.operation_hashes.setdefault(case_id, {})[seed] = str(value)
            case "background":
                found.backgrounds.setdefault(case_id, {})[seed] = value
            case "program" | "watch":
                found.programs.setdefault(case_id, {})[seed] = value
            case "replay":
                found.replays.setdefault(case_id, {})[seed] = value
            case "regime":
                # What showed it, beside what was read back.
                found.configurations.setdefault(case_id, {}).setdefault("regime", value)
            case "shared_wal":
                if value:
                    found.configurations.setdefault(case_id, {}).setdefault("shared_wal", value)
            case _ if isinstance(value, dict):
                found.configurations[case_id] = {**value, **found.configurations.get(case_id, {})}
    return found
