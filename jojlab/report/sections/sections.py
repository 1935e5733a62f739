"""The sections of the report: each puts a chart, its table and the command for its numbers."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from typing import Any

from jojlab.analysis.commit.bill import Bill, BillRow
from jojlab.analysis.commit.classes import CLASSES, class_shares
from jojlab.analysis.run.compare import flatten
from jojlab.analysis.run.summary import CaseSummary, RunSummary
from jojlab.report.charts import chart_rows, charts, commit_chart, latency_chart
from jojlab.report.sections.commit_table import commit_table
from jojlab.report.sections.elements import (
    Cell,
    ask,
    banner,
    chart,
    details,
    numbers,
    pairs,
    paragraph,
    section,
    table,
)
from jojlab.report.words import reasons, text
from jojlab.report.words.overview import overview_columns

Specs = dict[str, dict[str, Any]]

_FEW = 12  # cases whose pictures stand open one below the other


def warnings(summary: RunSummary) -> str:
    """Say loudly what is missing."""
    lost = [
        f"{case.label}: {case.missing.lost_events} events lost, "
        + "; ".join(
            (f"{case.missing.unattributed_bytes} bytes without an owner", *case.missing.reasons)
        )
        for case in summary.incomplete
    ]
    failed = [f"{case.label}: {case.status}. {case.reason}" for case in summary.unfinished]
    if len(failed) > _FEW:
        more = len(failed) - _FEW
        failed[_FEW:] = [f"and {more} more: under How it was measured, Cases without figures"]
    clocks = [text.clocks([clock]) for clock in summary.clocks]
    return (
        banner("bad", "Incomplete: these numbers lack something", lost)
        + banner("bad", "Cases without an answer", failed)
        + banner("warn", "This run mixes clocks", clocks if len(clocks) > 1 else [])
    )


def overview(summary: RunSummary, run: str) -> str:
    """One line per case."""
    return section(
        "overview",
        "At a glance",
        paragraph(
            "Median over the seeds, and the smallest and largest where they differ. Requests "
            "(flushes among them), flushes and bytes are for one commit; deferred is what "
            "checkpoints and the sync at the end wrote, divided by the commits.",
            "soft",
        ),
        overview_table(summary),
        ask(f"joj show {run}", f"joj show {run} --json"),
    )


def overview_table(summary: RunSummary) -> str:
    """One line per case, also for those without figures."""
    columns = overview_columns(summary)
    rows: list[list[Cell]] = []
    for case in summary.cases:
        if case.figures.seeds:
            cells: list[Cell] = [_with_spread(case, figure) for _, figure in columns]
        else:
            cells = [case.status, *(["–"] * (len(columns) - 1))]
        rows.append([(case.label, f"unsafe: {case.unsafe}" if case.unsafe else ""), *cells])
    return table(["case", *(title for title, _ in columns)], rows)


def throughput(summary: RunSummary, run: str, specs: Specs) -> str:
    """Transactions per second by case."""
    specs["throughput-chart"] = charts.throughput(chart_rows.throughput_rows(summary))
    names = ("throughput_tps", "throughput_with_checkpoints_tps", "sync_calls_per_commit")
    rows = [[case.label, *(_with_spread(case, n) for n in names)] for case in summary.measured]
    return section(
        "throughput",
        "Throughput",
        chart("throughput-chart", "Bars of transactions per second by case"),
        paragraph(
            "The orange line is the range over the seeds. Checkpoints of the WAL are left out of "
            "the bars; the table has the rate with their time added.",
            "soft",
        ),
        numbers(
            table(["case", "transactions/s", "with checkpoints", "sync calls/commit"], rows),
            len(rows),
        ),
        ask(
            f"joj show {run} --json | "
            "jq -r '.cases[] | [.case_id, .figures.throughput_tps] | @tsv'",
        ),
    )


def latency(summary: RunSummary, run: str, specs: Specs) -> str:
    """Percentiles by case, of the transaction and of COMMIT alone."""
    many = len(summary.measured) > _FEW
    if many:
        specs["latency-chart"] = charts.latency(chart_rows.latency_rows(summary))
    specs["histogram-chart"] = latency_chart.histograms(chart_rows.histogram_rows(summary))
    histogram = chart("histogram-chart", "Histograms of latency by case on a logarithmic axis")
    names = chart_rows.PERCENTILE_NAMES
    rows = [
        [
            case.label,
            *(_with_spread(case, f"latency_ns_{name}") for name in names),
            text.figure("_ns_", case.figures.median["commit_latency_ns_p50"]),
        ]
        for case in summary.measured
    ]
    return section(
        "latency",
        "Latency",
        chart("latency-chart", "Latency percentiles by case on a logarithmic axis") if many else "",
        details("Histograms", f"{len(summary.measured)} cases", histogram) if many else histogram,
        paragraph(
            "Blue: the share of all transactions in bins 7.5 % wide; a quarter of the height is a "
            "sixteenth of them. Lines: exact percentiles by nearest rank, each a value that was "
            "measured; the median of the seeds, of which the table has the smallest and largest.",
            "soft",
        ),
        numbers(table(["case", *names.values(), "COMMIT alone, p50"], rows), len(rows)),
        ask(
            f'joj query {run} "SELECT case_id, seed, quantile_disc(return_ns - begin_ns, '
            "[0.5, 0.9, 0.99, 0.999, 1]) AS latency_ns FROM transactions "
            "WHERE phase = 'commit' GROUP BY ALL ORDER BY ALL\""
        ),
    )


def bill(summary: RunSummary, run: str, specs: Specs) -> str:
    """What one commit costs by class, then every case's bill in full."""
    rows = chart_rows.bill_rows(summary)
    specs["bytes-chart"] = charts.bill(rows, "kib", "KiB for one commit")
    specs["requests-chart"] = charts.bill(rows, "requests", "requests and flushes for one commit")
    return section(
        "bill",
        "The bill of one commit",
        paragraph(
            "Every byte stands in one class. Faded: deferred to checkpoints and to the sync at the "
            "end.",
            "soft",
        ),
        chart("bytes-chart", "Stacked bars of bytes for one commit by class"),
        chart("requests-chart", "Stacked bars of requests and flushes for one commit by class"),
        _class_table(summary),
        "<h3>In full, by file and cause</h3>",
        *(_full_bill(case, run, len(summary.measured) == 1) for case in summary.measured),
    )


def commits(summary: RunSummary, run: str, specs: Specs) -> str:
    """The requests of one typical commit of every case."""
    parts = []
    for place, case in enumerate(summary.measured):
        if not case.trace or not case.trace.runs:
            continue
        name = f"commit-chart-{place}"
        runs, flushes = chart_rows.commit_rows(case.trace)
        specs[name] = commit_chart.commit(runs, flushes, case.trace.latency_ns / 1e6)
        which = (
            f"case_id = '{case.case_id}' AND seed = {case.trace.seed} "
            f"AND transaction_id = {case.trace.transaction_id}"
        )
        parts.append(
            details(
                case.label,
                f"{chart_rows.which_commit(case)}, {text.duration(case.trace.latency_ns)}",
                chart(name, f"Requests of one commit of {case.label} over time and sector"),
                commit_table(case.trace),
                ask(
                    f'joj query {run} "SELECT * FROM requests JOIN page_runs USING '
                    f'(case_id, seed, request_id) WHERE {which} ORDER BY issue_ns"'
                ),
                is_open=place < 2,
            )
        )
    return section(
        "commit",
        "One commit, request by request",
        paragraph(
            "A typical commit of each case: the one whose requests and bytes are nearest to the "
            "medians. Each bar is a request from issue to completion, at its first sector; grey: "
            "the device flushes its cache.",
            "soft",
        ),
        *parts,
    )


def method(summary: RunSummary, run: str) -> str:
    """Say what made the numbers: configuration read back, fingerprint, settings, other cases."""
    settings = summary.experiment.get("settings", {})
    absent = [(c.label, f"{c.status}: {c.reason}") for c in summary.cases if c.status != "ok"]
    parts = ["<h3>Effective configuration, as read back</h3>"]
    parts += [
        details(case.label, "", pairs(_flat(case.configuration)))
        for case in summary.measured
        if case.configuration
    ]
    if absent:
        parts += ["<h3>Cases without figures</h3>", pairs(absent)]
    if settings:
        parts += ["<h3>Settings of the experiment</h3>", pairs(_flat(settings))]
    parts += ["<h3>Fingerprint</h3>", pairs(_flat(summary.fingerprint))]
    same = "   # the same on any machine" if summary.clocks == ("virtual",) else ""
    parts.append(ask(f"joj show {run} --hash{same}", f"joj diff {run} OTHER"))
    clocks = paragraph(text.clocks(summary.clocks))
    return section("method", "How it was measured", clocks, *parts)


def _class_table(summary: RunSummary) -> str:
    shares = {case.case_id: class_shares(case.bill) for case in summary.measured if case.bill}
    classes = [n for n in CLASSES if any(s.name == n for part in shares.values() for s in part)]
    rows: list[list[Cell]] = []
    for case in summary.measured:
        found = {(share.part, share.name): share for share in shares.get(case.case_id, ())}
        cells: list[Cell] = []
        for name in classes:
            now, later = found.get(("commit", name)), found.get(("deferred", name))
            cells.append((_class_cell(name, now), f"+ {_class_cell(name, later)}" if later else ""))
        rows.append([case.label, *cells])
    heads = ["flushes" if name == "flush" else f"{name}, KiB" for name in classes]
    return numbers(table(["case", *heads], rows), len(rows))


def _class_cell(name: str, share: Any) -> str:
    if share is None:
        return "0"
    return text.digits(share.requests) if name == "flush" else text.kib(share.bytes)


def _full_bill(case: CaseSummary, run: str, is_open: bool) -> str:
    if not case.bill:
        return ""
    total = case.bill.total("commit")
    soft = (
        f"{text.digits(case.bill.per_commit(total.requests))} requests, "
        f"{text.kib(case.bill.per_commit(total.bytes))} KiB, over {case.bill.transactions} commits"
    )
    parts = [_bill_table(case.bill, "commit"), *_reasons(case.bill, "commit")]
    for part, title in text.LATER_PARTS.items():
        if case.bill.part(part):
            parts += [f"<h3>{title.capitalize()}</h3>", _bill_table(case.bill, part)]
            parts += _reasons(case.bill, part)
    command = f"joj show {run} --case {shlex.quote(case.case_id)}"
    return details(case.label, soft, *parts, ask(command), is_open=is_open)


def _reasons(bill: Bill, part: str) -> list[str]:
    told = (*reasons.sentences(bill, part), *reasons.journal_sentences(bill, part))
    return [paragraph(sentence) for sentence in told]


def _bill_table(bill: Bill, part: str) -> str:
    total = bill.total(part)
    rows: list[list[Cell]] = [_bill_cells(bill, row, total.bytes) for row in bill.part(part)]
    rows.append(
        [
            "total", "", "", "",
            text.digits(bill.per_commit(total.requests)),
            text.kib(bill.per_commit(total.bytes)),
            "",
            f"{total.bytes:,}",
        ]
    )  # fmt: skip
    columns = [
        "block type", "file kind", "file", "cause", "requests", "KiB", "share", "bytes in all",
    ]  # fmt: skip
    return table(columns, rows, words=4, last="total")


def _bill_cells(bill: Bill, row: BillRow, whole: int) -> list[Cell]:
    plain = row.operation in ("write", "flush")
    return [
        row.block_type if plain else f"{row.block_type} ({row.operation})",
        "" if row.file_kind == "none" else row.file_kind,
        row.file,
        row.cause,
        text.digits(bill.per_commit(row.requests)),
        text.kib(bill.per_commit(row.bytes)),
        text.percent(row.bytes / whole) if whole and row.bytes else "",
        f"{row.bytes:,}",
    ]


def _with_spread(case: CaseSummary, figure: str) -> Cell:
    if figure not in case.figures.median:
        return "–"
    return (
        text.figure(figure, case.figures.median[figure]),
        text.spread(figure, case.figures.spread[figure]).strip("[]"),
    )


def _flat(values: Mapping[str, Any]) -> list[tuple[str, str]]:
    return [
        (name, value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
        for name, value in flatten(values).items()
    ]
