"""joj show, explain and diff: a run's figures, its typical commit, and what two runs differ in."""

from __future__ import annotations

import sys
from dataclasses import asdict, replace
from pathlib import Path

from jojlab.analysis.commit.story import story
from jojlab.analysis.rows.completeness import missing_json
from jojlab.analysis.run.compare import compare, comparison_json
from jojlab.analysis.run.pivot import pivot, pivot_json, sorted_cases
from jojlab.analysis.run.summary import RunSummary, summarise
from jojlab.analysis.traffic.characterisation import characterisation_json, characterisations
from jojlab.command_line import options as common
from jojlab.command_line.group import PATH, argument, command, flag, option
from jojlab.foundation.cache import Cache
from jojlab.foundation.errors import EXPECTATION_FAILED, FINE, INCOMPLETE, DataError, UseError
from jojlab.foundation.printable import json_text
from jojlab.report.answer import answer_json, answer_lines
from jojlab.report.commits import print_story, without_requests
from jojlab.report.comparison import comparison_lines, print_comparison
from jojlab.report.live_trace import print_live_trace
from jojlab.report.memory_model import print_memory_models
from jojlab.report.shared.console import READABLE, terminal
from jojlab.report.shared.short_answer import print_answer
from jojlab.report.summary import (
    print_case,
    print_fingerprint,
    print_pivot,
    print_summary,
    print_warnings,
    write_cases,
    write_pivot,
)
from jojlab.report.traffic import print_kinds
from jojlab.trace.dataset import Dataset
from jojlab.trace.run_folder import RunFolder


@command()
@argument("run", type=PATH, help="Run folder.")
@option("--case", "CASE_ID", "Show the bill of one case.", default="")
@flag("--characterise", "Count reads and writes by kind.")
@option("--by", "FIELD,FIELD", "Tabulate figures by these fields.", default="", name="fields")
@option("--figure", "FIGURE", "Figures for --by, comma-separated.", default="throughput_tps")
@option("--sort", "NAME", "Sort by a figure or field; -NAME: descending.", default="")
@common.figures
@flag("--csv", "Print CSV, one line per case.", name="as_csv")
@common.json()
@flag("--hash", "Print only the SHA-256 of the tables' contents.", name="hash_only")
def show(
    run: Path,
    case: str,
    characterise: bool,
    fields: str,
    figure: str,
    sort: str,
    figures: bool,
    as_csv: bool,
    as_json: bool,
    hash_only: bool,
) -> int:
    """Show a run's answer, and one line per case.

    Figures are medians over the seeds.

    \b
    Examples:
      joj show runs/first-look
      joj show runs/first-look --case ext4-wal-fresh-fsync
      joj show runs/first-look --json | jq '.cases[].figures.throughput_tps'
      joj show runs/journal-modes --by filesystem,journal_mode --figure latency_ns_p99
      joj show runs/journal-modes --sort -throughput_tps
      joj show runs/journal-modes --csv > figures.csv
      joj show runs/first-look --characterise
      joj show runs/first-look --hash

    --characterise counts reads and writes by file kind, block type, waiting or not, sequential or
    random, and size. It is the default for a run without transactions, such as an imported trace.

    --by prints a table. The values of the last field are its columns. Fields that the experiment
    varies but --by does not name are shown beside the rows. joj list prints the names of figures
    and fields.

    Exit code 4 if events were lost, bytes are unattributed, or a case failed.
    """
    _refuse(
        {"--by": fields, "--sort": sort, "--case": case, "--characterise": characterise},
        {"--csv": as_csv, "--json": as_json},
    )

    folder = RunFolder.open(run)
    if hash_only:
        if case or as_json or as_csv or characterise or fields or sort:
            raise UseError("--hash takes no other options", "leave them out")
        print(folder.content_hash())
        return FINE

    # What a list of cases does not show takes most of the time.
    several = sum(bool(entry.captures) for entry in folder.cases) > 1
    listed = fields or as_csv or (not case and several)
    cache = Cache.default()
    summary = summarise(folder, only=case, figures_only=bool(listed), cache=cache)
    if sort:
        summary = replace(summary, cases=tuple(sorted_cases(summary, sort)))
    captured = any(entry.seeds for entry in summary.cases)
    if fields:
        _show_pivots(summary, fields.split(","), figure.split(","), as_csv=as_csv, as_json=as_json)
    elif as_csv:
        write_cases(sys.stdout, summary.cases)
    elif captured and (characterise or not (summary.measured_cases or as_json)):
        _show_kinds(folder, summary, as_json=as_json)
    elif as_json:
        print(json_text(answer_json(summary)))
    elif len(summary.cases) == 1:
        print_answer(terminal(READABLE), answer_lines(summary))
        print_case(terminal(READABLE), summary.cases[0], figures=figures)
        print_memory_models(terminal(READABLE), summary)
        print_warnings(terminal(READABLE), summary)
        print_fingerprint(terminal(READABLE), summary)
    else:
        print_summary(terminal(READABLE), summary, figures=figures)
    return INCOMPLETE if summary.incomplete_cases or summary.unfinished_cases else FINE


def _refuse(views: dict[str, str | bool], forms: dict[str, bool]) -> None:
    """Raise UseError for options that exclude each other."""
    for pair in (("--by", "--sort"), ("--by", "--case"), ("--by", "--characterise")):
        if all(views[name] for name in pair):
            raise UseError(f"{pair[0]} and {pair[1]} exclude each other", "leave one out")
    if all(forms.values()):
        raise UseError("--csv and --json exclude each other", "leave one out")
    if views["--characterise"] and forms["--csv"]:
        raise UseError("--characterise and --csv exclude each other", "use --json")


def _show_pivots(
    summary: RunSummary, axes: list[str], figures: list[str], *, as_csv: bool, as_json: bool
) -> None:
    """Print each figure by the fields."""
    if not summary.measured_cases:
        raise DataError("no case of this run has figures", "see the reasons: joj show RUN")
    found = [pivot(summary, axes, figure) for figure in figures]
    if as_json:
        rows = [row for each in found for row in pivot_json(each)]
        print(json_text(rows))
        return
    for each in found:
        if as_csv:
            write_pivot(sys.stdout, each)
        else:
            print_pivot(terminal(), each, summary)
    if not as_csv:
        print_warnings(terminal(READABLE), summary)


def _show_kinds(folder: RunFolder, summary: RunSummary, *, as_json: bool) -> None:
    """Print what kind of I/O the cases of `summary` made."""
    found = characterisations(Dataset.from_runs(folder))
    cases = [case for case in summary.cases if case.case_id in found]
    lines = answer_lines(summary, found)
    if as_json:
        document = [
            {
                "case_id": case.case_id,
                "case": dict(case.case),
                "characterisation": characterisation_json(found[case.case_id]),
                **missing_json(case.missing),
            }
            for case in cases
        ]
        print(json_text({"in_short": list(lines), "cases": document}))
        return
    print_answer(terminal(READABLE), lines)
    for case in cases:
        print_live_trace(terminal(READABLE), case)
        print_kinds(terminal(READABLE), case.label, found[case.case_id])
        print()
    print_warnings(terminal(READABLE), summary)


@command()
@argument("run", type=PATH, help="Run folder.")
@option("--case", "CASE_ID", "Which case; needed where there are several.", default="")
@common.json()
def explain(run: Path, case: str, as_json: bool) -> int:
    """Describe the typical commit of a case in sentences, write by write.

    It is the commit whose requests and bytes, and then latency, are nearest to the medians. Where
    it sends nothing while it runs, the typical checkpoint is described.

    \b
    Examples:
      joj explain runs/first-look --case ext4-truncate-fresh-fsync
      joj explain runs/own-app --case wal --json | jq '.calls[].cause'

    Exit code 4 if events were lost or bytes are unattributed.
    """
    folder = RunFolder.open(run)
    captured = [entry.case_id for entry in folder.cases if entry.captures]
    if not case and len(captured) != 1:
        raise UseError(
            f"{run} has {len(captured)} cases with captures",
            f"name one with --case: {', '.join(captured[:20])}",
        )
    name = case or captured[0]
    summary = summarise(folder, only=name, cache=Cache.default())
    found = summary.cases[0]
    if found.trace is None or not found.trace.runs:
        raise DataError(
            f"{name}: {without_requests(found.trace)}",
            "see what there is: joj show RUN --case CASE_ID --characterise",
        )
    if as_json:
        trace = found.trace
        document = {
            "case_id": found.case_id,
            "seed": trace.seed,
            "transaction_id": trace.transaction_id,
            "phase": trace.phase,
            "latency_ns": trace.latency_ns,
            "calls": [asdict(call) for call in story(trace)],
            **missing_json(found.missing),
        }
        print(json_text(document))
    else:
        print_story(terminal(READABLE), found)
        print_warnings(terminal(READABLE), summary)
    return INCOMPLETE if summary.incomplete_cases else FINE


@command()
@argument("run_a", type=PATH, help="The older run.")
@argument("run_b", type=PATH, help="The newer run.")
@option(
    "--through",
    "RUN",
    "A run between the two, with some parts of the first: how much of a change came before "
    "it, and how much after? May be given several times, in order.",
    PATH,
    multiple=True,
)
@common.json()
def diff(run_a: Path, run_b: Path, through: tuple[Path, ...], as_json: bool) -> int:
    """Compare two runs, figure by figure, and the parts that made them.

    \b
    Examples:
      joj diff runs/before runs/after
      joj diff runs/debian-12 runs/debian-13 --through runs/debian-13-with-kernel-6.1
      joj diff runs/before runs/after --json | jq '.changes[] | select(.within_spread | not)'

    Exit code 1 if a figure changed, if only one run has a case, seed or figure, or if the runs are
    incomplete in different ways. Exit code 4 if nothing differs, but a run is incomplete or there
    is nothing to compare.
    """
    cache = Cache.default()
    runs = [
        summarise(RunFolder.open(run), figures_only=True, cache=cache)
        for run in (run_a, *(through or ()), run_b)
    ]
    case_ids = {case.case_id for end in (runs[0], runs[-1]) for case in end.measured_cases}
    for path, between in zip(through or (), runs[1:-1], strict=True):
        if between.clocks != runs[0].clocks:
            raise UseError(
                f"--through {path}: its clock is another", "name a run of the same clock"
            )
        if case_ids.isdisjoint(case.case_id for case in between.measured_cases):
            raise UseError(
                f"--through {path}: it measured no case of the two runs",
                "run the same experiment with the same settings",
            )
    comparison = compare(runs[0], runs[-1], runs[1:-1])
    if as_json:
        in_short = list(comparison_lines(comparison))
        print(json_text({"in_short": in_short, **comparison_json(comparison)}))
    else:
        print_comparison(terminal(READABLE), comparison)
    if comparison.is_incomplete and (comparison.is_same or comparison.is_empty):
        return INCOMPLETE
    return FINE if comparison.is_same else EXPECTATION_FAILED
