"""What did others print, and do our figures say the same? Evaluates [[published]] entries.

Reads the entries of an experiment (their forms: docs/experiments.md) and the figures of its cases.
Three kinds of statement come out. A *value* stands beside ours, with the error of ours. A *change*
compares two cases that differ in what `against` names and in nothing else of the experiment; its
error is that of the ratio. A *bound* says that a change is above or below something, and is
reproduced when it is so in every case that it speaks of. Nothing is rounded before it is compared.

A statement speaks of the cases of the experiment's file alone, and of what was measured whole: a
case that --set made by another value of any field, or that lacks a seed, is not held against it.
Where the cases name their software, each time is held against a statement for itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from jojlab.analysis.figures.case_figures import CaseFigures
from jojlab.foundation.printable import public_fields
from jojlab.model.figures import FIGURES
from jojlab.model.software import SOFTWARE, STUDY
from jojlab.trace.shapes import selects

# Errors up to this are not worth an explanation: a seed moves a short measurement as far.
SMALL_ERROR = 0.10

# Bytes of the units that figures in bytes are printed in; papers of storage mean 1024 by KB.
_BYTES = {"B": 1, "KB": 1024, "KiB": 1024, "MB": 1 << 20, "MiB": 1 << 20}


@dataclass(frozen=True)
class Place:
    """A case as statements and tables see it: `fields` are its record and its variant.

    `exclusion_reason` says why none of them can speak of it; empty where one can.
    """

    label: str
    fields: Mapping[str, Any]
    figures: CaseFigures
    exclusion_reason: str = ""


@dataclass(frozen=True)
class Point:
    """One case that a statement speaks of. None: no such case was measured.

    `measured` is in the statement's unit; `other_change` of a bound of changes is the other change.
    `error` is ours / theirs - 1, of the ratio where it is a change.
    """

    label: str
    against: str = ""
    measured: float | None = None
    other_change: float | None = None
    error: float | None = None
    holds: bool | None = None


@dataclass(frozen=True)
class Statement:
    """One entry, and what became of it with one software. `kind`: value, change, bound or missing.

    `entry` is its place among the entries; `software` is empty where the cases do not name it.
    """

    entry: int
    software: str
    kind: str
    says: str = ""
    figure: str = ""
    value: float | None = None
    unit: str = ""
    holds: str = ""
    source: str = ""
    status: str = "stated"
    anchor: bool = False
    note: str = ""
    explanation: str = ""
    study_explanation: str = ""
    advice: str = ""
    points: tuple[Point, ...] = ()

    @property
    def published_value(self) -> float | None:
        """Return the printed value in the figure's own unit; None for other kinds of statements."""
        known = FIGURES.get(self.figure)
        in_bytes = known is not None and known.unit == "bytes"
        return self.value * _BYTES.get(self.unit, 1) if self.value and in_bytes else self.value

    @property
    def bound_counts(self) -> tuple[int, int]:
        """Cases in which a bound holds, and cases in which it was measured."""
        known = [point.holds for point in self.points if point.holds is not None]
        return sum(known), len(known)

    @property
    def verdict(self) -> str:
        """Return the verdict on a bound, reproduced or not; of anything without figures, not
        measured.
        """
        if self.kind == "missing":
            return "not available"
        if all(point.measured is None for point in self.points):
            return "not measured"
        if self.kind != "bound":
            return ""
        held, known = self.bound_counts
        if held < known:
            return "not reproduced"
        return "reproduced" if known == len(self.points) else "reproduced where measured"

    @property
    def ratio_ends(self) -> tuple[float, float] | None:
        """Return the least and the greatest ratio of its changes; None where none was measured."""
        found = [point.measured for point in self.points if point.measured is not None]
        ratios = found if self.unit == "times" else [1 + change / 100 for change in found]
        return (min(ratios), max(ratios)) if ratios else None

    @property
    def reason(self) -> str:
        """Return why ours is another, as far as the experiment's file says; empty if it is not."""
        of_study = self.study_explanation if self.software == STUDY else ""
        return (of_study or self.explanation) if self.is_missed else ""

    @property
    def is_missed(self) -> bool:
        """Return whether ours is another: a bound that does not hold, a value that is off."""
        errors = [point.error for point in self.points if point.error is not None]
        return self.verdict == "not reproduced" or any(abs(e) > SMALL_ERROR for e in errors)


# The fields of a statement that are keys of its entry (jojlab/trace/shapes.py checks their types).
_FROM_ENTRY = [each.name for each in fields(Statement)][3:-1]


def statements(
    entries: Iterable[Mapping[str, Any]], places: Sequence[Place], axes: Iterable[str]
) -> tuple[Statement, ...]:
    """Evaluate every entry over the cases, once for each software that they name.

    `axes` are the fields in which the cases differ.
    """
    axes = (*axes, "variant")
    by_software: dict[str, list[Place]] = {}
    for place in places:
        by_software.setdefault(str(place.fields.get(SOFTWARE.name, "")), []).append(place)
    return tuple(
        _statement(number, software, entry, everywhere, axes)
        for number, entry in enumerate(entries)
        for software, everywhere in (by_software or {"": []}).items()
        if entry.get("case", {}).get(SOFTWARE.name, software) == software
    )


def _statement(
    number: int,
    software: str,
    entry: Mapping[str, Any],
    everywhere: Sequence[Place],
    axes: Sequence[str],
) -> Statement:
    places = [place for place in everywhere if not place.exclusion_reason]
    own = {name: entry[name] for name in _FROM_ENTRY if name in entry}
    source = ", ".join(str(entry[key]) for key in ("source", "place") if key in entry)
    made = Statement(number, software, _kind(entry), **{**own, "source": source})
    about = [place for place in places if selects(entry.get("case", {}), place.fields)]
    if made.kind == "missing" and "case" not in entry:
        points = []
    elif "against" not in entry:
        points = [_value(made, place) for place in about]
    else:
        points = [
            point
            for place in about
            for other in _find_counterparts(place, entry["against"], places, axes)
            for point in _changes(made, entry, place, other, places, axes)
        ]
    return replace(made, points=tuple(points) or (Point(_unmeasured_words(entry, everywhere)),))


def _unmeasured_words(entry: Mapping[str, Any], everywhere: Sequence[Place]) -> str:
    """Say which cases a statement is about that has no point, and why where they were measured."""
    selectors = [entry.get("case", {}), *([entry["against"]] if "against" in entry else [])]
    reasons = dict.fromkeys(
        place.exclusion_reason
        for selector in selectors
        for place in everywhere
        if place.exclusion_reason and selects(selector, place.fields)
    )
    return ": ".join(filter(None, (_selector_words(selectors[0]), "; ".join(reasons))))


def _selector_words(selector: Mapping[str, Any]) -> str:
    """Say in words which cases a selector is about that selects none."""
    words = [
        f"{name} = {' or '.join(map(str, value)) if isinstance(value, list) else value}"
        for name, value in selector.items()
    ]
    return ", ".join(words) or "all cases"


def _kind(entry: Mapping[str, Any]) -> str:
    if entry.get("status") == "missing":
        return "missing"
    if "holds" in entry:
        return "bound"
    return "change" if "against" in entry else "value"


def _value(statement: Statement, place: Place) -> Point:
    ours = place.figures.median.get(statement.figure)
    error = (
        ours / statement.published_value - 1
        if ours is not None and statement.published_value
        else None
    )
    return Point(place.label, measured=ours, error=error)


def _changes(
    statement: Statement,
    entry: Mapping[str, Any],
    place: Place,
    other: Place,
    places: Sequence[Place],
    axes: Sequence[str],
) -> list[Point]:
    """Compare a case with the one it is against; with `than`, also with the change of others."""
    ratio = _ratio(statement.figure, place, other)
    point = Point(place.label, other.label, _in_unit(statement, ratio))
    if ratio is None:
        return [point]
    if statement.kind == "bound" and "than" in entry:
        elsewhere = [
            _ratio(statement.figure, there, beside)
            for there in _find_counterparts(place, entry["than"], places, axes)
            for beside in _find_counterparts(there, entry["against"], places, axes)
            if all(  # of several bases, each is compared with itself
                beside.fields.get(name) == other.fields.get(name)
                for name in entry["against"]
                if name not in entry["than"]
            )
        ]
        return [
            replace(
                point,
                other_change=_in_unit(statement, than),
                holds=None if than is None else _is_beyond(statement.holds, ratio, than),
            )
            for than in elsewhere
        ]
    if statement.kind == "bound":
        return [replace(point, holds=_is_beyond(statement.holds, ratio, _threshold(statement)))]
    return [
        replace(
            point, error=ratio / _threshold(statement) - 1 if statement.value is not None else None
        )
    ]


def _find_counterparts(
    place: Place, change: Mapping[str, Any], places: Sequence[Place], axes: Sequence[str]
) -> list[Place]:
    """Return the cases that `change` selects and that are as `place` in every other axis."""
    held = [axis for axis in axes if axis not in change]
    return [
        other
        for other in places
        if other is not place
        and selects(change, other.fields)
        and all(other.fields.get(axis) == place.fields.get(axis) for axis in held)
    ]


def _ratio(figure: str, place: Place, other: Place) -> float | None:
    ours, beside = (each.figures.median.get(figure) for each in (place, other))
    return None if ours is None or not beside else ours / beside


def _threshold(statement: Statement) -> float:
    """Return the ratio that a change or bound states; 1 where it states none."""
    if statement.value is None:
        return 1.0
    return 1 + statement.value / 100 if statement.unit == "%" else float(statement.value)


def _in_unit(statement: Statement, ratio: float | None) -> float | None:
    if ratio is None:
        return None
    return ratio if statement.unit == "times" else (ratio - 1) * 100


def _is_beyond(holds: str, ratio: float, threshold: float) -> bool:
    return ratio > threshold if holds == "above" else ratio < threshold


def statements_json(statements: Iterable[Statement]) -> list[dict[str, Any]]:
    """Return what `joj show --json` prints of statements; errors are shares, not per cent."""
    return [
        {
            **{key: value for key, value in vars(each).items() if key != "points"},
            "verdict": each.verdict,
            "missed": each.is_missed,
            "points": [
                public_fields(point, measured="ours", other_change="than") for point in each.points
            ],
        }
        for each in statements
    ]
