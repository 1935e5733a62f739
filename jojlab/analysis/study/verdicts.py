"""Does a study of several experiments hold? Counts what became of its published statements.

An ordering is reproduced or not. A value is a prediction, unless it is the anchor that the
device's profile is fitted to; its error says how far the prediction is off.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from dataclasses import dataclass

from jojlab.analysis.study.parts import Part
from jojlab.analysis.study.published import SMALL_ERROR, Point, Statement


@dataclass(frozen=True)
class PartVerdict:
    """One part: its orderings that were measured, those reproduced, and its predictions' errors."""

    name: str
    orderings: int
    reproduced: int
    errors: tuple[float, ...]

    @property
    def median_error(self) -> float | None:
        """The median of the errors without their signs."""
        return statistics.median(map(abs, self.errors)) if self.errors else None


@dataclass(frozen=True)
class Verdicts:
    """All parts, their sum, and the anchors with what ours is."""

    parts: tuple[PartVerdict, ...]
    whole: PartVerdict
    anchors: tuple[tuple[Statement, Point], ...]
    missing: int

    @property
    def close(self) -> int:
        """Predictions whose error is small (SMALL_ERROR)."""
        return sum(abs(error) <= SMALL_ERROR for error in self.whole.errors)


def verdicts(parts: Iterable[Part]) -> Verdicts:
    """Count the statements of `parts`."""
    parts = tuple(parts)
    counted = tuple(_verdict(part.name, part.statements) for part in parts)
    everything = [found for part in parts for found in part.statements]
    return Verdicts(
        counted,
        _verdict("all", everything),
        tuple((found, point) for found in everything if found.anchor for point in found.points),
        sum(found.kind == "missing" for found in everything),
    )


def _verdict(name: str, found: Iterable[Statement]) -> PartVerdict:
    found = tuple(found)
    bounds = [each for each in found if each.kind == "bound" and each.verdict != "not measured"]
    predictions = [each for each in found if each.kind in ("value", "change") and not each.anchor]
    return PartVerdict(
        name,
        len(bounds),
        sum(each.verdict != "not reproduced" for each in bounds),
        tuple(p.error for each in predictions for p in each.points if p.error is not None),
    )
