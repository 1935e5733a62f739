"""Says in words whether a limit holds, and which lines of the bill grew; computes nothing."""

from __future__ import annotations

from collections.abc import Sequence

from jojlab.analysis.commit.lines import BillLine, GrownLine
from jojlab.analysis.figures.figure import Number
from jojlab.gate.check import Held, LimitVerdict
from jojlab.gate.limit import Limit
from jojlab.report.words import survival, text

# Lines of the bill that are spelled out for one limit; the others are counted.
SPELLED = 3
NO_TOLERANCE = (
    "The same case gives the same numbers, to the bit, on every machine with the same image of "
    "the lab: a budget has no tolerance."
)


def value(verdict: LimitVerdict) -> str:
    """Return what was measured."""
    if verdict.survival:
        return survival.seen(verdict.survival)
    return "–" if verdict.value is None else amount(verdict.limit, verdict.value)


def before(verdict: LimitVerdict) -> str:
    """Return what was accepted; empty where nothing was."""
    return "" if verdict.before is None else amount(verdict.limit, verdict.before)


def amount(limit: Limit, number: Number) -> str:
    """Return a value in the unit of a limit's figure."""
    return text.figure(limit.figure, number)


def headline(verdict: LimitVerdict) -> str:
    """Return one sentence on a limit."""
    told = f"{verdict.label}: {verdict.limit.text}: {verdict.kept}, {value(verdict)}"
    if verdict.why:
        told += f" ({verdict.why})"
    if verdict.kept is Held.BROKEN and verdict.before is not None:
        told += f"; accepted: {before(verdict)}"
    return told


def details(verdict: LimitVerdict) -> list[str]:
    """Return the settings that changed, and the lines that grew or are dearest."""
    told = [f"changed: {name}: {old} → {new}" for name, old, new in verdict.changed]
    told += [line(each) for each in verdict.lines[:SPELLED]]
    if len(verdict.lines) > SPELLED:
        told.append(f"{len(verdict.lines) - SPELLED} more lines")
    worst = verdict.survival and verdict.survival.worst
    if worst and verdict.kept is Held.BROKEN:
        told.append(survival.state(verdict.case, worst))
    return told


def line(found: GrownLine) -> str:
    """Return a line of the bill, and how it grew."""
    now, old = found.line, found.before
    what = "dear line" if old is None else "new line" if not _size(old) else "grown line"
    if old is None or not _size(old):
        return f"{what}: {owner(now)}: {amounts(now)}"
    return f"{what}: {owner(now)}: {amounts(old)} → {amounts(now)}"


def summary(verdicts: Sequence[LimitVerdict]) -> str:
    """Return how many limits hold."""
    counts = {kept: sum(each.kept is kept for each in verdicts) for kept in Held}
    told = ", ".join(f"{count} {kept}" for kept, count in counts.items() if count)
    return f"{text.count(len(verdicts), 'limit')}: {told}"


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
