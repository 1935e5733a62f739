"""The report's first screen: what one commit costs, where it goes, its safety, what is cheaper."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from html import escape

from jojlab.analysis.commit.classes import ClassShare
from jojlab.analysis.run.answer import Answer, Cheaper, TimeShares, answer
from jojlab.analysis.run.summary import CaseSummary, RunSummary
from jojlab.report.charts.vega import COLOURS
from jojlab.report.sections.elements import ask, section
from jojlab.report.words import hazards, text, transaction


def short_answer(summary: RunSummary, run: str) -> str:
    """Return the section, or nothing where no case has a bill."""
    found = answer(summary)
    if found is None:
        return ""
    cards = (_cost(found), _where(found), _safe(found), _cheaper(found))
    command = f"joj show {run} --case {shlex.quote(found.case.case_id)}"
    return section("answer", "In short", f'<div class="cards">{"".join(cards)}</div>', ask(command))


def _card(title: str, big: str, *lines: str) -> str:
    body = "".join(f"<p>{line}</p>" for line in lines if line)
    return f'<div class="card"><h3>{escape(title)}</h3><p class="big">{escape(big)}</p>{body}</div>'


def _cost(found: Answer) -> str:
    median = found.case.figures.median
    per_commit = (
        f"{_count(median, 'requests_per_commit', 'request')}, "
        f"including {_count(median, 'flushes_per_commit', 'flush', 'flushes')}, and "
        f"{text.size(median['bytes_per_commit'])}"
    )
    return _card(
        f"What one {transaction.name([found.case])} costs",
        text.duration(median["latency_ns_p50"]),
        f"<b>{escape(found.case.label)}</b>, median; "
        f"p99 {text.duration(median['latency_ns_p99'])}; "
        f"{text.digits(median['throughput_tps'])} transactions/s",
        f"{per_commit} each",
    )


def _count(median: Mapping[str, int | float], name: str, one: str, several: str = "") -> str:
    value = median[name]
    return f"{text.digits(value)} {one if value == 1 else several or one + 's'}"


def _where(found: Answer) -> str:
    moved = [share for share in found.classes if share.bytes]
    whole = sum(share.bytes for share in moved)
    if not whole:
        return _card("Where it goes", "nowhere yet", "A commit writes nothing to the device.")
    first = moved[0]
    return _card(
        "Where it goes",
        f"{_percent(first.bytes / whole)} {first.name}",
        _bar([(share.name, share.bytes / whole) for share in moved]),
        _of_bytes(moved),
        _of_time(found.time) if found.time else "",
    )


def _bar(parts: list[tuple[str, float]]) -> str:
    cells = "".join(
        f'<i style="width:{share * 100:.2f}%;background:{COLOURS[name]}" '
        f'title="{escape(name)} {_percent(share)}"></i>'
        for name, share in parts
    )
    return f'<span class="parts">{cells}</span>'


def _of_bytes(moved: list[ClassShare]) -> str:
    return "<br>".join(
        f'<i class="key" style="background:{COLOURS[share.name]}"></i>'
        f"{escape(share.name)} {text.size(share.bytes)}"
        for share in moved
    )


def _percent(share: float) -> str:
    return f"{share * 100:.0f}\N{NO-BREAK SPACE}%"


def _of_time(time: TimeShares) -> str:
    return (
        f"In a typical transaction, the device flushes for {_percent(time.flushing)} of the time, "
        f"moves data for {_percent(time.moving)}, and is idle for {_percent(time.elsewhere)}."
    )


def _safe(found: Answer) -> str:
    """Say of every case what it puts at risk; where none does, what the first one does for it."""
    median = found.case.figures.median
    cases = found.measured
    if told := hazards.by_sentence(cases):
        risky = sum(bool(case.hazards) for case in cases)
        several = len(cases) > 1
        big = f"{len(cases) - risky} of {len(cases)} cases are" if several else "Not entirely"
        lines = [
            escape(sentence)
            + (f": <b>{escape(hazards.named(labels, len(cases)))}</b>" if several else "")
            for sentence, labels in told.items()
        ]
        safe = "The other cases have safe settings." if several and risky < len(cases) else ""
        return _card("Is it safe?", big, *lines, safe)
    if not median.get("writes_per_commit", 1):
        return _card("Is it safe?", "Nothing to lose", "It writes nothing to the device.")
    calls = _count(median, "sync_calls_per_commit", "sync call")
    word = "a commit" if transaction.has_commit([found.case]) else "an operation"
    return _card(
        "Is it safe?",
        f"Yes, all {len(cases)} cases" if len(cases) > 1 else "Yes, by its settings",
        f"By the manuals, {word} that returned survives a power cut with these settings, if the "
        "device keeps flushed data. joj verify durability tests this. "
        f"{escape(found.case.label)} makes {calls} and "
        f"{_count(median, 'flushes_per_commit', 'flush', 'flushes')} each.",
    )


def _cheaper(found: Answer) -> str:
    title = "What makes it cheaper"
    if not found.compared:
        return _card(title, "not compared", "This run has no other case with the same work.")
    if not found.cheaper:
        many = f"{found.compared} other case{'s' if found.compared > 1 else ''}"
        return _card(title, "nothing in this run", f"Of {many} with the same work, none is faster.")
    lines = [_alternative(each, found.case) for each in found.cheaper]
    first = found.cheaper[0]
    big = "only riskier settings" if first.is_riskier else first.case.label
    return _card(title, big, *lines)


def _alternative(each: Cheaper, base: CaseSummary) -> str:
    ours, theirs = each.case.figures.median, base.figures.median
    words = (
        f"<b>{escape(each.case.label)}</b>: {text.duration(ours['latency_ns_p50'])}, "
        f"{text.times(each.times)} times as fast: "
        f"{_count(ours, 'flushes_per_commit', 'flush', 'flushes')} "
        f"instead of {text.digits(theirs['flushes_per_commit'])}, "
        f"{text.size(ours['bytes_per_commit'])} instead of {text.size(theirs['bytes_per_commit'])}"
    )
    if each.is_riskier:
        risks = "; ".join(hazards.sentences(each.case.hazards))
        words += f' <span class="risk">riskier: {escape(risks)}</span>'
    return words
