"""Says what a program or SQLite promised after an error, and whether it kept that: the short
answer, a table of the errors, and what was found for each that broke a promise.

Gets what was seen (jojlab/analysis/run/trials.py).
"""

from __future__ import annotations

import errno
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from jojlab.analysis.run.durability import durability_json
from jojlab.analysis.run.summary import CaseSummary
from jojlab.analysis.run.trials import FaultOutcome, FaultVerdict
from jojlab.report import durability
from jojlab.report.shared import text
from jojlab.report.shared.console import QuietConsole, print_rows
from jojlab.report.shared.short_answer import RankedLine, fit_lines


@dataclass(frozen=True)
class CaseFaults:
    """The errors of one case, its sync sites that cannot be made to fail, and why errors of a kind
    cannot be planted beneath it.
    """

    case: CaseSummary
    outcomes: Sequence[FaultOutcome]
    untried: Sequence[str]
    refusals: Sequence[str] = ()


_WORDS = {
    FaultVerdict.BROKEN: "broken",
    FaultVerdict.KEPT: "kept",
    FaultVerdict.ALIKE: "not told apart",
    FaultVerdict.UNMET: "not tried",
}
_COLUMNS = ["error", "returned", "promised", "ended", "remounted", "after cuts", "promises"]


def short_lines(faults: Sequence[CaseFaults]) -> tuple[str, ...]:
    """Return the short answer: in how many errors promises were kept, then the errors."""
    all_of = [it for each in faults for it in each.outcomes]
    counts = {verdict: sum(it.verdict is verdict for it in all_of) for verdict in FaultVerdict}
    tried = len(all_of) - counts[FaultVerdict.UNMET]
    first = f"{counts[FaultVerdict.BROKEN]} of {text.integer(tried, 'error')} broke a promise"
    if kept := counts[FaultVerdict.KEPT]:
        first += f"; {kept} broke none that was seen"
    if alike := counts[FaultVerdict.ALIKE]:
        first += f"; {alike} not told apart"
    if unmet := counts[FaultVerdict.UNMET]:
        first += f"; {unmet} met no call"
    lines: list[RankedLine] = [(0, f"{first}.")]
    for each in faults:
        begin = f"{each.case.case_id}: " if len(faults) > 1 else ""
        lines += [
            (1 if it.verdict is FaultVerdict.BROKEN else 2, f"{begin}{_sentence(each.case, it)}")
            for it in each.outcomes
            if it.verdict is not FaultVerdict.UNMET
        ]
        if each.untried:
            lines.append((1, f"{begin}Cannot be made to fail: {', '.join(each.untried)}."))
        lines += [(1, f"{begin}Not tried: {refusal}.") for refusal in each.refusals]
    return fit_lines(lines)


def has_broken(faults: Sequence[CaseFaults]) -> bool:
    """Return whether a promise was broken after an error."""
    return any(it.verdict is FaultVerdict.BROKEN for each in faults for it in each.outcomes)


def print_faults(console: QuietConsole, faults: Sequence[CaseFaults]) -> None:
    """Print the table of all errors, and then what was found for each that broke a promise."""
    is_one = len(faults) == 1
    rows: list[list[object]] = [
        [
            *([] if is_one else [each.case.case_id]),
            it.name,
            "not seen" if _is_unseen(each.case, it) else _error(each.case, it),
            f"{it.findings.acknowledged_before}, {_later(it)} after",
            it.findings.ended,
            it.remount.outcome,
            ", ".join(
                f"{count:,} {name}" for name, count in it.durability.outcomes.items() if count
            ),
            _WORDS[it.verdict],
        ]
        for each in faults
        for it in each.outcomes
    ]
    print_rows(console, _COLUMNS if is_one else ["case", *_COLUMNS], rows)
    for line in _harm_lines(faults):
        console.print(line, markup=False)


def faults_json(faults: Sequence[CaseFaults]) -> list[dict[str, Any]]:
    """Return a row for each error, as --json prints it."""
    return [
        {
            "case_id": each.case.case_id,
            "kind": it.kind,
            "error": it.name,
            "returned": _error(each.case, it),
            "free_bytes": it.findings.free_bytes,
            "ended": it.findings.ended,
            "last_line": it.findings.last_line,
            "acknowledged_before": it.findings.acknowledged_before,
            "acknowledged": it.findings.acknowledged,
            "mounted_again": it.remount.outcome,
            "message": it.remount.message,
            "verdict": it.verdict.value,
            "sentence": _sentence(each.case, it),
            "state": it.state.hash if it.state else None,
            "state_words": durability.state_words(each.case, it.state) if it.state else "",
            "after_power_cuts": durability_json(it.durability, None, ""),
        }
        for each in faults
        for it in each.outcomes
    ]


def _error(case: CaseSummary, outcome: FaultOutcome) -> str:
    """Return what a call of the program or a sync of SQLite returned; of SQLite on a full disk what
    failed: its calls are not seen.
    """
    found = outcome.findings
    if found.at_ns is None and found.kind == "no-space":
        return "no failure seen"
    if found.at_ns is None:
        return "0: nothing to write"
    if _is_unseen(case, outcome):
        return found.ended
    number = errno.ENOSPC if found.errno is None else found.errno
    return errno.errorcode.get(number, str(number)) if number else "0, as if all were well"


def _later(outcome: FaultOutcome) -> int:
    """Return how many promises were made after the error."""
    return outcome.findings.acknowledged - outcome.findings.acknowledged_before


def _is_unseen(case: CaseSummary, outcome: FaultOutcome) -> bool:
    """Return whether transactions of SQLite failed by a call that is not seen."""
    found = outcome.findings
    return found.at_ns is not None and found.errno is None and not _runs_program(case)


def _runs_program(case: CaseSummary) -> bool:
    return "program" in case.case


def _sentence(case: CaseSummary, outcome: FaultOutcome) -> str:
    found, after = outcome.findings, _later(outcome)
    promise = "line" if _runs_program(case) else "commit"
    lines = f"{text.integer(after, promise) if after else 'none'} promised after it"
    if found.at_ns is None:
        lines = f"{text.integer(found.acknowledged, promise)}, then {found.ended}"
    if outcome.remount.outcome != "kept":
        end = f"mounted again: {outcome.remount.outcome}"
    elif outcome.state:
        end = f"after a power cut: {outcome.state.outcome}"
    else:
        states = text.integer(outcome.durability.states, "state")
        end = f"{_WORDS[outcome.verdict]}, mounted again and in {states}"
    return f"{outcome.name}: {_error(case, outcome)}; {lines}; {end}."


def _harm_lines(faults: Sequence[CaseFaults]) -> Iterator[str]:
    """Yield what was found for each error that broke a promise."""
    for each in faults:
        for it in each.outcomes:
            begin = f"{each.case.case_id}, {it.name}"
            if it.verdict is FaultVerdict.BROKEN and it.remount.outcome != "kept":
                yield f"{begin}: mounted again, without a power cut: {it.remount.message}"
            if it.verdict is FaultVerdict.BROKEN and it.state:
                words = durability.state_words(each.case, it.state)
                yield f"{begin}: state {it.state.hash[:8]}, {it.state.outcome}: {words}"
            if it.findings.last_line:
                who = "the program said" if _runs_program(each.case) else "the last error"
                yield f"{begin}: {who}: {it.findings.last_line}"
