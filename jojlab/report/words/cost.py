"""Words for what commits cost as a whole: which part of it is deferred, and what was done beside
them. Gets jojlab/analysis; computes nothing but shares.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from jojlab.analysis.commit.bill import Bill
from jojlab.analysis.figures.apart import Apart
from jojlab.analysis.figures.figure import CAUSED, Number
from jojlab.report.words import text


def deferred(figures: Mapping[str, Number]) -> str:
    """Say what of a commit's cost is left to be done later; empty where nothing is, or is known."""
    requests = figures.get("deferred_requests_per_commit", 0)
    if not requests:
        return ""
    size, whole = figures["deferred_bytes_per_commit"], figures["bytes_per_commit"]
    flushes = text.count(figures["deferred_flushes_per_commit"], "flush", "flushes")
    share = f" ({text.percent(size / whole)})" if whole else ""
    return (
        f"deferred of it, to checkpoints and to the sync at the end: "
        f"{text.count(requests, 'request')}, including {flushes}, and {text.size(size)}{share}"
    )


def deferred_of(bill: Bill) -> str:
    """Say the same of a bill."""
    whole, later = bill.total(*CAUSED), bill.total("deferred")
    return deferred(
        {
            "bytes_per_commit": bill.per_commit(whole.bytes),
            "deferred_requests_per_commit": bill.per_commit(later.requests),
            "deferred_bytes_per_commit": bill.per_commit(later.bytes),
            "deferred_flushes_per_commit": bill.per_commit(later.flushes),
        }
    )


def beside(apart: Iterable[Apart]) -> str:
    """Say what transactions there were beside commits; empty where there were none."""
    told = [
        f"{each.transactions:,} transaction{'s' if each.transactions != 1 else ''} "
        f"{_words(each)} (p50 {text.duration(each.latency_ns_p50)}, "
        f"p99 {text.duration(each.latency_ns_p99)})"
        for each in apart
    ]
    return f"beside the commits: {'; '.join(told)}" if told else ""


def _words(each: Apart) -> str:
    if each.kind == "rollback":
        return "was rolled back" if each.transactions == 1 else "were rolled back"
    return "changed nothing"
