"""The cases of a run, one row each: the six figures that answer most, or all of the overview."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from markupsafe import Markup

from jojlab.analysis.run.answer import times_as_fast
from jojlab.analysis.run.summary import CaseSummary, RunSummary
from jojlab.model.figures import FIGURES
from jojlab.report import durability, hazards
from jojlab.report.shared import text
from jojlab.report.shared.template import Cell, NotedCell, Section, case_anchor, case_ids, render

# The figures that a case's row always has, where some case has them: column title, figure.
_FEW = (
    ("p50", "latency_ns_p50"),
    ("p99", "latency_ns_p99"),
    ("I/O time", "io_time_ns"),
    ("KiB", "bytes_per_commit"),
    ("flushes", "flushes_per_commit"),
)
_DIGITS = 3
# Those that it has on request: column title, figure.
OVERVIEW = (
    ("transactions/s", "throughput_tps"),
    ("I/O time", "io_time_ns"),
    ("with checkpoints", "throughput_with_checkpoints_tps"),
    ("latency p50", "latency_ns_p50"),
    ("p99", "latency_ns_p99"),
    ("max", "latency_ns_max"),
    ("paying for a checkpoint p50", "paying_latency_ns_p50"),
    ("p99", "paying_latency_ns_p99"),
    ("checkpoints, shared out", "checkpoint_ns_per_commit"),
    ("requests", "requests_per_commit"),
    ("flushes", "flushes_per_commit"),
    ("bytes", "bytes_per_commit"),
    ("fs journal", "fs_journal_bytes_per_commit"),
    ("deferred", "deferred_bytes_per_commit"),
)
# Those that say nothing where no checkpoint was made.
_OF_CHECKPOINTS = {
    "throughput_with_checkpoints_tps",
    "paying_latency_ns_p50",
    "paying_latency_ns_p99",
    "checkpoint_ns_per_commit",
}


class CaseTable(NamedTuple):
    """A row for each case. `titles` are those of the fields that vary, or "case"; `heads` of the
    figures, of which each is a number or a dash; `rows` the case, its values and its figures.
    """

    titles: tuple[str, ...]
    heads: tuple[str, ...]
    rows: tuple[tuple[CaseSummary, tuple[str, ...], tuple[NotedCell, ...]], ...]


def case_table(summary: RunSummary) -> CaseTable:
    """Return the cases with the six figures that answer most, as far as any case has them."""
    known = set().union(*(case.figures.median for case in summary.measured_cases))
    columns = [column for column in _FEW if column[1] in known]
    is_timed = "latency_ns_p50" in known
    times = times_as_fast(summary)
    part = summary.parts[0] if len(summary.parts) == 1 else None
    titles = part.named_by if part else ()
    rows = []
    for case in summary.cases:
        values = part.values(case.case_id, case.case) if part and titles else (case.label,)
        cells = [_short_figure(figure, case) for _, figure in columns]
        if is_timed:
            own = times.get(case.case_id)
            shown = "–" if own is None else text.digits(own, _DIGITS)
            cells.insert(2, NotedCell(shown, "", value=own))
        if not case.figures.seeds and cells:
            cells[0] = NotedCell(case.status, "")
        rows.append((case, values, tuple(cells)))
    heads = [title for title, _ in columns]
    if is_timed:
        heads[0] = f"{text.transaction_name(summary.measured_cases).lower()} p50"
        heads.insert(2, "times as fast")
    return CaseTable(titles or ("case",), tuple(heads), tuple(rows))


def _short_figure(figure: str, case: CaseSummary) -> NotedCell:
    """Return a figure in three digits; bytes in KiB, which the column's title says."""
    value = case.figures.median.get(figure)
    if value is None:
        return NotedCell("–", "")
    if FIGURES[figure].unit == "ns":
        shown = text.duration(value, _DIGITS)
    else:
        shown = text.digits(value / (1024 if figure == "bytes_per_commit" else 1), _DIGITS)
    return NotedCell(shown, "", value=value)


def case_title(summary: RunSummary) -> str:
    """Return the head of the column of cases: the axes that their names are made of."""
    titles = {" · ".join(part.named_by) for part in summary.parts}
    return (titles.pop() if len(titles) == 1 else "") or "case"


def overview_columns(summary: RunSummary) -> list[tuple[str, str]]:
    """Return the columns of the overview that some case has: without a tracer there are fewer.

    Where a checkpoint was made, the rates without and with its time are both there, and say which
    they are; so is what those waited who paid for one, and what it costs each if shared out evenly.
    """
    if any(case.figures.median.get("checkpoints") for case in summary.measured_cases):
        titles = {"throughput_tps": "transactions/s without checkpoints"}
        titles["throughput_with_checkpoints_tps"] = "with checkpoints"
        left_out = {"latency_ns_max"}  # as long as the longest that pays
    else:
        titles = {}
        left_out = _OF_CHECKPOINTS
    return [
        (titles.get(figure, title), figure)
        for title, figure in OVERVIEW
        if figure not in left_out
        if not summary.measured_cases
        or any(figure in c.figures.median for c in summary.measured_cases)
    ]


def paying_note(summary: RunSummary) -> str:
    """Say of how many commits that paid for a checkpoint the percentiles are; empty of none."""
    counts = [
        int(case.figures.median["checkpoints"])
        for case in summary.measured_cases
        if case.figures.median.get("paying_latency_ns_p50") is not None
    ]
    if not counts:
        return ""
    least, most = min(counts), max(counts)
    many = f"{least}" if least == most else f"{least} to {most}"
    return f"paying for a checkpoint: of {many} checkpoints a capture; p99 of few is the longest"


_MOST_NAMED = 4  # cases that a warning names
_MOST_FAILED = 12  # cases without a result that are named at the top


def warnings(summary: RunSummary) -> Markup:
    """Say loudly what is missing."""
    lost = _group_by_words(
        (case.label, "; ".join(case.missing.in_words)) for case in summary.incomplete_cases
    )
    lines = [
        (summary.partial(case), f"{case.label}: {case.status}. {case.reason}")
        for case in summary.unfinished_cases
    ]
    failed = [words for partial, words in lines if not partial]
    lacking = [f"{words} ({partial})" for partial, words in lines if partial]
    if len(failed) > _MOST_FAILED:
        more = len(failed) - _MOST_FAILED
        failed[_MOST_FAILED:] = [f"and {more} more: see How it was measured, Cases without figures"]
    notes = _group_by_words(
        (case.label, note) for case in summary.cases for note in case.missing.notes
    )
    clocks = [text.clocks([clock]) for clock in summary.clocks]
    return render(
        "report/warnings.html",
        lost=lost,
        failed=failed,
        lacking=lacking,
        notes=notes,
        clocks=clocks if len(clocks) > 1 else [],
    )


def _group_by_words(sentences: Iterable[tuple[str, str]]) -> list[str]:
    """Return what is said of cases, each once, after the cases that it is said of."""
    labels: dict[str, list[str]] = {}
    for label, words in sentences:
        labels.setdefault(words, []).append(label)
    return [
        f"{'; '.join(names) if len(names) < _MOST_NAMED else f'{len(names)} cases'}: {words}"
        for words, names in labels.items()
    ]


def overview(summary: RunSummary, run: str) -> Section:
    """Return one line per case, with the figures that answer most."""
    found = case_table(summary)
    rows: list[list[Cell]] = []
    for case, values, cells in found.rows:
        link = case_anchor(case.case_id) if case.bill else ""
        small = "\n".join(filter(None, (summary.partial(case), hazards.risk_mark(case))))
        first = NotedCell(values[0], small, "risk", link=link)
        power_cuts = NotedCell(
            durability.outcome_words(case), durability.contradiction(case), "risk"
        )
        rows.append([first, *values[1:], power_cuts, *cells])
    return Section.render(
        "overview",
        "overview",
        columns=[*found.titles, "durability", *found.heads],
        rows=rows,
        ids=case_ids(summary.cases),
        words=len(found.titles) + 1,
        run=run,
    )


def figures_section(summary: RunSummary, run: str) -> Section:
    """Return every case with all figures of the overview, to be opened."""
    return Section.render(
        "figures", "figures", cases=overview_table(summary), paying=paying_note(summary), run=run
    )


def overview_table(summary: RunSummary) -> dict[str, Any]:
    """Return columns, a row per case, also for those without figures, and the cases' ids."""
    columns = overview_columns(summary)
    rows: list[list[Cell]] = []
    for case in summary.cases:
        if case.figures.seeds:
            cells: list[Cell] = [spread_cell(case, figure) for _, figure in columns]
        else:
            cells = [case.status, *(["–"] * (len(columns) - 1))]
        power_cuts = NotedCell(
            durability.outcome_words(case), durability.contradiction(case), "risk"
        )
        name = [summary.partial(case), hazards.risk_mark(case)]
        link = case_anchor(case.case_id) if case.bill and not summary.is_composed else ""
        shown = NotedCell(case.label, "\n".join(filter(None, name)), "risk", link=link)
        rows.append([shown, power_cuts, *cells])
    titles = [case_title(summary), "durability", *(title for title, _ in columns)]
    return {"columns": titles, "rows": rows, "ids": case_ids(summary.cases)}


def name_of(summary: RunSummary, case: CaseSummary) -> Cell:
    """Return the first cell of a case's row: its name, and below it what must be known of it."""
    marks = [summary.partial(case), durability.case_mark(case)]
    return NotedCell(case.label, "\n".join(filter(None, marks)), "risk")


def risk_note(summary: RunSummary, style: str = "Hatched") -> str:
    """Return what a chart's note says of the cases that are marked so; nothing where none is."""
    if not any(durability.risk(case) for case in summary.measured_cases):
        return ""
    return f" {style}: at risk; the table shows the risk below the name."


def spread_cell(case: CaseSummary, figure: str) -> Cell:
    """Return a figure of a case, and below it the smallest and largest of its seeds."""
    if figure not in case.figures.median:
        return "–"
    return NotedCell(
        text.figure(figure, case.figures.median[figure]),
        text.spread(figure, case.figures.spread[figure]).strip("[]"),
        value=case.figures.median[figure],
    )
