"""Words for published statements: what was printed, what ours is, and what came of it.

Gets statements that are evaluated; computes nothing.
"""

from __future__ import annotations

from jojlab.analysis.figures.figure import FIGURES
from jojlab.analysis.study.published import Point, Statement
from jojlab.report.words import text

ABSENT = "–"


def theirs(found: Statement) -> str:
    """Return what was printed, as "39 inserts/s", "+17 %" or "above 3 times"."""
    if found.kind == "missing":
        return "not available"
    if found.value is None:
        return {"above": "more", "below": "less"}[found.holds]
    if found.unit == "%" and found.kind != "value":
        number = f"{found.value:+g} %"
    else:
        number = f"{text.digits(found.value)} {found.unit}".strip()
    return f"{found.holds} {number}".strip()


def ours(found: Statement, point: Point) -> str:
    """Return our value in the statement's unit; a dash where none was measured."""
    if point.ours is None:
        return ABSENT
    if point.than is not None:
        return f"{_change(found, point.ours)}, the other {_change(found, point.than)}"
    if found.kind in ("value", "missing") and not point.against:
        return text.figure(found.figure, point.ours)
    return _change(found, point.ours)


def error(point: Point) -> str:
    """Return our error, as "+12.0 %"."""
    return ABSENT if point.error is None else f"{point.error * 100:+.1f} %"


def compared(point: Point) -> str:
    """Return which cases a point is about."""
    return f"{point.label} against {point.against}" if point.against else point.label


def verdict(found: Statement) -> str:
    """Return the verdict, with the number of cases where they are several."""
    held, known = found.held
    words = found.verdict
    if found.kind == "bound" and known > 1:
        words += f", {held} of {known}"
    return words


def title(found: Statement) -> str:
    """Return what the statement says, or names."""
    figure = FIGURES.get(found.figure)
    return found.says or (figure.meaning if figure else found.figure)


def _change(found: Statement, value: float) -> str:
    return f"{text.digits(value)} times" if found.unit == "times" else f"{value:+.1f} %"
