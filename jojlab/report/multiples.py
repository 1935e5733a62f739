"""The page's chart: time and bytes of one commit as small multiples, by the fields that vary.

Bars are elements of the page, not a drawing: they fit any width, and are dark or printed with it.
"""

from __future__ import annotations

from typing import Any

from jojlab.analysis.commit.bill import CLASSES, caused_shares
from jojlab.analysis.run.summary import CaseSummary, RunSummary
from jojlab.report import durability
from jojlab.report.shared import text
from jojlab.report.shared.template import Section, render
from jojlab.report.shared.vega import COLOURS

# Fields whose values are the rows of a panel; those before them make the panels.
_INNER = 2
_DIGITS = 3


def multiples_section(summary: RunSummary) -> Section | None:
    """Return the chart, or None where fewer than two cases have a p50 and bytes."""
    cases = [c for c in summary.measured if c.figures.median.get("latency_ns_p50") and c.bill]
    if len(cases) < 2 or len(summary.parts) != 1:
        return None
    [part] = summary.parts
    names = part.named_by
    outer = max(0, len(names) - _INNER)
    most_ns = max(case.figures.median["latency_ns_p50"] for case in cases)
    most_bytes = max(case.figures.median["bytes_per_commit"] for case in cases) or 1
    panels: dict[str, list[dict[str, Any]]] = {}
    for case in cases:
        values = part.values(case.case_id, case.case) or (case.label,)
        row = _row(case, most_ns, most_bytes) | {"label": " · ".join(values[outer:])}
        panels.setdefault(" · ".join(values[:outer]), []).append(row)
    seen = {share["name"] for rows in panels.values() for row in rows for share in row["parts"]}
    html = render(
        "report/multiples.html",
        panels=panels.items(),
        axes=(" · ".join(names[:outer]), " · ".join(names[outer:]) or "case"),
        key=[(name, COLOURS[name]) for name in CLASSES if name in seen],
        what=text.transaction_name(cases),
        is_risky=any(durability.risk(case) for case in cases),
    )
    return Section("multiples", html)


def _row(case: CaseSummary, most_ns: float, most_bytes: float) -> dict[str, Any]:
    median = case.figures.median
    assert case.bill
    return {
        "case": case.case_id,
        "risk": durability.risk(case),
        "time": text.duration(median["latency_ns_p50"], _DIGITS),
        "time_width": f"{median['latency_ns_p50'] / most_ns * 100:.2f}%",
        "size": text.size(median["bytes_per_commit"], _DIGITS),
        "parts": [
            {
                "name": share.name,
                "colour": COLOURS[share.name],
                "width": f"{share.bytes / most_bytes * 100:.2f}%",
                "size": text.size(share.bytes, _DIGITS),
            }
            for share in sorted(
                caused_shares(case.bill), key=lambda share: CLASSES.index(share.name)
            )
            if share.bytes
        ],
    }
