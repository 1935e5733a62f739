"""The report's sections on I/O as such: what kind it was, and where it went over time."""

from __future__ import annotations

from jojlab.analysis.run.summary import RunSummary
from jojlab.analysis.traffic.characterisation import OPERATIONS, Characterisation
from jojlab.report.charts import by_case
from jojlab.report.sections.elements import (
    Specs,
    ask,
    chart,
    details,
    paragraph,
    picture,
    section,
    table,
)
from jojlab.report.sections.lba_data import lba_data
from jojlab.report.words import kind_rows


def kinds(summary: RunSummary, run: str, specs: Specs) -> str:
    """Charts and numbers of what kind of I/O each case made, by count and by bytes."""
    cases = [(case, case.traffic.kinds) for case in summary.cases if case.traffic]
    if not cases:
        return ""
    parts = []
    for operation in OPERATIONS:
        found = [(case, kinds) for case, kinds in cases if operation in kinds.operations]
        if not found:
            continue
        drawn = []
        for attribute, title in kind_rows.ATTRIBUTE_TITLES.items():
            rows = [
                row
                for case, kinds in found
                for row in kind_rows.chart_rows(case.label, kinds, operation, attribute)
            ]
            name = f"{operation}-{attribute}-chart"
            specs[name] = by_case.shares(rows)
            drawn.append(f'<h4 class="soft">{title}</h4>')
            drawn.append(chart(name, f"Shares of {operation}s by case: {title}"))
        title = f"{operation.capitalize()}s"
        if operation == OPERATIONS[0]:
            parts += [f"<h3>{title}</h3>", *drawn]
        else:
            parts.append(details(title, "the same charts", *drawn))
    parts.append("<h3>The numbers</h3>")
    for case, kinds in cases:
        cells = kind_rows.characterisation_cells(kinds)
        parts.append(
            details(
                case.label,
                kind_rows.totals_text(kinds),
                table(kind_rows.COLUMNS, cells, words=2),
                _devices(kinds),
            )
        )
    return section(
        "kinds",
        "What kind of I/O",
        paragraph(
            "All I/O after the warm-up, including deferred I/O, by count and by bytes. "
            "Who waits: a call such as fsync, which the request serves; a task, of which only the "
            "flag REQ_SYNC tells; or nobody. Sequential: the request begins where the device's "
            "last one ended.",
            "soft",
        ),
        *parts,
        ask(f"joj show {run} --characterise", f"joj show {run} --characterise --json"),
    )


def places(summary: RunSummary, run: str, pictures: Specs) -> str:
    """Pictures of sector against time, one for each case and device."""
    parts = []
    for case in summary.cases:
        for drawn in case.traffic.pictures if case.traffic else ():
            name = f"lba-{len(pictures)}"
            pictures[name] = lba_data(drawn)
            soft = f"{drawn.device}, seed {drawn.seed}, {drawn.requests:,} requests"
            if drawn.binned:
                soft += "; too many to draw singly: one mark stands for one owner's nearby requests"
            parts.append(
                details(
                    case.label,
                    soft,
                    picture(name, f"Sectors that {case.label} wrote and read over time"),
                    ask(
                        f'joj query {run} "SELECT issue_ns, sector, length_bytes, block_type, '
                        f"file_id FROM requests WHERE case_id = '{case.case_id}' AND seed = "
                        f'{drawn.seed} ORDER BY issue_ns"'
                    ),
                    is_open=len(pictures) <= 2,
                )
            )
    if not parts:
        return ""
    return section(
        "places",
        "Where on the device, over time",
        paragraph(
            "Each mark is a stretch with one owner. Its width is the service time, its height the "
            "size; hollow marks are not writes. Grey stripes: the device flushes its cache. Draw a "
            "box to zoom into it. Click, then turn the wheel to zoom in time, with Shift in "
            "sectors. Drag with Shift to move. Double-click to reset. Click the legend to hide "
            "and show its entries.",
            "soft",
        ),
        *parts,
    )


def _devices(kinds: Characterisation) -> str:
    return table(kind_rows.DEVICE_COLUMNS, kind_rows.device_cells(kinds))
