"""The report's first screen: what one commit costs, where it goes, its safety, what is cheaper."""

from __future__ import annotations

import shlex
from typing import Any

from jojlab.analysis.run.answer import Answer, CheaperCase, TimeShares, answer
from jojlab.analysis.run.summary import CaseSummary, RunSummary
from jojlab.report import hazards, survival
from jojlab.report.bill import apart_words, deferred_words
from jojlab.report.shared import text
from jojlab.report.shared.template import Section, render
from jojlab.report.shared.vega import COLOURS
from jojlab.report.survival import card


def short_answer(summary: RunSummary, run: str) -> Section | None:
    """Return the section, or None where no case has a bill."""
    found = answer(summary)
    if found is None:
        return None
    html = render(
        "report/answer.html",
        cost=_cost(found),
        where=_where(found),
        safe=card(found),
        cheaper=_cheaper(found),
        command=f"joj show {run} --case {shlex.quote(found.case.case_id)}",
    )
    return Section("answer", html)


def _cost(found: Answer) -> dict[str, Any]:
    median = found.case.figures.median
    return {
        "title": f"What one {text.transaction_name([found.case])} costs",
        "big": text.duration(median["latency_ns_p50"]),
        "label": found.case.label,
        "risk": hazards.risk_mark(found.case),
        "regimes": [
            f"{text.regime_meaning(each)}: {text.duration(each.figures.median['latency_ns_p50'])}"
            for each in (found.case, *found.regimes)
            if text.regime_meaning(each)
        ],
        "p99": text.duration(median["latency_ns_p99"]),
        "rate": text.digits(median["throughput_tps"]),
        "each": f"{text.count(median['requests_per_commit'], 'request')}, "
        f"including {text.count(median['flushes_per_commit'], 'flush', 'flushes')}, and "
        f"{text.size(median['bytes_per_commit'])}",
        "deferred": deferred_words(median),
        "beside": apart_words(found.case.apart),
    }


def _where(found: Answer) -> dict[str, Any]:
    moved = [share for share in found.classes if share.bytes]
    whole = sum(share.bytes for share in moved)
    if not whole:
        return {"big": "nowhere yet", "parts": ()}
    return {
        "big": f"{_percent(moved[0].bytes / whole)} {moved[0].name}",
        "parts": [
            {
                "name": share.name,
                "colour": COLOURS[share.name],
                "width": f"{share.bytes / whole * 100:.2f}%",
                "share": _percent(share.bytes / whole),
                "size": text.size(share.bytes),
            }
            for share in moved
        ],
        "time": _of_time(found.time) if found.time else "",
    }


def _percent(share: float) -> str:
    return f"{share * 100:.0f}\N{NO-BREAK SPACE}%"


def _of_time(time: TimeShares) -> str:
    return (
        f"In a typical transaction, the device flushes for {_percent(time.flushing)} of the time, "
        f"moves data for {_percent(time.moving)}, and is idle for {_percent(time.elsewhere)}."
    )


def _cheaper(found: Answer) -> dict[str, Any]:
    if not found.compared:
        line = "This run has no other case with the same work."
        return {"big": "not compared", "cases": (), "line": line}
    if not found.cheaper:
        many = f"{found.compared} other case{'s' if found.compared > 1 else ''}"
        line = f"Of {many} with the same work, none is faster."
        return {"big": "nothing in this run", "cases": (), "line": line}
    first = found.cheaper[0]
    return {
        "big": "only riskier settings" if first.is_riskier else first.case.label,
        "cases": [_alternative(each, found.case) for each in found.cheaper],
    }


def _alternative(each: CheaperCase, base: CaseSummary) -> dict[str, str]:
    ours, theirs = each.case.figures.median, base.figures.median
    return {
        "label": each.case.label,
        "words": f"{text.duration(ours['latency_ns_p50'])}, "
        f"{text.times(each.times)} times as fast: "
        f"{text.count(ours['flushes_per_commit'], 'flush', 'flushes')} "
        f"instead of {text.digits(theirs['flushes_per_commit'])}, "
        f"{text.size(ours['bytes_per_commit'])} instead of {text.size(theirs['bytes_per_commit'])}"
        + "".join(
            f"; regime {other.case['regime']}: "
            f"{text.duration(other.figures.median['latency_ns_p50'])}"
            for other in each.regimes
        ),
        "risks": _risks(each),
    }


def _risks(each: CheaperCase) -> str:
    """Return what a case puts at risk: in full where that is more than what the first case does."""
    if not each.is_riskier:
        return hazards.risk_mark(each.case)
    sentences = (*hazards.by_sentence([each.case]), _seen(each.case))
    riskier = "riskier: " if each.case.hazards or _seen(each.case) else ""
    return f"{riskier}{'; '.join(filter(None, sentences))}"


def _seen(case: CaseSummary) -> str:
    """Return the harm that power cuts did; empty where they did none or there were none."""
    return survival.outcome_words(case) if case.survival and case.survival.is_unsafe else ""
