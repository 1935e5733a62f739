"""Says which syncs a case needs: the short answer, a table of its sites, and a state for each that
protects something.

Gets what was seen without each (jojlab/analysis/run/trials.py). That nothing was seen is said
of so many states, and never that a sync can be spared.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from jojlab.analysis.run.durability import durability_json
from jojlab.analysis.run.summary import CaseSummary
from jojlab.analysis.run.trials import SyncNeed, SyncVerdict
from jojlab.report import durability
from jojlab.report.shared import text
from jojlab.report.shared.console import QuietConsole, print_rows
from jojlab.report.shared.short_answer import RankedLine, duration, fit_lines

# The sites of each case, the case beside them.
Needs = Sequence[tuple[CaseSummary, Sequence[SyncNeed]]]

_WORDS = {
    SyncVerdict.PROTECTS: "protects",
    SyncVerdict.ALIKE: "not told apart",
    SyncVerdict.UNSEEN: "nothing was seen",
    SyncVerdict.ABSENT: "no such call",
    SyncVerdict.FIXED: "not left out",
}
# Of these no run was made.
_UNTRIED = (SyncVerdict.ABSENT, SyncVerdict.FIXED)
_COLUMNS = ["case", "sync", "calls", "costs", "states", "without it", "so it"]


def short_lines(needs: Needs) -> tuple[str, ...]:
    """Return the short answer: how many sites protect something, then the sites."""
    tried = [need for _, own in needs for need in own if need.verdict not in _UNTRIED]
    fixed = [need for _, own in needs for need in own if need.verdict is SyncVerdict.FIXED]
    counts = {word: sum(need.verdict is word for need in tried) for word in SyncVerdict}
    if not tried and not fixed:
        return ("No sync was made: there is none to leave out.",)
    first = f"{counts[SyncVerdict.PROTECTS]} of {text.integer(len(tried), 'sync site')} protect "
    first += "what is judged"
    if unseen := counts[SyncVerdict.UNSEEN]:
        first += f"; {unseen} not seen to protect anything"
    if alike := counts[SyncVerdict.ALIKE]:
        first += f"; {alike} not told apart"
    if fixed:
        first += f"; {len(fixed)} seen that cannot be left out"
    lines: list[RankedLine] = [(0, f"{first}.")]
    has_cases = len(needs) > 1
    for case, own in needs:
        begin = f"{case.case_id}: " if has_cases else ""
        lines += [
            (_rank(need), f"{begin}{_need_sentence(case, need)}")
            for need in own
            if _rank(need) < _LAST
        ]
    return fit_lines(lines)


_RANKS = {
    SyncVerdict.PROTECTS: 1,
    SyncVerdict.FIXED: 2,
    SyncVerdict.UNSEEN: 3,
    SyncVerdict.ALIKE: 4,
}
_LAST = 5


def _rank(need: SyncNeed) -> int:
    return _RANKS.get(need.verdict, _LAST)


def _need_sentence(case: CaseSummary, need: SyncNeed) -> str:
    states = text.integer(need.durability.states, "state")
    if need.verdict is SyncVerdict.PROTECTS:
        what = f"without it {_counts(need.outcomes)} of {states}"
    elif need.verdict is SyncVerdict.ALIKE:
        what = "not told apart, as the same harm is seen with every sync"
    elif need.verdict is SyncVerdict.FIXED:
        calls = text.integer(need.calls, "call")
        return f"{need.site}: {calls}, which cannot be left out: what it protects is not known."
    else:
        what = f"in {states} nothing was seen that it protects"
    cost = f" (cost: {_cost(case, need)})" if need.cost_ns is not None else ""
    return f"{need.site}: {what}{cost}."


def _harm(need: SyncNeed) -> str:
    harmful = {name: it for name, it in need.durability.outcomes.items() if name != "kept"}
    return _counts(harmful) or "no harm"


def _counts(outcomes: Mapping[str, int]) -> str:
    return ", ".join(f"{count:,} {name}" for name, count in outcomes.items() if count)


# So much two runs of the same work differ by an operation (docs/own-engine.md).
_LEAST_COST_NS = 100_000


def _cost(case: CaseSummary, need: SyncNeed) -> str:
    """Return what it takes of an operation, where that is more than two runs differ by."""
    if need.cost_ns is None:
        return "not known"
    per = "a commit" if text.has_commit([case]) else "an operation"
    return (
        f"{duration(need.cost_ns)} {per}" if need.cost_ns > _LEAST_COST_NS else "too little to tell"
    )


def print_needs(console: QuietConsole, needs: Needs) -> None:
    """Print the table of all sites, and then a state for each that protects something."""
    rows: list[list[object]] = [
        [
            case.case_id,
            need.site,
            need.calls,
            None if need.verdict in _UNTRIED else _cost(case, need),
            None if need.verdict is SyncVerdict.FIXED else need.durability.states,
            None if need.verdict is SyncVerdict.FIXED else _harm(need),
            _WORDS[need.verdict],
        ]
        for case, own in needs
        for need in own
    ]
    print_rows(console, _COLUMNS, rows)
    for line in _state_lines(needs):
        console.print(line, markup=False)


def _state_lines(needs: Needs) -> Iterator[str]:
    """Yield what the state of the smallest cut is, of each site that protects something; and what
    no number of states says.
    """
    for case, own in needs:
        for need in own:
            if need.state:
                words = durability.state_words(case, need.state)
                state = f"state {need.state.hash[:8]}, {need.state.outcome}"
                yield f"{case.case_id} without {need.site}: {state}: {words}"
    if any(need.verdict is SyncVerdict.UNSEEN for _, own in needs for need in own):
        yield (
            '"Nothing was seen" is said of these states and this judge alone: it does not say that '
            "the sync can be left out."
        )


def needs_json(needs: Needs) -> list[dict[str, Any]]:
    """Return a row for each site, as --json prints it."""
    return [
        {
            "case_id": case.case_id,
            "site": need.site,
            "calls": need.calls,
            "cost_ns": need.cost_ns,
            "verdict": need.verdict.value,
            "sentence": _need_sentence(case, need),
            "outcomes_without_it_alone": dict(need.outcomes),
            "state": need.state.hash if need.state else None,
            "state_words": durability.state_words(case, need.state) if need.state else "",
            "without_it": None
            if need.verdict is SyncVerdict.FIXED
            else durability_json(need.durability, None, ""),
        }
        for case, own in needs
        for need in own
    ]
