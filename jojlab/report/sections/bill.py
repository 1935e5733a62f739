"""The section of the bill: what one commit costs by class, and every bill by file and cause."""

from __future__ import annotations

import shlex
from typing import Any

from jojlab.analysis.commit.bill import Bill, BillRow
from jojlab.analysis.commit.classes import CLASSES, class_shares
from jojlab.analysis.figures.figure import CAUSED
from jojlab.analysis.run.summary import CaseSummary, RunSummary
from jojlab.report.charts import by_case, chart_rows
from jojlab.report.sections.overview import at_risk, case_ids, name_of
from jojlab.report.sections.template import Cell, Noted, Section, Specs, case_anchor, render
from jojlab.report.words import cost, flash_life, hazards, program, reasons, survival, text
from jojlab.report.words.overview import case_title


def bill(summary: RunSummary, run: str, specs: Specs) -> Section:
    """What one commit costs by class, then every case's bill in full."""
    rows, cases = chart_rows.bill_rows(summary), chart_rows.names(summary)
    specs["bytes-chart"] = by_case.bill(rows, cases, "kib", "KiB per commit")
    specs["requests-chart"] = by_case.bill(
        rows, cases, "requests", "requests and flushes per commit"
    )
    html = render(
        "report/sections/bill.html",
        at_risk=at_risk(summary),
        classes=_class_table(summary),
        bills=[_full_bill(case, case.bill, run) for case in summary.measured if case.bill],
        bills_are_open=len(summary.measured) == 1,
    )
    return Section("bill", html)


def _class_table(summary: RunSummary) -> dict[str, Any]:
    shares = {case.case_id: class_shares(case.bill) for case in summary.measured if case.bill}
    classes = [n for n in CLASSES if any(s.name == n for part in shares.values() for s in part)]
    rows: list[list[Cell]] = []
    for case in summary.measured:
        found = {(share.part, share.name): share for share in shares.get(case.case_id, ())}
        cells: list[Cell] = []
        for name in classes:
            now, later = found.get(("commit", name)), found.get(("deferred", name))
            small = f"+ {_class_cell(name, later)}" if later else ""
            value = (now.requests if name == "flush" else now.bytes) if now else 0
            cells.append(Noted(_class_cell(name, now), small, value=value))
        rows.append([name_of(summary, case), *cells])
    heads = ["flushes" if name == "flush" else f"{name}, KiB" for name in classes]
    columns = [case_title(summary), *heads]
    return {"columns": columns, "rows": rows, "ids": case_ids(summary.measured)}


def _class_cell(name: str, share: Any) -> str:
    if share is None:
        return "0"
    return text.digits(share.requests) if name == "flush" else text.kib(share.bytes)


def _full_bill(case: CaseSummary, bill: Bill, run: str) -> dict[str, Any]:
    total = bill.total(*CAUSED)
    requests = text.digits(bill.per_commit(total.requests))
    return {
        "id": case_anchor(case.case_id),
        "case": case.case_id,
        "label": case.label,
        "soft": f"{requests} request{'s' if requests != '1' else ''}, "
        f"{text.kib(bill.per_commit(total.bytes))} KiB, over {bill.transactions} commits",
        "risks": hazards.by_sentence([case]),
        "survives": survival.sentence(case),
        "programs": [
            (f"seed {seed}: {program.sentence(ended)}", program.output(ended))
            for seed, ended in case.programs.items()
        ],
        "told": [*filter(None, (cost.deferred_of(bill), cost.beside(bill.apart)))],
        "commit": _part(bill, "commit"),
        "later": [
            (title.capitalize(), _part(bill, part))
            for part, title in text.LATER_PARTS.items()
            if bill.part(part)
        ],
        "command": f"joj show {run} --case {shlex.quote(case.case_id)}",
    }


def _part(bill: Bill, part: str) -> dict[str, Any]:
    """Return one part of a bill: its rows, the total at the end, and why the filesystem wrote."""
    total = bill.total(part)
    whole = bill.total(*CAUSED) if part in CAUSED else total
    rows = [_bill_cells(bill, row, whole.bytes) for row in bill.part(part)]
    rows.append(
        [
            "total", "", "", "",
            text.digits(bill.per_commit(total.requests)),
            text.kib(bill.per_commit(total.bytes)),
            "",
            f"{total.bytes:,}",
        ]
    )  # fmt: skip
    life = flash_life.sentences(bill) if part == "commit" else ()
    told = (*reasons.sentences(bill, part), *reasons.journal_sentences(bill, part), *life)
    return {"rows": rows, "reasons": told}


def _bill_cells(bill: Bill, row: BillRow, whole: int) -> list[str]:
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
