"""Says whether a run keeps its limits, and which lines of the bill grew: on a terminal, as JUnit's
XML for a CI server, as Markdown for a pull request.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import astuple, dataclass
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from rich.console import Console
from rich.markup import escape

from jojlab.analysis.commit.bill import BillLine, LineDelta
from jojlab.foundation.printable import plural, printable
from jojlab.gate.budgets import Limit
from jojlab.gate.check import LimitOutcome, LimitVerdict
from jojlab.gate.trend import TrendPoint
from jojlab.model.figures import Number
from jojlab.report import durability
from jojlab.report.shared import text
from jojlab.report.shared.console import left, print_table, right

# Lines of the bill that are spelled out for one limit; the others are counted.
SPELLED = 3


def measured_value(verdict: LimitVerdict) -> str:
    """Return what was measured."""
    if verdict.durability:
        return durability.outcome_counts(verdict.durability)
    return "–" if verdict.value is None else amount(verdict.limit, verdict.value)


def accepted_value(verdict: LimitVerdict) -> str:
    """Return what was accepted; empty where nothing was."""
    return "" if verdict.before is None else amount(verdict.limit, verdict.before)


def amount(limit: Limit, number: Number) -> str:
    """Return a value in the unit of a limit's figure."""
    return text.figure(limit.figure, number)


def headline(verdict: LimitVerdict) -> str:
    """Return one sentence on a limit, without its outcome."""
    words = f"{verdict.label}: {verdict.limit.text}: {measured_value(verdict)}"
    if verdict.why:
        words += f" ({verdict.why})"
    if verdict.outcome is LimitOutcome.BROKEN and verdict.before is not None:
        words += f"; accepted: {accepted_value(verdict)}"
    return words


def details(verdict: LimitVerdict) -> list[str]:
    """Return the settings that changed, and the lines that grew or are dearest."""
    lines = [f"changed: {name}: {old} → {new}" for name, old, new in verdict.changed]
    lines += [grown_line_words(each) for each in verdict.lines[:SPELLED]]
    if len(verdict.lines) > SPELLED:
        lines.append(plural(len(verdict.lines) - SPELLED, "more line"))
    worst = verdict.durability and verdict.durability.worst
    if worst and verdict.outcome is LimitOutcome.BROKEN:
        lines.append(durability.state_words(verdict.case, worst))
    return lines


def grown_line_words(result: LineDelta) -> str:
    """Return a line of the bill, and how it grew."""
    now, old = result.line, result.before
    what = "dear line" if old is None else "new line" if not _size(old) else "grown line"
    if old is None or not _size(old):
        return f"{what}: {owner(now)}: {amounts(now)}"
    return f"{what}: {owner(now)}: {amounts(old)} → {amounts(now)}"


def gate_summary(verdicts: Sequence[LimitVerdict]) -> str:
    """Return how many limits hold."""
    counts = {kept: sum(each.outcome is kept for each in verdicts) for kept in LimitOutcome}
    words = ", ".join(f"{count} {kept}" for kept, count in counts.items() if count)
    return f"{text.count(len(verdicts), 'limit')}: {words}"


def _size(line: BillLine) -> float:
    return line.requests + line.bytes


def owner(line: BillLine) -> str:
    """Return what a line of the bill is for."""
    part = "" if line.part == "commit" else f"{text.LATER_PARTS[line.part]}: "
    kind = line.block_type if line.operation in ("write", "flush") else (
        f"{line.block_type} ({line.operation})"
    )  # fmt: skip
    return part + ", ".join(filter(None, (kind, line.file, line.cause)))


def amounts(line: BillLine) -> str:
    """Return the requests of a line, and their KiB but where they are flushes."""
    requests = text.count(line.requests, "request")
    return requests if line.operation == "flush" else f"{requests}, {text.kib(line.bytes)} KiB"


_STYLES = {
    LimitOutcome.KEPT: "green",
    LimitOutcome.BROKEN: "bold red",
    LimitOutcome.NOT_MEASURED: "bold yellow",
}


def print_gate(console: Console, verdicts: Sequence[LimitVerdict]) -> None:
    """Print how many limits hold, what became of the others, then a row for each limit."""
    console.print(gate_summary(verdicts))
    for each in verdicts:
        if each.outcome is LimitOutcome.KEPT:
            continue
        style = _STYLES[each.outcome]
        console.print(f"[{style}]{each.outcome}[/{style}] {escape(headline(each))}")
        for line in details(each):
            console.print(f"    {escape(line)}")
    rows = (
        (
            *(escape(each.label), escape(each.limit.text)),
            f"[{_STYLES[each.outcome]}]{each.outcome}[/{_STYLES[each.outcome]}]",
            *(escape(measured_value(each)), escape(accepted_value(each))),
        )
        for each in verdicts
    )
    print_table(console, [*left("case", "limit", ""), *right("now", "accepted")], rows)


# Runs that a trend draws, the newest.
DRAWN_POINTS = 40
_BARS = "▁▂▃▄▅▆▇█"


@dataclass(frozen=True)
class TrendLine:
    """The course of one limit's value: `bars` has a sign for each run that is drawn, the oldest
    first, and a blank where it was not measured. `before` is the value of the run before, None
    where there is none; `changed_at` is the newest commit that
    changed it.
    """

    label: str
    limit: str
    bars: str
    before: str
    now: str
    changed_at: str


def trend_lines(
    points: Sequence[TrendPoint], verdicts: Sequence[LimitVerdict]
) -> tuple[TrendLine, ...]:
    """Return a line for each limit that this run measured, in the order of the verdicts."""
    drawn = points[-DRAWN_POINTS:]
    lines = []
    for each in {(each.case_id, each.limit.name): each for each in verdicts}.values():
        if each.value is None:
            continue
        key = each.case_id, each.limit.name
        values = [
            next((one.value for one in point.values if (one.case, one.limit) == key), None)
            for point in drawn
        ]
        before, changed_at = None, ""
        for point, value in zip(drawn[:-1], values[:-1], strict=True):
            if value is None:
                continue
            if before is not None and value != before:
                changed_at = point.commit or "not known"
            before = value
        if before is not None and each.value != before:
            changed_at = drawn[-1].commit or "not known"
        lines.append(
            TrendLine(
                label=each.label,
                limit=each.limit.name,
                bars=_bars(values),
                before="" if before is None else amount(each.limit, before),
                now=amount(each.limit, each.value),
                changed_at=changed_at,
            )
        )
    return tuple(lines)


def _bars(values: Sequence[Number | None]) -> str:
    """Return a bar for each value, its height from 0 to the largest."""
    largest = max((value for value in values if value is not None), default=0) or 1
    steps = len(_BARS) - 1
    return "".join(
        " " if value is None else _BARS[round(steps * max(value, 0) / largest)] for value in values
    )


_TREND_TITLES = ("case", "limit", "runs", "before", "now", "last changed at")


def print_trend(console: Console, lines: Sequence[TrendLine]) -> None:
    """Print how each limit's value went from run to run."""
    titles = _TREND_TITLES
    columns = (*left(*titles[:3]), *right(*titles[3:5]), *left(*titles[5:]))
    print_table(console, columns, (map(escape, astuple(each)) for each in lines))


def trend_markdown(lines: Sequence[TrendLine]) -> str:
    """Return the same as a table in Markdown."""
    rows = ["", "| " + " | ".join(_TREND_TITLES) + " |", "|---|---|---|---:|---:|---|"]
    rows += ["| " + " | ".join(map(_plain, astuple(each))) + " |" for each in lines]
    return "\n".join([*rows, ""])


# A limit that was not measured is an error of the test, not a failure of what it tests.
_ENDS = {LimitOutcome.BROKEN: "failure", LimitOutcome.NOT_MEASURED: "error"}


def junit(verdicts: Sequence[LimitVerdict], name: str) -> str:
    """Return JUnit's XML: a suite for each case, a test for each limit; `name` names them all.

    The form is that which Jenkins' xUnit plugin and GitLab read (testsuites, testsuite, testcase,
    failure, error); it has no standard of its own.
    """
    root = Element("testsuites", {"name": printable(name), **_counts(verdicts)})
    for case_id in dict.fromkeys(each.case_id for each in verdicts):
        own = [each for each in verdicts if each.case_id == case_id]
        suite = SubElement(root, "testsuite", {"name": printable(case_id), **_counts(own)})
        for each in own:
            test = SubElement(
                suite, "testcase", classname=printable(case_id), name=printable(each.limit.text)
            )
            if each.outcome in _ENDS:
                message = printable(f"{each.outcome}: {headline(each)}")
                ended = SubElement(test, _ENDS[each.outcome], message=message)
                ended.text = printable("\n".join(details(each)))
    indent(root)
    return tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _counts(verdicts: Sequence[LimitVerdict]) -> dict[str, str]:
    return {
        "tests": str(len(verdicts)),
        "failures": str(sum(each.outcome is LimitOutcome.BROKEN for each in verdicts)),
        "errors": str(sum(each.outcome is LimitOutcome.NOT_MEASURED for each in verdicts)),
    }


# What Markdown or HTML would take for its own.
_MARKS = re.compile(r"([\\`*_\[\]<>|#~&])")


def markdown(verdicts: Sequence[LimitVerdict], name: str) -> str:
    """Return the text: a table of all limits, then what became of those that do not hold."""
    rows = [
        f"### {_plain(name)}: {_plain(gate_summary(verdicts))}",
        "",
        "| case | limit | | now | accepted |",
        "|---|---|---|---:|---:|",
    ]
    for each in verdicts:
        kept = each.outcome if each.outcome is LimitOutcome.KEPT else f"**{each.outcome}**"
        cells = (each.label, each.limit.text, measured_value(each), accepted_value(each))
        label, limit, value, before = map(_plain, cells)
        rows.append(f"| {label} | {limit} | {kept} | {value} | {before} |")
    for each in verdicts:
        if each.outcome is not LimitOutcome.KEPT:
            rows += ["", f"**{each.outcome}**: {_plain(headline(each))}", ""]
            rows += [f"- {_plain(line)}" for line in details(each)]
    return "\n".join([*rows, ""])


def _plain(sentence: str) -> str:
    return _MARKS.sub(r"\\\1", printable(sentence))
