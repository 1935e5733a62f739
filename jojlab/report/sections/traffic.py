"""The report's sections on I/O as such: what kind it was, and where it went over time."""

from __future__ import annotations

from jojlab.analysis.run.summary import RunSummary
from jojlab.analysis.traffic.characterisation import OPERATIONS
from jojlab.report.charts import by_case
from jojlab.report.sections.lba_data import lba_data
from jojlab.report.sections.template import Section, Specs, render
from jojlab.report.words import kind_rows


def kinds(summary: RunSummary, run: str, specs: Specs) -> Section | None:
    """Charts and numbers of what kind of I/O each case made, by count and by bytes."""
    cases = [(case, case.traffic.kinds) for case in summary.cases if case.traffic]
    if not cases:
        return None
    operations = []
    for operation in OPERATIONS:
        found = [(case, kinds) for case, kinds in cases if operation in kinds.operations]
        if not found:
            continue
        charts = []
        for attribute, title in kind_rows.ATTRIBUTE_TITLES.items():
            rows = [
                row
                for case, kinds in found
                for row in kind_rows.chart_rows(case.label, kinds, operation, attribute)
            ]
            name = f"{operation}-{attribute}-chart"
            specs[name] = by_case.shares(rows)
            charts.append((name, title))
        operations.append((operation, charts))
    html = render(
        "report/sections/kinds.html",
        operations=operations,
        first=OPERATIONS[0],
        columns=kind_rows.COLUMNS,
        device_columns=kind_rows.DEVICE_COLUMNS,
        cases=[
            {
                "case": case.case_id,
                "label": case.label,
                "soft": kind_rows.totals_text(kinds),
                "rows": kind_rows.characterisation_cells(kinds),
                "devices": kind_rows.device_cells(kinds),
            }
            for case, kinds in cases
        ],
        run=run,
    )
    return Section("kinds", html)


def places(summary: RunSummary, run: str, pictures: Specs) -> Section | None:
    """Pictures of sector against time, one for each case and device."""
    found = []
    for case in summary.cases:
        for drawn in case.traffic.pictures if case.traffic else ():
            name = f"lba-{len(pictures)}"
            pictures[name] = lba_data(drawn)
            soft = f"{drawn.device}, seed {drawn.seed}, {drawn.requests:,} requests"
            if drawn.binned:
                soft += "; too many to draw singly: one mark stands for one owner's nearby requests"
            found.append(
                {
                    "name": name,
                    "case": case.case_id,
                    "label": case.label,
                    "soft": soft,
                    "command": f'joj query {run} "SELECT issue_ns, sector, length_bytes, '
                    f"block_type, file_id FROM requests WHERE case_id = '{case.case_id}' "
                    f'AND seed = {drawn.seed} ORDER BY issue_ns"',
                    "is_open": len(pictures) <= 2,
                }
            )
    if not found:
        return None
    return Section("places", render("report/sections/places.html", pictures=found))
