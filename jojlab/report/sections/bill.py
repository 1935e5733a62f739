"""The section of the bill: what one commit costs by class, and every bill by file and cause."""

from __future__ import annotations

import shlex
from typing import Any

from jojlab.analysis.commit.bill import Bill, BillRow
from jojlab.analysis.commit.classes import CLASSES, class_shares
from jojlab.analysis.run.summary import CaseSummary, RunSummary
from jojlab.report.charts import by_case, chart_rows
from jojlab.report.sections.elements import (
    Cell,
    Specs,
    ask,
    banner,
    chart,
    details,
    numbers,
    paragraph,
    section,
    table,
)
from jojlab.report.sections.overview import at_risk, name_of
from jojlab.report.words import hazards, reasons, text
from jojlab.report.words.overview import case_title


def bill(summary: RunSummary, run: str, specs: Specs) -> str:
    """What one commit costs by class, then every case's bill in full."""
    rows, cases = chart_rows.bill_rows(summary), chart_rows.names(summary)
    specs["bytes-chart"] = by_case.bill(rows, cases, "kib", "KiB per commit")
    specs["requests-chart"] = by_case.bill(
        rows, cases, "requests", "requests and flushes per commit"
    )
    return section(
        "bill",
        "The bill of one commit",
        paragraph(
            "Every byte is in one class. Faded bars, and numbers after a + in the table, are "
            "deferred to checkpoints and to the sync at the end." + at_risk(summary),
            "soft",
        ),
        chart("bytes-chart", "Stacked bars of bytes per commit by class"),
        chart("requests-chart", "Stacked bars of requests and flushes per commit by class"),
        _class_table(summary),
        "<h3>In full, by file and cause</h3>",
        *(_full_bill(case, run, len(summary.measured) == 1) for case in summary.measured),
    )


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
        rows.append([name_of(summary, case), *cells])
    heads = ["flushes" if name == "flush" else f"{name}, KiB" for name in classes]
    return numbers(table([case_title(summary), *heads], rows), len(rows))


def _class_cell(name: str, share: Any) -> str:
    if share is None:
        return "0"
    return text.digits(share.requests) if name == "flush" else text.kib(share.bytes)


def _full_bill(case: CaseSummary, run: str, is_open: bool) -> str:
    if not case.bill:
        return ""
    total = case.bill.total("commit")
    requests = text.digits(case.bill.per_commit(total.requests))
    soft = (
        f"{requests} request{'s' if requests != '1' else ''}, "
        f"{text.kib(case.bill.per_commit(total.bytes))} KiB, over {case.bill.transactions} commits"
    )
    risky = hazards.sentences(case.hazards)
    parts = [banner("warn", "At risk with these settings", risky)]
    parts += [_bill_table(case.bill, "commit"), *_reasons(case.bill, "commit")]
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
        "block type", "file kind", "file", "cause", "requests", "KiB", "share", "total bytes",
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
