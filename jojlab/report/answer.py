"""The short answer that commands open with: what one commit costs, where it goes, whether it
is safe, what makes it cheaper, and what is incomplete, in at most six lines.

Terminal, `--json` and page say these lines and no others. Nothing is called safe beyond what the
manuals say, and what was not measured is said not to be.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.markup import escape

from jojlab.analysis.run.answer import Answer, Factor, answer
from jojlab.analysis.run.summary import CaseSummary, RunSummary, summary_json
from jojlab.analysis.study.parts import verdicts
from jojlab.analysis.traffic.characterisation import Characterisation
from jojlab.model.figures import Number
from jojlab.report import hazards, survival
from jojlab.report.shared import text
from jojlab.report.shared.template import Section, render
from jojlab.report.shared.vega import COLOURS

MOST_LINES = 6
MOST_COLUMNS = 100
_DIGITS = 3


def answer_lines(
    summary: RunSummary, kinds: Mapping[str, Characterisation] | None = None
) -> tuple[str, ...]:
    """Return the short answer. `kinds` are of the I/O of cases without transactions, by case_id,
    where the summary has no traffic.
    """
    incomplete = _incomplete(summary)
    if summary.is_composed:
        lines = _study_lines(summary)
    elif result := answer(summary):
        lines = _cases_lines(result) if len(result.measured) > 1 else _case_lines(result)
    else:
        lines = [*_traffic_lines(summary, kinds or {})]
    lines = [(rank, line) for rank, line in lines if line]
    # What can best be spared stands last of what explains; that data is missing is never spared.
    room = MOST_LINES - bool(incomplete)
    places = sorted(sorted(range(len(lines)), key=lambda place: lines[place][0])[:room])
    shown = [lines[place][1] for place in places]
    return tuple(_cut(line) for line in (*shown, incomplete) if line)


def answer_json(summary: RunSummary) -> dict[str, Any]:
    """Return what `--json` prints of a run: the short answer, then all figures."""
    return {"in_short": list(answer_lines(summary)), **summary_json(summary)}


def print_answer(console: Console, lines: Iterable[str]) -> None:
    """Print the short answer, and an empty line after it."""
    for place, line in enumerate(lines):
        shown = escape(line)
        console.print(f"[bold]{shown}[/bold]" if place == 0 else shown)
    console.print()


def answer_section(summary: RunSummary, run: str) -> Section:
    """Return the page's first section: the lines, and the bytes of a case alone as a bar."""
    result = None if summary.is_composed or len(summary.measured) > 1 else answer(summary)
    moved = [share for share in result.classes if share.bytes] if result else []
    whole = sum(share.bytes for share in moved)
    html = render(
        "report/answer.html",
        lines=answer_lines(summary),
        parts=[
            {
                "name": share.name,
                "colour": COLOURS[share.name],
                "width": f"{share.bytes / whole * 100:.2f}%",
                "size": text.size(share.bytes),
            }
            for share in moved
        ],
        command=f"joj show {run}",
    )
    return Section("answer", html)


# A line with its rank: the lines of the highest rank are left out where there are too many.
_Line = tuple[int, str]


def _case_lines(result: Answer) -> list[_Line]:
    return [
        (0, _cost(result)),
        (2, _apart(result.case)),
        (1, _where(result)),
        (1, _discards(result)),
        (3, _time(result)),
        (0, _safety(result.measured)),
        (1, _nothing_compared(result)),
    ]


def _cost(result: Answer) -> str:
    """Return the headline of one case."""
    median = result.case.figures.median
    name = text.transaction_name([result.case])
    words = f"One {name} takes {_ns(median['latency_ns_p50'])}"
    words += f" (p99 {_ns(median['latency_ns_p99'])})"
    if "bytes_per_commit" not in median:
        return f"{words}: {_number(median['throughput_tps'])} a second; its I/O was not traced."
    if not median["requests_per_commit"]:
        return f"{words} and sends nothing to the device."
    words += f" and sends {_bytes(median['bytes_per_commit'])} to the device"
    share = result.share_ends("deferred_bytes_per_commit", "bytes_per_commit")
    return f"{words}{f', {_percent(share[1])} of it deferred' if share and share[1] else ''}."


def _apart(case: CaseSummary) -> str:
    """Say what transactions there were beside commits; empty where there were none."""
    told = [
        f"{each.transactions:,} "
        f"{'were rolled back' if each.kind == 'rollback' else 'changed nothing'} "
        f"(p50 {_ns(each.latency_ns_p50)})"
        for each in case.apart
    ]
    return f"Of other transactions, {' and '.join(told)}; no figure counts them." if told else ""


def _where(result: Answer) -> str:
    moved = [share for share in result.classes if share.bytes]
    whole = sum(share.bytes for share in moved)
    parts = []
    for place, share in enumerate(moved):
        of = " " if place else " of the bytes are "
        words = f"{_percent(share.bytes / whole)}{of}{_class_words(share.name, result.case)}"
        if share.name == "filesystem journal" and result.journal_reason:
            words += f" (because {_reason(result.journal_reason.reason)})"
        parts.append(words)
    return _sentence(parts, between=", ")


def _discards(result: Answer) -> str:
    share = result.discard_share
    return f"{_percent(share)} of the bytes are of discards, which carry no data." if share else ""


def _class_words(name: str, case: CaseSummary) -> str:
    filesystem = case.case.get("filesystem")
    own = f"{filesystem}'s" if filesystem else "the filesystem's"
    return {
        "filesystem journal": f"{own} journal",
        "filesystem metadata": f"{own} metadata",
        "unknown": "of an unknown owner",
        "other data": "other data",
    }.get(name, f"the {name}")


def _reason(reason: str) -> str:
    """Return "main.db-wal: grew, times" as a clause; of several files the first."""
    first, *others = reason.split("; ")
    file, colon, changes = first.partition(": ")
    clause = f"{file} {changes.split(', ')[0]}" if colon else first
    return f"{clause} and others changed" if others else clause


def _time(result: Answer) -> str:
    flushes = result.case.figures.median.get("flushes_per_commit")
    if flushes is None:
        return ""
    parts = [f"It makes {_count(flushes, 'flush', 'flushes')}"]
    if time := result.time:
        parts.append(
            f"of a typical one's time {_percent(time.flushing)} is flushing, "
            f"{_percent(time.moving)} moving data, {_percent(time.elsewhere)} neither"
        )
    return _sentence(parts)


def _nothing_compared(result: Answer) -> str:
    searches = "; joj advise searches, and cuts the power of what it finds"
    return f"Cheaper: not measured here{searches if 'filesystem' in result.case.case else ''}."


def _cases_lines(result: Answer) -> list[_Line]:
    first, *others = result.factors or (None,)
    return [
        (0, _range(result)),
        (1, _decides(first)),
        (3, _then(others)),
        (2, _where_of_several(result)),
        (1, _cheapest(result)),
        (0, _safety(result.measured)),
    ]


def _range(result: Answer) -> str:
    ends = result.ends("latency_ns_p50")
    assert ends
    name = text.transaction_name(result.measured)
    words = f"One {name} takes {_ends(ends, _ns)}"
    cases = f"{len(result.measured)} cases."
    sent = result.ends("bytes_per_commit")
    if not sent:
        return f"{words} in {cases} Their I/O was not traced."
    words += f" and sends {_ends(sent, _bytes)}"
    deferred = result.share_ends("deferred_bytes_per_commit", "bytes_per_commit")
    if deferred and deferred[1]:
        words += f" (up to {_percent(deferred[1])} deferred)"
    return f"{words}: {cases}"


def _decides(factor: Factor | None) -> str:
    if factor is None:
        return ""
    return (
        f"{factor.name} decides most: {factor.fastest} is {_times(factor)} times as fast as "
        f"{factor.slowest}."
    )


def _times(factor: Factor) -> str:
    return _ends((factor.least, factor.most), _number)


def _then(factors: Sequence[Factor | None]) -> str:
    told = (f"{each.name}, {each.fastest} {_times(each)} times" for each in factors if each)
    return _sentence(told, "Then ")


def _where_of_several(result: Answer) -> str:
    flushes = result.ends("flushes_per_commit")
    if not flushes:
        return ""
    parts = [f"Each makes {_ends(flushes, _number)} flushes"]
    share = result.share_ends("fs_journal_bytes_per_commit", "bytes_per_commit")
    if share:
        parts.append(f"{_ends(share, _percent)} of the bytes are the filesystem's journal")
    return _sentence(parts)


def _cheapest(result: Answer) -> str:
    if not result.compared:
        return "Cheaper: no other case does the same work as the first."
    if not result.cheaper:
        return "Cheaper: none of the others is faster than the first case."
    best = result.cheaper[0]
    words = "Cheaper, but riskier" if best.is_riskier else "Cheaper at no more risk"
    regimes = [
        f"{each.case['regime']}: {_ns(each.figures.median['latency_ns_p50'])}"
        for each in best.regimes
    ]
    return _sentence([f"{words}: {best.case.label}, {_number(best.times)} times as fast", *regimes])


def _safety(cases: Sequence[CaseSummary]) -> str:
    """Return what the manuals say and what power cuts left; never more than that."""
    if len(cases) > 1:
        if any(case.survival and case.survival.is_unsafe for case in cases):
            warned = sum(bool(case.hazards) for case in cases)
            return (
                f"Not safe: {_power_cuts_verdict(cases)}; the manuals warn of {warned or 'none'} "
                f"of the {len(cases)} cases."
            )
        return f"{_manuals_verdict(cases)}; {_power_cuts_verdict(cases)}."
    [case] = cases
    if not case.figures.median.get("bytes_per_commit", 1) and not (case.hazards or case.unknowns):
        return "Nothing to lose: it writes nothing to the device."
    if case.unknowns and not case.hazards:
        return _sentence([f"Safety not known: {hazards.doubt_sentences(case.unknowns)[0]}",
                          _power_cuts_verdict(cases)])  # fmt: skip
    if case.survival and case.survival.is_unsafe:
        warning = hazards.risk_words(case.hazards) or "nothing"
        return (
            f"Not safe: after power cuts it {survival.outcome_words(case)}; the manuals warn of "
            f"{warning}."
        )
    manuals = (
        f"At risk by the manuals: {hazards.manuals(case)}"
        if case.hazards
        else "Safe by the manuals"
    )
    return f"{manuals}; {_power_cuts_verdict(cases)}."


def _manuals_verdict(cases: Sequence[CaseSummary]) -> str:
    risky = [case for case in cases if case.hazards]
    unknown = [case for case in cases if case.unknowns and not case.hazards]
    safe = len(cases) - len(risky) - len(unknown)
    if safe == len(cases):
        return f"All {safe} cases are safe by the manuals"
    counts = (
        (safe, f"of {len(cases)} cases are safe by the manuals"),
        (len(risky), "at risk"),
        (len(unknown), "not known"),
    )
    return ", ".join(f"{count} {words}" for count, words in counts if count or words[:2] == "of")


def _power_cuts_verdict(cases: Sequence[CaseSummary]) -> str:
    tested = [case for case in cases if case.survival]
    if not tested:
        # Power is cut of cases of the lab that are no programs of one's own.
        can_be = all(
            "filesystem" in case.case and case.case.get("workload") != "program" for case in cases
        )
        return "power cuts were not tested" + " (--durability)" * can_be
    if len(cases) == 1:
        [case] = cases
        return f"after power cuts not refuted: {survival.outcome_words(case)}"
    return f"after power cuts {survival.summarise_survivals(cases)}"


def _study_lines(summary: RunSummary) -> list[_Line]:
    """Return the answer of a run of several experiments: how far the papers were reproduced."""
    result = verdicts(summary.parts)
    whole, error = result.whole, result.whole.median_error
    orderings = (
        f"{whole.reproduced} of {_count(whole.orderings, 'published ordering')} are reproduced."
        if whole.orderings
        else "No published ordering was measured."
    )
    predictions = (
        f"{_count(len(whole.errors), 'prediction')} of published numbers: {result.close} within "
        f"10 %, median error {_percent(error)}; {result.missing} numbers are not available."
        if error is not None
        else ""
    )
    anchors = _count(len(result.anchors), "number")
    fitted = f"The device is fitted to {anchors}, which count as no prediction."
    return [
        (0, orderings),
        (0, predictions),
        (0, fitted if result.anchors else ""),
        (0, _safety(summary.measured) if summary.measured else ""),
    ]


def _traffic_lines(summary: RunSummary, kinds: Mapping[str, Characterisation]) -> Iterator[_Line]:
    """Yield what is known of the I/O of a run whose commits are not."""
    known = {case.case_id: case.traffic.kinds for case in summary.cases if case.traffic}
    result = list({**known, **kinds}.values())
    took = [
        c.figures.median["io_time_ns"] for c in summary.measured if "io_time_ns" in c.figures.median
    ]
    if took:
        yield 0, f"The calls of the replay took {_ends((min(took), max(took)), _ns)} in all."
    if not result:
        yield 0, "No transaction was timed: what one commit costs is not known."
        return
    first = result[0]
    parts = []
    for operation, verb in (("write", "written"), ("read", "read")):
        requests, length = first.operations.get(operation, (0, 0))
        if requests or operation == "write":
            parts.append(f"{_bytes(length)} was {verb} in {_count(requests, 'request')}")
    flushes, _ = first.operations.get("flush", (0, 0))
    parts[0] += f", with {_count(flushes, 'flush', 'flushes')}"
    yield 0, _sentence(parts, f"Of {len(result)} cases, the first: " * (len(result) > 1))
    _, written = first.operations.get("write", (0, 0))
    for attribute, suffix in (("block_type", ""), ("file_kind", ", by kind of file")):
        parts = [
            f"{_percent(share.bytes / written)} {share.value}"
            for share in sorted(first.shares_of("write", attribute), key=lambda each: -each.bytes)
            if share.bytes and written
        ]
        if parts:
            yield 1, _sentence(parts, f"Of the bytes written{suffix}: ")
    yield 0, "No transaction is in the tables: what one commit costs is not known."


def _incomplete(summary: RunSummary) -> str:
    """Say how much is missing, and what of the first; empty where nothing is."""
    told = []
    if lacking := summary.incomplete:
        of = f"{len(lacking)} of {len(summary.cases)} cases lack data, {lacking[0].label}: "
        told.append(of * (len(summary.cases) > 1) + "; ".join(lacking[0].missing.in_words))
    for status in ("failed", "pending"):
        if cases := [case for case in summary.cases if case.status == status]:
            told.append(f"{text.integer(len(cases), 'case')} {status}")
    return f"Incomplete: {'; '.join(told)}." if told else ""


def _sentence(parts: Iterable[str], begin: str = "", between: str = "; ") -> str:
    """Return as many parts as fit into a line, as a sentence; empty where there are none."""
    told = ""
    for part in filter(None, parts):
        longer = f"{told}{between}{part}" if told else begin + part
        if told and len(longer) + 1 > MOST_COLUMNS:
            break
        told = longer
    return f"{told}." if told else ""


def _cut(line: str) -> str:
    """Return a line that is no longer than MOST_COLUMNS: names may be of any length."""
    return line if len(line) <= MOST_COLUMNS else f"{line[: MOST_COLUMNS - 1]}…"


def _ends(ends: tuple[Number, Number], formatter: Any) -> str:
    """Return "2.84 to 25.8 ms", or one value where the ends show alike."""
    low, high = (str(formatter(end)) for end in ends)
    if low == high:
        return low
    number, _, unit = low.partition(" ")
    return f"{number if unit and high.endswith(f' {unit}') else low} to {high}"


def _ns(value_ns: Number) -> str:
    return text.duration(value_ns, _DIGITS)


def _bytes(value_bytes: Number) -> str:
    for unit, size in (("GiB", 1 << 30), ("MiB", 1 << 20)):
        if value_bytes >= size:
            return f"{_number(value_bytes / size)} {unit}"
    return text.size(value_bytes, _DIGITS)


def _number(value: Number) -> str:
    return text.digits(value, _DIGITS)


def _count(value: Number, one: str, several: str = "") -> str:
    return f"{_number(value)} {one if value == 1 else several or one + 's'}"


def _percent(share: float) -> str:
    return f"{_number(round(share * 100, 1))} %"
