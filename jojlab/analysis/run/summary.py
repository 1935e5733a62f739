"""Everything that is shown of a run, computed once: what the terminal and the report are given, and
what manifests say of a case's commits and their place, which risks.py has to know.
"""

from __future__ import annotations

import enum
import json
import statistics
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

import msgspec

from jojlab.analysis.commit.bill import Bill, commit_bills
from jojlab.analysis.commit.statement_costs import StatementCosts, statement_costs
from jojlab.analysis.commit.story import CommitTrace, commit_traces
from jojlab.analysis.figures.case_figures import CaseFigures, case_figures
from jojlab.analysis.figures.throughput import (
    COARSE_NS,
    FINE_NS,
    ApartTransactions,
    Bin,
    apart_json,
    histograms,
    transactions_apart,
)
from jojlab.analysis.rows.ask import ask, lacking
from jojlab.analysis.rows.completeness import Completeness, completeness, missing_json
from jojlab.analysis.run.durability import (
    Contradiction,
    Durability,
    case_durability,
    durability_json,
)
from jojlab.analysis.run.risks import hazards, unknowns, verifiable
from jojlab.analysis.study.parts import Part, evaluate, fill_tables, parts_of
from jojlab.analysis.study.published import statements_json
from jojlab.analysis.study.tables import tables_json
from jojlab.analysis.traffic.characterisation import Traffic, traffic
from jojlab.analysis.traffic.live import LiveTrace, live_json, live_traces
from jojlab.foundation.cache import Cache
from jojlab.model.figures import PASSES, pass_figure
from jojlab.model.filesystems import FILESYSTEMS
from jojlab.model.hazards import Hazard, ModeCounts, Observation, Unknown
from jojlab.model.workload import Workload
from jojlab.model.workloads import WORKLOADS
from jojlab.model.workloads.program import SQLITE_CHECK
from jojlab.trace.dataset import Dataset
from jojlab.trace.memory_counts import CaseMemory, MemoryModel, read_memory_models
from jojlab.trace.run_folder import CaseEntry, RunFolder

_COUNTS = tuple(each.name for each in fields(ModeCounts))


def observation_of(case_id: str, manifests: Manifests, missing: Completeness) -> Observation:
    """Return what is known of a case: its scripts' databases and journal modes, and a
    program's or replay's commits, those of all seeds together.
    """
    programs = list(manifests.programs.get(case_id, {}).values())
    replays = list(manifests.replays.get(case_id, {}).values())
    found = [*programs, *replays]
    scripts = manifests.configurations.get(case_id, {}).get("scripts") or ()
    return Observation(
        # Those that a connection of some script has open, at most.
        databases=max((1 + len(each.get("attached") or ()) for each in scripts), default=1),
        journal_modes=tuple(
            sorted({mode for each in scripts for mode in each.get("journal_modes") or ()})
        ),
        modes=_modes(found),
        found_databases=sum(int(each.get("databases", 0)) for each in found),
        lost_calls=any(each.get("lost_calls") for each in programs)
        or bool(replays and missing.reasons),
    )


def place_of(case: Mapping[str, Any], configuration: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a case with the filesystem that it ran on, where its fields do not say that: of a run
    in a directory of this machine the manifest has its line of /proc/mounts.
    """
    if not case or "filesystem" in case or not configuration.get("filesystem"):
        return case
    line = str(configuration.get("mount") or "").split(" ")
    place = {
        "filesystem": configuration["filesystem"],
        "mount_options": line[3] if len(line) == 4 else "",
    }
    filesystem = FILESYSTEMS.get(str(configuration["filesystem"]))
    lines = [str(each) for each in configuration.get("driver_options") or ()]
    if filesystem and (mkfs_options := filesystem.mkfs_options_of(lines)):
        place["mkfs_options"] = mkfs_options
    return {**case, **place}


def with_program(observation: Observation, programs: Sequence[Mapping[str, Any]]) -> Observation:
    """Return it with what was seen of a program's commits, by its seeds."""
    return replace(
        observation,
        modes=_modes(programs),
        found_databases=sum(int(each.get("databases", 0)) for each in programs),
        lost_calls=any(each.get("lost_calls") for each in programs),
    )


def _modes(rows: Iterable[Mapping[str, Any]]) -> dict[str, ModeCounts] | None:
    """Return the commits by journal mode of some seeds; None where one did not tell them."""
    sums: dict[str, Counter[str]] = {}
    is_told = False
    for each in rows:
        if "journal_modes" not in each:
            return None
        is_told = True
        for mode, counts in each["journal_modes"].items():
            sums.setdefault(mode, Counter()).update({n: int(counts[n]) for n in _COUNTS})
    return {mode: ModeCounts(**counts) for mode, counts in sums.items()} if is_told else None


@dataclass(frozen=True)
class CaseSummary:
    """One case. `label` names it by the fields in which the cases of the run differ."""

    case_id: str
    label: str
    case: Mapping[str, Any]
    status: str
    reason: str
    seeds: tuple[int, ...] = ()
    figures: CaseFigures = field(default_factory=CaseFigures)
    missing: Completeness = field(default_factory=Completeness)
    bill: Bill | None = None
    trace: CommitTrace | None = None
    configuration: Mapping[str, Any] = field(default_factory=dict)
    # By seed: the hash of the operations performed, what the background load did, and how the
    # program ended.
    operation_hashes: Mapping[int, str] = field(default_factory=dict)
    backgrounds: Mapping[int, Any] = field(default_factory=dict)
    programs: Mapping[int, Any] = field(default_factory=dict)
    # In the calls of a program or a replay.
    has_found_commits: bool = False
    latencies: tuple[Bin, ...] = ()
    traffic: Traffic | None = None
    # Of a live trace that saw the calls of programs.
    live: LiveTrace | None = None
    # Of such a one whose program's SQL was recorded.
    statements: StatementCosts | None = None
    # What is at risk, and what is not known: safe by the manuals is what has neither.
    hazards: tuple[Hazard, ...] = ()
    unknowns: tuple[Unknown, ...] = ()
    # What power cuts left; None where it was not tested, and why not where that was asked for.
    durability: Durability | None = None
    uncut: str = ""
    # Hashes of the contents of the files and folders that its fields name.
    inputs: Mapping[str, str] = field(default_factory=dict)
    # What it did beside its commits.
    apart: tuple[ApartTransactions, ...] = ()

    @property
    def contradiction(self) -> Contradiction | None:
        """Return how power cuts disagree with what the manuals say of the case's settings; None
        where a check of the user's judged, as no manual knows what it looks for.
        """
        if self.durability is None or self.has_own_check:
            return None
        return self.durability.contradicts(verifiable(self.case, self.hazards))

    @property
    def unpromised_outcomes(self) -> tuple[str, ...]:
        """Return the outcomes of power cuts that the manuals rule out for the case's settings."""
        if self.durability is None or self.has_own_check:
            return ()
        return self.durability.unpromised_outcomes(verifiable(self.case, self.hazards))

    @property
    def filesystem(self) -> str:
        """Return the filesystem that the case ran on; empty where that is not known."""
        return str(place_of(self.case, self.configuration).get("filesystem", ""))

    @property
    def workload(self) -> Workload | None:
        """Return the workload of the case; None where jojlab does not know it."""
        return WORKLOADS.get(str(self.case.get("workload")))

    @property
    def has_own_check(self) -> bool:
        """Return whether a check of the user's judges what a power cut left."""
        return str(self.case.get("check", SQLITE_CHECK)) != SQLITE_CHECK

    @property
    def judge(self) -> str:
        """Return what is judged after a power cut: operations, what syncs promised, what a check of
        the user's looks at, or databases of which the last rows alone are known.
        """
        if self.workload and self.workload.judges_syncs:
            return "syncs"
        databases = "check" if self.has_own_check else "databases"
        return databases if self.workload and self.workload.finds_commits else "operations"

    @property
    def is_refuted(self) -> bool:
        """Return whether a power cut did harm that the manuals rule out, or that a check of the
        user's found.
        """
        if self.has_own_check:
            return self.durability is not None and self.durability.is_unsafe
        return self.contradiction is Contradiction.UNPROMISED


@dataclass(frozen=True)
class RunSummary:
    """A run: its question, its cases in the experiment's order, and what made them."""

    name: str
    question: str
    experiment: Mapping[str, Any]
    seeds: tuple[int, ...]
    cases: tuple[CaseSummary, ...]
    fingerprint: Mapping[str, Any]
    clocks: tuple[str, ...] = ()
    parts: tuple[Part, ...] = ()
    # What joj run --memory-model counted.
    memory_models: tuple[MemoryModel, ...] = ()

    @property
    def is_composed(self) -> bool:
        """Return whether the run is of several experiments."""
        return bool(self.experiment.get("parts"))

    @property
    def notes(self) -> tuple[str, ...]:
        """Return what the experiment's author says of the results as a whole."""
        return tuple(self.experiment.get("notes", ()))

    def part_summary(self, part: Part) -> RunSummary:
        """Return the summary of one part, its cases by their short names."""
        own = set(part.case_ids)
        cases = tuple(
            replace(case, label=part.labels[case.case_id])
            for case in self.cases
            if case.case_id in own
        )
        return replace(self, name=part.name, question=part.question, cases=cases, parts=(part,))

    @property
    def measured_cases(self) -> tuple[CaseSummary, ...]:
        """The cases that have figures."""
        return tuple(case for case in self.cases if case.figures.seeds)

    @property
    def incomplete_cases(self) -> tuple[CaseSummary, ...]:
        """The cases whose captures lack something."""
        return tuple(case for case in self.cases if case.missing.is_incomplete)

    @property
    def is_refuted(self) -> bool:
        """Return whether a power cut refuted a case."""
        return any(case.is_refuted for case in self.cases)

    def partial(self, case: CaseSummary) -> str:
        """Say how many of its seeds a case was measured with where it lacks some; else empty."""
        found = len(case.figures.seeds)
        return f"{found} of {len(self.seeds)} seeds" if 0 < found < len(self.seeds) else ""

    @property
    def unfinished_cases(self) -> tuple[CaseSummary, ...]:
        """The cases that failed or were not reached (those skipped on purpose are not)."""
        return tuple(case for case in self.cases if case.status in ("failed", "pending"))

    def only(self, case_id: str) -> RunSummary:
        """Return the summary of one case."""
        return replace(self, cases=tuple(case for case in self.cases if case.case_id == case_id))


def summarise(
    run: RunFolder,
    *,
    only: str = "",
    with_traffic: bool = False,
    figures_only: bool = False,
    cache: Cache | None = None,
) -> RunSummary:
    """Compute all figures, bills and traces of `run`, or of the one case that `only` names.

    A run without a capture has none. Its traffic takes longer, and is for reports, as are fine bins
    of its latencies. With `figures_only` there are no bills, traces and bins. What
    was computed before is taken from the cache.
    """
    if only:
        run = replace(run, cases=[run.case(only)])
    parts = parts_of(run.experiment, run.cases)
    composed = bool(run.experiment.get("parts"))
    # A run of several experiments has hundreds of cases; each has its bill by joj show --case.
    detailed = bool(only or not composed) and not figures_only
    what = Depth.TRAFFIC if detailed and with_traffic else Depth(detailed)
    has_captures = any(entry.captures for entry in run.cases)
    found = findings(Dataset.from_runs(run), what, cache) if has_captures else Findings()
    by_id = {entry.case_id: entry for entry in run.cases}
    durability = {entry.case_id: case_durability(run, entry) for entry in run.cases}
    costs = statement_costs(run) if has_captures else None
    cases = tuple(
        replace(
            _case(by_id[case_id], part, found, durability[case_id], part.name * composed),
            statements=costs,
        )
        for part in parts
        for case_id in part.case_ids
    )
    models = read_memory_models(run.path)
    records = run.experiment.get("parts") or [run.experiment]
    parts = tuple(
        replace(
            part,
            statements=evaluate(record, part, cases),
            tables=fill_tables(record, part, cases),
            modelled_tables={
                model.core: fill_tables(record, part, _with_memory(cases, model))
                for model in models
                if record.get("tables")
            },
        )
        for record, part in zip(records, parts, strict=True)
    )
    return RunSummary(
        str(run.experiment.get("name", run.path.name)),
        str(run.experiment.get("question", "")),
        run.experiment,
        tuple(run.seeds),
        cases,
        run.fingerprint,
        tuple(sorted(found.manifests.clocks)),
        parts,
        models,
    )


def _case(
    entry: CaseEntry, part: Part, answers: Findings, durability: Durability | None, part_name: str
) -> CaseSummary:
    """Return the summary of one case; `part_name` names its part where there are several."""
    case_id, manifests = entry.case_id, answers.manifests
    missing = answers.missing.get(case_id, Completeness())
    configuration = manifests.configurations.get(case_id, {})
    observation = observation_of(case_id, manifests, missing)
    case = place_of(entry.case, configuration)
    label = part.labels[case_id]
    return CaseSummary(
        case_id=case_id,
        label=f"{part_name}: {label}" if part_name else label,
        case=entry.case,
        status=entry.status,
        reason="the run ended before it" if entry.status == "pending" else entry.reason,
        seeds=tuple(capture.seed for capture in entry.captures),
        figures=answers.figures.get(case_id, CaseFigures()),
        missing=missing,
        bill=answers.bills.get(case_id),
        trace=answers.traces.get(case_id),
        configuration=configuration,
        operation_hashes=manifests.operation_hashes.get(case_id, {}),
        backgrounds=manifests.backgrounds.get(case_id, {}),
        programs=manifests.programs.get(case_id, {}),
        has_found_commits=bool(observation.modes),
        latencies=answers.latencies.get(case_id, ()),
        traffic=answers.moved.get(case_id),
        hazards=hazards(case, part.unsafe(case_id), observation),
        unknowns=unknowns(case, observation),
        durability=durability,
        uncut=entry.uncut,
        inputs=entry.inputs,
        apart=answers.apart.get(case_id, ()),
        live=answers.live.get(case_id),
    )


def _with_memory(cases: Iterable[CaseSummary], model: MemoryModel) -> list[CaseSummary]:
    """Return the cases that the model is of, with its time."""
    by_id = {each.case_id: each for each in model.cases}
    return [
        replace(case, figures=_figures_with_memory(case.figures, case.case, by_id[case.case_id]))
        for case in cases
        if case.case_id in by_id and case.figures.seeds
    ]


def _figures_with_memory(
    figures: CaseFigures, case: Mapping[str, Any], memory: CaseMemory
) -> CaseFigures:
    """Return figures whose throughputs have the added time in every transaction.

    The largest throughput has the smallest addition, as each seed has its own.
    """
    median, spread = dict(figures.median), dict(figures.spread)
    for name, part, operations in _throughputs(figures, case):
        added = [sum(each.all.added_ns for each in seed) for seed in memory.parts_of_commits(part)]
        low, high = spread[name]
        median[name] = _slower(median[name], statistics.median(added) / operations)
        spread[name] = (
            _slower(low, max(added) / operations), _slower(high, min(added) / operations),
        )  # fmt: skip
    return replace(figures, median=median, spread=spread)


def _throughputs(figures: CaseFigures, case: Mapping[str, Any]) -> Iterator[tuple[str, str, int]]:
    """Yield each throughput, the part of the run that it is of, and the operations of that."""
    if "throughput_tps" in figures.median:
        yield "throughput_tps", "", int(figures.median["transactions"])
    for verb in PASSES:
        if pass_figure(verb) in figures.median:
            yield pass_figure(verb), verb, case["file_bytes"] // case["record_bytes"]


def _slower(throughput: float, added_ns: float) -> float:
    return 1 / (1 / throughput + added_ns / 1e9)


def safety_json(case: CaseSummary) -> dict[str, Any]:
    """Return what `--json` prints of a case's safety by the manuals and by power cuts."""
    durability = durability_json(case.durability, case.contradiction, case.uncut)
    if case.durability:
        durability["judged"] = case.judge
    return {
        "hazards": [
            {"kind": each.kind.value, "cause": each.cause.value, "value": each.value}
            for each in case.hazards
        ],
        "unknown": [{"doubt": it.doubt.value, "value": it.value} for it in case.unknowns],
        "durability": durability,
    }


def summary_json(summary: RunSummary) -> dict[str, Any]:
    """Return what `joj show --json` prints: figures are medians over seeds, spread [min, max]."""
    return {
        "experiment": summary.name,
        "question": summary.question,
        "notes": list(summary.notes),
        "parts": [
            {"name": part.name, "question": part.question, "notes": list(part.notes)}
            for part in (summary.parts if summary.is_composed else ())
        ],
        "clocks": list(summary.clocks),
        "cases": [
            {
                "case_id": case.case_id,
                "case": dict(case.case),
                "status": case.status,
                "reason": case.reason,
                "figures": dict(case.figures.median),
                "apart": apart_json(case.apart),
                "spread": {name: list(ends) for name, ends in case.figures.spread.items()},
                "seeds": list(case.seeds),
                "missing_seeds": [seed for seed in summary.seeds if seed not in case.seeds],
                **missing_json(case.missing),
                "notes": list(case.missing.notes),
                **safety_json(case),
                "operation_hash": dict(case.operation_hashes),
                "background": dict(case.backgrounds),
                "program": dict(case.programs),
                **({"live": live_json(case.live)} if case.live else {}),
                **({"statements": msgspec.to_builtins(case.statements)} if case.statements else {}),
            }
            for case in summary.cases
        ],
        "published": {part.name: statements_json(part.statements) for part in summary.parts},
        "tables": {part.name: tables_json(part.tables) for part in summary.parts},
        "memory_models": [msgspec.to_builtins(model) for model in summary.memory_models],
        "modelled_tables": {
            part.name: {core: tables_json(found) for core, found in part.modelled_tables.items()}
            for part in summary.parts
            if part.modelled_tables
        },
        "fingerprint": dict(summary.fingerprint),
    }


class Depth(enum.IntEnum):
    """The depth of a question: figures; bills, traces and bins too; traffic and fine bins too."""

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
    apart: Mapping[str, tuple[ApartTransactions, ...]] = field(default_factory=dict)
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
