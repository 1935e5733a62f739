"""What did others print for these cases? Puts an experiment's [[published]] values beside ours.

An entry names `value` and `unit`, `source` and its `place` in it, by `figure` the figure of ours
that stands beside it, and in `case` the fields of the cases it is about, as {filesystem = "ext4"}.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from jojlab.analysis.figures import FIGURES, CaseFigures, Number


@dataclass(frozen=True)
class Published:
    """One printed value, and ours for a case it is about (None where there is none)."""

    label: str
    figure: str
    value: Any
    unit: str
    source: str
    note: str
    ours: Number | None


def published_beside_ours(
    entries: Iterable[Mapping[str, Any]],
    cases: Iterable[tuple[str, Mapping[str, Any], CaseFigures]],
) -> tuple[Published, ...]:
    """Match every entry with the cases (label, case, figures) whose fields it states."""
    cases = list(cases)
    result = []
    for entry in entries:
        about = entry.get("case", {})
        matching = [
            (label, figures)
            for label, case, figures in cases
            if all(case.get(name) == value for name, value in about.items())
        ]
        figure = str(entry.get("figure", ""))
        source = ", ".join(str(entry[key]) for key in ("source", "place") if key in entry)
        for label, figures in matching or [("", CaseFigures())]:
            ours = figures.median.get(figure) if figure in FIGURES else None
            result.append(
                Published(
                    label or ", ".join(f"{k} = {v}" for k, v in about.items()),
                    figure,
                    entry.get("value", ""),
                    str(entry.get("unit", "")),
                    source,
                    str(entry.get("note", "")),
                    ours,
                )
            )
    return tuple(result)
