"""Does a run keep its budgets, and if not, which lines of the bill grew?

Reads the summary of a run, budgets and the accepted bill; gives a verdict for each limit and case.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from jojlab.analysis.commit.bill import LineDelta, grown_lines, lines_of, per_row
from jojlab.analysis.run.durability import Durability
from jojlab.analysis.run.risks import broken_states
from jojlab.analysis.run.summary import CaseSummary, RunSummary
from jojlab.gate.budgets import (
    ROW_FIGURES,
    AcceptedBill,
    AcceptedCase,
    Budget,
    Limit,
    refuse_idle_budgets,
)
from jojlab.model.figures import Number


class LimitOutcome(StrEnum):
    """The outcome of a limit."""

    KEPT = "kept"
    BROKEN = "broken"
    NOT_MEASURED = "not measured"


@dataclass(frozen=True)
class LimitVerdict:
    """One limit of one case. `value` and `before` are of its figure, now and accepted; `durability`
    is of a guarantee. `why` says why nothing was measured. `changed` are the fields that differ
    from those of the accepted case, with both values.
    """

    case: CaseSummary
    limit: Limit
    outcome: LimitOutcome
    value: Number | None = None
    before: Number | None = None
    durability: Durability | None = None
    why: str = ""
    lines: tuple[LineDelta, ...] = ()
    changed: tuple[tuple[str, object, object], ...] = ()

    @property
    def case_id(self) -> str:
        """The case's name in its run."""
        return self.case.case_id

    @property
    def label(self) -> str:
        """The case's name by the fields in which those of its run differ."""
        return self.case.label


def check(
    summary: RunSummary, budgets: Sequence[Budget], accepted: AcceptedBill | None
) -> tuple[LimitVerdict, ...]:
    """Return the verdicts, in the order of budgets, cases and limits.

    Raises UseError for a budget that chooses no case of the run.
    """
    cases = [case for case in summary.cases if case.status != "skipped"]
    refuse_idle_budgets(budgets, [case.case for case in cases])
    known: Mapping[str, AcceptedCase] = accepted.cases if accepted else {}
    return tuple(
        _verdict(case, limit, known.get(case.case_id))
        for budget in budgets
        for case in cases
        if budget.chooses(case.case)
        for limit in budget.limits
    )


def needs_power_cuts(budgets: Iterable[Budget], settings: Mapping[str, Any]) -> bool:
    """Return whether a guarantee is asked of a case, so that its power must be cut."""
    return any(
        limit.guarantee for each in budgets if each.chooses(settings) for limit in each.limits
    )


def _verdict(case: CaseSummary, limit: Limit, before: AcceptedCase | None) -> LimitVerdict:
    if limit.guarantee:
        return _guarantee_verdict(case, limit)
    value, why = _value(case, limit, case.figures.median)
    if value is None:
        return LimitVerdict(case, limit, LimitOutcome.NOT_MEASURED, why=why)
    old = None
    if before:
        old, _ = _value_of(limit, before.figures, before.settings)
    if limit.holds(value):
        kept = LimitOutcome.NOT_MEASURED if case.missing.is_incomplete else LimitOutcome.KEPT
        why = "the capture is incomplete" if case.missing.is_incomplete else ""
        return LimitVerdict(case, limit, kept, value, old, why=why)
    return LimitVerdict(
        case, limit, LimitOutcome.BROKEN, value, old,
        lines=_lines(case, limit, before),
        changed=_setting_changes(case, before),
    )  # fmt: skip


def _guarantee_verdict(case: CaseSummary, limit: Limit) -> LimitVerdict:
    assert limit.guarantee
    found = case.durability
    if found is None:
        why = case.uncut or "the power was not cut"
        return LimitVerdict(case, limit, LimitOutcome.NOT_MEASURED, why=why)
    if broken_states(found, limit.guarantee):
        return LimitVerdict(case, limit, LimitOutcome.BROKEN, durability=found)
    if case.judge == "syncs" and (case.hazards or case.unknowns):
        why = "a replay is judged by its syncs: what its commits lose is not known"
        return LimitVerdict(case, limit, LimitOutcome.NOT_MEASURED, durability=found, why=why)
    return LimitVerdict(case, limit, LimitOutcome.KEPT, durability=found)


def _value(
    case: CaseSummary, limit: Limit, figures: Mapping[str, Number]
) -> tuple[Number | None, str]:
    """Return the value that a limit is about, or why there is none."""
    if not figures:
        return None, case.reason or (
            "no commit was measured" if case.status == "ok" else case.status
        )
    return _value_of(limit, figures, case.case)


def _value_of(
    limit: Limit, figures: Mapping[str, Number], settings: Mapping[str, Any]
) -> tuple[Number | None, str]:
    if limit.figure not in figures:
        return None, f"the capture has no {limit.figure}"
    value = figures[limit.figure]
    if limit.name not in ROW_FIGURES:
        return value, ""
    rows = rows_of(settings)
    return (value / rows, "") if rows else (None, "how many rows a commit changes is not known")


def rows_of(settings: Mapping[str, Any]) -> int:
    """Return how many rows a commit of a case changes; 0 where its fields do not say."""
    return int(settings.get("statements", 0)) * int(settings.get("databases", 0))


def _lines(case: CaseSummary, limit: Limit, before: AcceptedCase | None) -> tuple[LineDelta, ...]:
    if case.bill is None:
        return ()
    now = lines_of(case.bill)
    old = tuple(before.lines) if before else None
    if limit.name in ROW_FIGURES:
        now = per_row(now, rows_of(case.case))
        old = per_row(old, rows_of(before.settings) or 1) if old and before else None
    return grown_lines(limit.figure, now, old)


def _setting_changes(
    case: CaseSummary, before: AcceptedCase | None
) -> tuple[tuple[str, object, object], ...]:
    if before is None:
        return ()
    names = dict.fromkeys([*before.settings, *case.case])
    pairs = ((name, before.settings.get(name), case.case.get(name)) for name in names)
    return tuple((name, old, new) for name, old, new in pairs if old != new)
