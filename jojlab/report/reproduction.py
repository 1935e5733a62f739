"""The lines of a short answer that say how far a run reproduces what papers printed: orderings and
numbers with each software, and what the papers' advice gains and risks now.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from jojlab.analysis.run.summary import RunSummary
from jojlab.analysis.study.parts import Verdicts, verdicts
from jojlab.report import hazards
from jojlab.report.shared.short_answer import (
    RankedLine,
    count,
    number,
    percent,
    range_words,
    sentence,
)

Ends = tuple[float, float]


def study_lines(summary: RunSummary) -> list[RankedLine]:
    """Return the answer of a run of several experiments: how far the papers were reproduced, with
    each software; and which of their advice holds with the last.
    """
    columns = verdicts(summary.parts)
    lines = [(0, line) for each in columns for line in _verdict_lines(each)]
    anchors = {found.entry for each in columns for found, _ in each.anchors}
    fitted = (
        f"The device is fitted to {count(len(anchors), 'number')}, which count as no prediction."
    )
    if len(columns) == 1:
        lines.append((0, fitted if anchors else ""))
    elif columns:
        lines += _advice_lines(summary, columns)
    return lines


def published_line(summary: RunSummary) -> str:
    """Return how far one experiment's run reproduces what was printed; empty where nothing was."""
    told = [line for each in verdicts(summary.parts) for line in _verdict_lines(each) if line]
    tables = [table for part in summary.parts for table in part.tables if table.measured_cells]
    if cells := sum(len(table.measured_cells) for table in tables):
        near = sum(table.near_cells for table in tables)
        told.append(f"{near} of {count(cells, 'printed change')} are within one point of ours.")
    return "; ".join(line.removesuffix(".") for line in told) + "." if told else ""


def _verdict_lines(result: Verdicts) -> Iterator[str]:
    whole, error = result.whole, result.whole.median_error
    orderings = f"{whole.reproduced} of {count(whole.orderings, 'published ordering')} reproduced"
    predictions = count(len(whole.errors), "prediction")
    if result.software:
        told = [orderings] if whole.orderings else []
        told += [f"{predictions}, median error {percent(error)}"] if error is not None else []
        yield sentence(told, f"Software of {result.software}: ")
        return
    if whole.orderings:
        yield f"{orderings}."
    if error is not None:
        lacking = f"; {result.missing} not available" if result.missing else ""
        numbers = count(len(whole.errors), "published number")
        close = f"{result.close} of {numbers} within 10 %"
        yield f"{close}, median error {percent(error)}{lacking}."


def _advice_lines(summary: RunSummary, columns: Sequence[Verdicts]) -> Iterator[RankedLine]:
    """Yield what the advice of the papers gains with the last software, where it is faster in
    every case, and gained with the first; and which is not, or risks what its base does not.
    """
    then, now = columns[0].software, columns[-1].software
    gains: dict[str, dict[str, Ends]] = {}
    for part in summary.parts:
        for each in part.statements:
            if each.advice and (ends := each.ratio_ends):
                gains.setdefault(each.advice, {})[each.software] = ends
    known = {name: found for name, found in gains.items() if now in found}
    faster = [name for name, found in known.items() if round(found[now][0], 2) > 1]
    slower = [name for name in known if name not in faster]
    yield 0, _gain_words(f"Times as fast {now}: ", {name: known[name][now] for name in faster})
    earlier = {name: found[then] for name, found in known.items() if then in found}
    yield 0, _gain_words(f"In {then}: ", earlier)
    doubts = [f"not faster in every case {now}: {', '.join(slower)}"] if slower else []
    doubts += [f"dangerous: {name}: {words}" for name, words in _risks(summary, now).items()]
    told = sentence(doubts)
    yield 0, told[:1].upper() + told[1:]


def _gain_words(begin: str, gains: Mapping[str, Ends]) -> str:
    told = (f"{name} {range_words(ends, number)}" for name, ends in gains.items())
    return sentence(told, begin, ", ")


def _risks(summary: RunSummary, now: str) -> dict[str, str]:
    """Return what an advice puts at risk by the manuals that its base does not, with software
    `now`.
    """
    cases = {
        (part.name, label): case
        for part in summary.parts
        for case in summary.cases
        if (label := part.labels.get(case.case_id))
    }
    risks: dict[str, str] = {}
    for part in summary.parts:
        for each in part.statements:
            for point in each.points if each.advice and each.software == now else ():
                if point.measured is None:
                    continue
                case, base = (cases[part.name, name] for name in (point.label, point.against))
                if added := set(case.hazards) - set(base.hazards):
                    risks.setdefault(each.advice, hazards.risk_words(tuple(added)))
    return risks
