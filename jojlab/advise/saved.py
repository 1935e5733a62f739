"""Why is a choice cheaper? The lines of the present bill that are smaller in it, or gone."""

from __future__ import annotations

from jojlab.advise.request import AdviceRequest
from jojlab.analysis.commit.bill import LineDelta, grown, lines_of, per_row
from jojlab.analysis.run.summary import RunSummary


def saved(summary: RunSummary, asked: AdviceRequest) -> dict[str, tuple[LineDelta, ...]]:
    """Return the lines by the names that the choices have in the run, in the commonest regime.

    `line` is the present one, `before` that of the choice, both of one row.
    """
    regime = max(asked.shares, key=lambda each: asked.shares[each])
    bills = {
        case.case_id.removesuffix(f"-{regime}"): (case.bill, int(case.case.get("statements", 1)))
        for case in summary.cases
        if case.bill and case.case_id.endswith(regime)
    }
    if "present" not in bills:
        return {}
    lines = {name: per_row(lines_of(bill), rows) for name, (bill, rows) in bills.items()}
    return {
        name: tuple(filter(_is_less, grown("latency_ns_p50", lines["present"], own)))
        for name, own in lines.items()
        if name != "present"
    }


def _is_less(each: LineDelta) -> bool:
    """Whether the choice needs no more of a line: fewer requests of more bytes save nothing."""
    now, chosen = each.line, each.before
    return chosen is None or (now.requests >= chosen.requests and now.bytes >= chosen.bytes)
