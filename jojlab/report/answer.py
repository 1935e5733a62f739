"""The short answer that commands open with: what one commit costs, where it goes, whether it
is safe, what makes it cheaper, and what is incomplete, in at most six lines.

Terminal, `--json` and page say these lines and no others. Nothing is called safe beyond what the
manuals say, and what was not measured is said not to be.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from jojlab.analysis.run.answer import Answer, Factor, answer
from jojlab.analysis.run.summary import CaseSummary, RunSummary, summary_json
from jojlab.analysis.traffic.characterisation import Characterisation
from jojlab.analysis.traffic.live import EVERYBODY, LiveTrace
from jojlab.foundation.printable import printable_name
from jojlab.model.figures import Number
from jojlab.report import durability, hazards
from jojlab.report.bill import apart_kind, dearest_statement
from jojlab.report.cheaper import cheaper_settings, shorter_pages
from jojlab.report.commits import CHANGES
from jojlab.report.shared import text
from jojlab.report.shared.short_answer import (
    MOST_COLUMNS,
    RankedLine,
    count,
    duration,
    fit_lines,
    incomplete_line,
    number,
    percent,
    range_words,
    sentence,
    size,
)
from jojlab.report.shared.template import Section
from jojlab.report.shared.vega import COLOURS
from jojlab.report.statements import published_line, study_lines

# Of the bytes of commits, a share of reads below which they are not told.
_TOLD_READS = 0.01
# So long a trace is not moved much by half a minute.
_LONG_NS = 300_000_000_000
# The pace of a shorter one is that of a start or of one command.
_SHORT_NS = 10_000_000_000
# A share of the bytes that may be left out of a line for want of room.
_UNTOLD = 0.1
_CUTS_OPTION = " (--durability)"


def answer_lines(
    summary: RunSummary, kinds: Mapping[str, Characterisation] | None = None
) -> tuple[str, ...]:
    """Return the short answer. `kinds` are of the I/O of cases without transactions, by case_id,
    where the summary has no traffic.
    """
    incomplete = _incomplete(summary)
    if summary.is_composed:
        safety = _safety(summary.measured_cases) if summary.measured_cases else ""
        lines = [*study_lines(summary), (0, safety)]
    elif result := answer(summary):
        lines = _cases_lines(result) if len(result.measured_cases) > 1 else _case_lines(result)
    elif summary.cases[0].live:
        lines = [*_idle_lines(summary.cases[0], summary.cases[0].live)]
    else:
        lines = [*_traffic_lines(summary, kinds or {})]
    if not summary.is_composed:
        lines.insert(1, (1, published_line(summary)))
    return fit_lines(lines, incomplete)


def answer_json(summary: RunSummary) -> dict[str, Any]:
    """Return what `--json` prints of a run: the short answer, then all figures."""
    return {"in_short": list(answer_lines(summary)), **summary_json(summary)}


def answer_section(summary: RunSummary, run: str) -> Section:
    """Return the page's first section: the lines, and the bytes of a case alone as a bar."""
    result = None if summary.is_composed or len(summary.measured_cases) > 1 else answer(summary)
    moved = [share for share in result.classes if share.bytes] if result else []
    whole = sum(share.bytes for share in moved)
    return Section.render(
        "answer",
        "answer",
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


def _case_lines(result: Answer) -> list[RankedLine]:
    if result.case.live:
        return _live_lines(result, result.case.live)
    return [
        (0, _cost(result)),
        (2, _apart_words(result.case)),
        (1, _where(result)),
        (1, _reads_and_discards(result)),
        (3, _time(result)),
        (0, _safety(result.measured_cases)),
        (1, _nothing_compared(result)),
    ]


def _live_lines(result: Answer, live: LiveTrace) -> list[RankedLine]:
    program: Mapping[str, Any] = next(iter(result.case.programs.values()), {})
    return [
        (0, _live_cost(result, live, program)),
        (1, _where(result)),
        (2, _reads_and_discards(result)),
        (1, dearest_statement(result.case.statements)),
        (1, _handed_bytes(result.case, live)),
        (2, _owners(live, live_subject(program))),
        (3, _time(result)),
        (0, _safety(result.measured_cases, ", as far as its commits were seen")),
        (1, cheaper_settings(result, program)),
    ]


def _idle_lines(case: CaseSummary, live: LiveTrace) -> Iterator[RankedLine]:
    """Yield what a live trace without a commit has seen."""
    program: Mapping[str, Any] = next(iter(case.programs.values()), {})
    subject = live_subject(program)
    # These sync too.
    others = [
        count(found, word)
        for word in ("rollback", "checkpoint")
        if (found := int(program.get(f"{word}s", 0)))
    ]
    apart = f" but in {' and '.join(others)}" if others else ""
    whose = "" if subject == EVERYBODY else f" of {subject}"
    seen = f"was seen on these disks in {duration(live.traced_ns)}"
    yield 0, f"No commit and no sync{apart}{whose} {seen}."
    read = live.program_io.read_bytes
    yield 0, _handed_bytes(case, live) + (f" {size(read)} was read." if read else "")
    yield 1, _owners(live, subject)


def live_subject(program: Mapping[str, Any]) -> str:
    """Return the name of what a live trace is of; `program` is of the manifest."""
    command = program.get("command") or [EVERYBODY]
    return printable_name(Path(str(command[0])).name)


def _live_cost(result: Answer, live: LiveTrace, program: Mapping[str, Any]) -> str:
    median = result.case.figures.median
    commits, syncs = int(program.get("commits", 0)), int(program.get("syncs", 0))
    counts = ((commits, "commit"), (syncs, "other sync" if commits else "sync"))
    amounts = " and ".join(f"{found:,} {one}{'s' * (found != 1)}" for found, one in counts if found)
    is_alone, is_mixed = commits + syncs == 1, bool(commits and syncs)
    words = f"{live_subject(program)} made {amounts} in {duration(live.traced_ns)}: "
    words += f"{'it' if is_alone else 'one'} takes {duration(median['latency_ns_p50'])}"
    sent = median.get("bytes_per_commit")
    kind = next((one for found, one in counts if found), "")
    each = "" if is_alone else " each" if is_mixed else f" per {kind}"
    moved = "sent" if _sends(result) == "sends" else "moved"
    sends = f"; {size(sent)} {moved}{each}" if sent else ""
    whole = f"{words}{_p99(median)}{sends}."
    return whole if len(whole) <= MOST_COLUMNS else f"{words}{sends}."


def _p99(median: Mapping[str, Number]) -> str:
    """Return what stands in brackets behind a median; of one latency there is no percentile."""
    if median["transactions"] == 1:
        return ""
    p50, p99 = (duration(median[f"latency_ns_{name}"]) for name in ("p50", "p99"))
    return f" (p99 {'the same' if p50 == p99 else p99})"


def _handed_bytes(case: CaseSummary, live: LiveTrace) -> str:
    """Say what became of the bytes that the program gave to write calls."""
    given, sent = live.write_bytes, live.program_io.write_bytes
    if not given and not sent:
        return "Nothing was given to write calls, and nothing was sent to the device."
    words = f"Write calls gave {size(given)}, the device got {size(sent)}"
    if not sent or sent < given:
        return f"{words} meanwhile."
    if may_be_from_before(case, live):
        return f"{words}, which may be in part from before the trace."
    if given:
        words += f", {number(sent / given)} times that"
    if live.traced_ns < _SHORT_NS:
        return f"{words}."
    return f"{words}: {number(live.bytes_a_year() / 1e12)} TB a year, extrapolated."


def may_be_from_before(case: CaseSummary, live: LiveTrace) -> bool:
    """Return whether what was sent may be what a program wrote before the trace: that is sent some
    half a minute later.
    """
    return not case.case.get("command") and live.traced_ns < _LONG_NS


def _owners(live: LiveTrace, subject: str) -> str:
    """Say what reached the device of others; what they wrote to memory alone is not told."""
    others, unknown = live.others.write_bytes, live.unknown.write_bytes
    nobody, some = ("The tracer wrote nothing", "The tracer") if subject == EVERYBODY else (
        "Nobody else wrote", "Others")  # fmt: skip
    parts = [f"{some} wrote {size(others)} to it"] if others else [] if unknown else [
        f"{nobody} to it"]  # fmt: skip
    if unknown:
        parts.append(f"{'t' if others else 'T'}he writer of {size(unknown)} is not known")
    # Of a trace without a command the kernel's count may begin after the rows.
    counted = live.counted_bytes
    if counted is not None and counted >= live.program_io.write_bytes + others + unknown:
        parts.append(f"the kernel counted {size(counted)} in all")
    if live.lifetime_bytes is not None:
        parts.append(f"the disk itself {size(live.lifetime_bytes)}, in steps of 500 KiB")
    return sentence(parts)


def _cost(result: Answer) -> str:
    """Return the headline of one case."""
    median = result.case.figures.median
    name = text.transaction_name([result.case])
    figures = result.case.figures
    is_alone = median["transactions"] == len(figures.seeds) == 1
    words = f"{'The one' if is_alone else 'One'} {name} takes {duration(median['latency_ns_p50'])}"
    words += _p99(median)
    if "bytes_per_commit" not in median:
        return f"{words}: {number(median['throughput_tps'])} a second; its I/O was not traced."
    if not median["requests_per_commit"]:
        return f"{words} and sends nothing to the device."
    words += f" and {_sends(result)} {size(median['bytes_per_commit'])}"
    words += " to the device" * (_sends(result) == "sends")
    share = result.share_ends("deferred_bytes_per_commit", "bytes_per_commit")
    return f"{words}{f', {percent(share[1])} of it deferred' if share and share[1] else ''}."


def _sends(result: Answer) -> str:
    """Return the verb of the bytes of a commit: what is read is not sent to the device."""
    return "moves" if result.read_share >= _TOLD_READS else "sends"


def _apart_words(case: CaseSummary) -> str:
    """Say what transactions there were beside commits; empty where there were none."""
    parts = [
        f"{each.transactions:,} {apart_kind(each)} "
        f"({'p50 ' * (each.transactions > 1)}{duration(each.latency_ns_p50)})"
        for each in case.apart
    ]
    words = f"Of other transactions, {' and '.join(parts)}"
    return sentence((words, "no figure counts them")) if parts else ""


def _where(result: Answer) -> str:
    """Say which share of the bytes each class has; why the journal wrote, where there is room."""
    moved = [share for share in result.classes if share.bytes]
    whole = sum(share.bytes for share in moved)
    parts, reasons = [], []
    for place, share in enumerate(moved):
        of = " " if place else " of the bytes are "
        parts.append(f"{percent(share.bytes / whole)}{of}{_class_words(share.name, result.case)}")
        why = result.journal_reason if share.name == "filesystem journal" else None
        reasons.append(f" (because {_reason(why.reason)})" if why else "")
    full = sentence((part + why for part, why in zip(parts, reasons, strict=True)), between=", ")
    # A reason is not told at the cost of what matters more.
    untold = sum(share.bytes for share, part in zip(moved, parts, strict=True) if part not in full)
    is_fitting = len(full) <= MOST_COLUMNS and untold <= whole * _UNTOLD
    return full if is_fitting else sentence(parts, between=", ")


def _reads_and_discards(result: Answer) -> str:
    """Say what of a commit's bytes is read, and what blocks it names without data."""
    dataless, read = result.dataless_bytes_per_commit, result.read_share
    parts = (
        f"{percent(read)} of the bytes are read" if read >= _TOLD_READS else "",
        f"it discards or zeroes {size(dataless)} of blocks, which sends no data"
        if dataless
        else "",
    )
    words = sentence(parts)
    return f"{words[0].upper()}{words[1:]}" if words else ""


def _class_words(name: str, case: CaseSummary) -> str:
    filesystem = case.filesystem
    own = f"{filesystem}'s" if filesystem else "the filesystem's"
    return {
        "filesystem journal": f"{own} journal",
        "filesystem metadata": f"{own} metadata",
        "unknown": "of an unknown owner",
        "other data": "other data",
        "others' files": "files of other programs",
    }.get(name, f"the {name}")


def _reason(reason: str) -> str:
    """Return "main.db-wal: grew, times" as a clause; of several files the first."""
    first, *others = reason.split("; ")
    file, colon, changes = first.partition(": ")
    change = changes.split(", ")[0]
    clause = f"{file} {CHANGES.get(change, change)}" if colon else first
    return f"{clause} and others changed" if others else clause


def _time(result: Answer) -> str:
    flushes = result.case.figures.median.get("flushes_per_commit")
    if flushes is None:
        return ""
    made = f"It makes {count(flushes, 'flush', 'flushes')}"
    if not (time := result.time):
        return f"{made}."
    told = f"of a typical one's time {percent(time.flushing)} is flushing, "
    told += f"{percent(time.moving)} moving data"
    whole = f"{made}; {told}, {percent(time.elsewhere)} neither."
    return whole if len(whole) <= MOST_COLUMNS else f"{made}; {told}."


def _nothing_compared(result: Answer) -> str:
    if shorter := shorter_pages(result.case):
        return shorter
    searches = "; joj advise searches, and cuts the power of what it finds"
    return f"Cheaper: not measured here{searches if 'filesystem' in result.case.case else ''}."


def _cases_lines(result: Answer) -> list[RankedLine]:
    first, *others = result.factors or (None,)
    return [
        (0, _range(result)),
        (1, _decides(first)),
        (3, _then(others)),
        (2, _where_of_several(result)),
        (1, _cheapest(result)),
        (0, _safety(result.measured_cases)),
    ]


def _range(result: Answer) -> str:
    ends = result.ends("latency_ns_p50")
    assert ends
    name = text.transaction_name(result.measured_cases)
    words = f"One {name} takes {range_words(ends, duration)}"
    cases = f"{len(result.measured_cases)} cases."
    sent = result.ends("bytes_per_commit")
    if not sent:
        return f"{words} in {cases} Their I/O was not traced."
    words += f" and {_sends(result)} {range_words(sent, size)}"
    deferred = result.share_ends("deferred_bytes_per_commit", "bytes_per_commit")
    if deferred and deferred[1]:
        words += f" (up to {percent(deferred[1])} deferred)"
    return f"{words}: {cases}"


def _decides(factor: Factor | None) -> str:
    if factor is None:
        return ""
    return (
        f"{factor.name} decides most: {factor.fastest} is {_times(factor)} times as fast as "
        f"{factor.slowest}."
    )


def _times(factor: Factor) -> str:
    return range_words((factor.least, factor.most), number)


def _then(factors: Sequence[Factor | None]) -> str:
    parts = (f"{each.name} = {each.fastest}, {_times(each)} times" for each in factors if each)
    return sentence(parts, "Then ")


def _where_of_several(result: Answer) -> str:
    flushes = result.ends("flushes_per_commit")
    if not flushes:
        return ""
    parts = [f"Each makes {range_words(flushes, number)} flushes"]
    share = result.share_ends("fs_journal_bytes_per_commit", "bytes_per_commit")
    if share:
        parts.append(f"{range_words(share, percent)} of the bytes are the filesystem's journal")
    return sentence(parts)


def _cheapest(result: Answer) -> str:
    if not result.compared:
        return "Cheaper: no other case does the same work as the first."
    if not result.cheaper:
        return "Cheaper: none of the others is faster than the first case."
    best = result.cheaper[0]
    words = "Cheaper, but riskier" if best.is_riskier else "Cheaper at no more risk"
    regimes = [
        f"{each.case['regime']}: {duration(each.figures.median['latency_ns_p50'])}"
        for each in best.regimes
    ]
    times = f"{number(best.times)} times as fast"
    named = f"{words}: {best.case.label}, {times}"
    return sentence([named if len(named) < MOST_COLUMNS else f"{words}: {times}", *regimes])


def _safety(cases: Sequence[CaseSummary], reach: str = "") -> str:
    """Return what the manuals say and what power cuts left; never more than that. `reach` is added
    to a verdict on what was seen alone.
    """
    if len(cases) > 1:
        if any(case.durability and case.durability.is_unsafe for case in cases):
            warned = sum(bool(case.hazards) for case in cases)
            return (
                f"Not safe: {_power_cuts_verdict(cases)}; the manuals warn of {warned or 'none'} "
                f"of the {len(cases)} cases."
            )
        return f"{_manuals_verdict(cases)}; {_power_cuts_verdict(cases)}."
    [case] = cases
    is_known = not (reach or case.missing.is_incomplete or case.hazards or case.unknowns)
    if is_known and not case.figures.median.get("bytes_per_commit", 1):
        return "Nothing to lose: it writes nothing to the device."
    if case.durability and case.durability.is_unsafe:
        under = " under any setting here" * durability.is_of_any_setting(case.durability)
        nothing = "nothing, as far as is known" if case.unknowns else "nothing"
        warning = hazards.risk_words(case.hazards) or nothing
        return sentence(
            [
                f"Not safe{under}: a power cut {durability.outcome_words(case)}",
                f"the manuals warn of {warning}",
            ]
        )
    if case.unknowns and not case.hazards:
        return sentence([f"Safety not known: {hazards.doubt_sentences(case.unknowns)[0]}",
                          _power_cuts_verdict(cases)])  # fmt: skip
    cuts = _power_cuts_verdict(cases)
    if not case.hazards:
        return f"Safe by the manuals{reach}; {cuts}."
    risk, counted = (hazards.manuals(case, has_room=has_room) for has_room in (False, True))
    lines = (
        f"At risk by the manuals: {counted}; {cuts}.",
        f"At risk by the manuals: {risk}; {cuts}.",
        f"At risk: {risk}; {cuts.removesuffix(_CUTS_OPTION)}.",
    )
    return next((line for line in lines if len(line) <= MOST_COLUMNS), lines[-1])


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
    tested = [case for case in cases if case.durability]
    if not tested:
        # Power is cut of cases of the lab.
        can_be = all("filesystem" in case.case for case in cases)
        return "power cuts were not tested" + _CUTS_OPTION * can_be
    if len(cases) == 1:
        [case] = cases
        return f"after power cuts not refuted: {durability.outcome_words(case)}"
    return f"after power cuts {durability.summarise_durability(cases)}"


def _traffic_lines(
    summary: RunSummary, kinds: Mapping[str, Characterisation]
) -> Iterator[RankedLine]:
    """Yield what is known of the I/O of a run whose commits are not."""
    known = {case.case_id: case.traffic.kinds for case in summary.cases if case.traffic}
    result = list({**known, **kinds}.values())
    took = [
        c.figures.median["io_time_ns"]
        for c in summary.measured_cases
        if "io_time_ns" in c.figures.median
    ]
    if took:
        yield (
            0,
            f"The calls of the replay took {range_words((min(took), max(took)), duration)} in all.",
        )
    if not result:
        yield 0, "No transaction was timed: what one commit costs is not known."
        return
    first = result[0]
    parts = []
    for operation, verb in (("write", "written"), ("read", "read")):
        requests, length = first.operations.get(operation, (0, 0))
        if requests or operation == "write":
            parts.append(f"{size(length)} was {verb} in {count(requests, 'request')}")
    flushes, _ = first.operations.get("flush", (0, 0))
    parts[0] += f", with {count(flushes, 'flush', 'flushes')}"
    yield 0, sentence(parts, f"Of {len(result)} cases, the first: " * (len(result) > 1))
    _, written = first.operations.get("write", (0, 0))
    for attribute, suffix in (("block_type", ""), ("file_kind", ", by kind of file")):
        parts = [
            f"{percent(share.bytes / written)} {share.value}"
            for share in sorted(first.shares_of("write", attribute), key=lambda each: -each.bytes)
            if share.bytes and written
        ]
        if parts:
            yield 1, sentence(parts, f"Of the bytes written{suffix}: ")
    yield 0, "No transaction is in the tables: what one commit costs is not known."


def _incomplete(summary: RunSummary) -> str:
    """Say how many cases lack something, and what the first lacks; empty where none does."""
    missing = []
    for status in ("failed", "pending"):
        if cases := [case for case in summary.cases if case.status == status]:
            missing.append(f"{text.integer(len(cases), 'case')} {status}")
    if lacking := summary.incomplete_cases:
        several = len(summary.cases) > 1
        missing += [f"{len(lacking)} of {len(summary.cases)} cases lack data"] * several
        first, *others = lacking[0].missing.in_words
        missing += [f"{lacking[0].label}: " * several + first, *others]
    return incomplete_line(missing)
