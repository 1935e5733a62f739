"""What did an experiment ask, part by part, and what do its cases answer?

A run is of one experiment, or of several that another one lists; each is a *part* here: its
question, its cases by short names, its variants with what must be known of them, its charts, and
its published statements evaluated, which the verdicts sum up.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from jojlab.analysis.figures.case_figures import CaseFigures
from jojlab.analysis.study.published import SMALL_ERROR, Place, Point, Statement, statements
from jojlab.analysis.study.tables import ComparedTable, tables
from jojlab.model.fields import BY_NAME
from jojlab.trace.run_folder import CaseEntry

# Why a published statement does not speak of a case.
ALTERED = "changed by --set"
PARTIAL = "not every seed was measured"


class MeasuredCase(Protocol):
    """The part of a case's summary that a part needs."""

    @property
    def case_id(self) -> str:
        """The case's name."""

    @property
    def case(self) -> Mapping[str, Any]:
        """Its record."""

    @property
    def figures(self) -> CaseFigures:
        """Its figures; without seeds where it was not measured."""

    @property
    def status(self) -> str:
        """Return what became of it: ok where every seed was measured."""


# Words that do not say what they are a value of.
_SAY_NOTHING = frozenset({"", "off", "on", "none", "default", "memory", "full", "normal"})


@dataclass(frozen=True)
class VariantNote:
    """A variant by name: what it sets, what must be known of it, what it puts at risk."""

    name: str
    fields: Mapping[str, Any]
    note: str
    unsafe: str


@dataclass(frozen=True)
class Part:
    """One experiment of a run. `labels` and `variants` of cases are by case_id."""

    name: str
    question: str
    notes: tuple[str, ...]
    case_ids: tuple[str, ...]
    axes: tuple[str, ...]
    labels: Mapping[str, str]
    variant_of: Mapping[str, str]
    variants: tuple[VariantNote, ...]
    charts: tuple[Mapping[str, Any], ...]
    statements: tuple[Statement, ...] = ()
    tables: tuple[ComparedTable, ...] = ()
    # The same with the time that the memory of a core adds, by core.
    modelled_tables: Mapping[str, tuple[ComparedTable, ...]] = field(default_factory=dict)
    # What the labels are made of, in their order; empty where they are case_ids.
    named_by: tuple[str, ...] = ()

    def values(self, case_id: str, case: Mapping[str, Any]) -> tuple[str, ...]:
        """Return a case's values of what names are made of, in the order of `named_by`."""
        return tuple(
            self.variant_of.get(case_id, "") if name == "variant" else str(case.get(name, ""))
            for name in self.named_by
        )

    def unsafe(self, case_id: str) -> str:
        """Return what the author says of this case's risk; empty where nothing."""
        name = self.variant_of.get(case_id, "")
        return next((v.unsafe for v in self.variants if v.name == name), "")


def parts_of(experiment: Mapping[str, Any], entries: Sequence[CaseEntry]) -> tuple[Part, ...]:
    """Return the parts of a run, not yet with statements."""
    by_id = {entry.case_id: entry for entry in entries}
    found = []
    for record in experiment.get("parts") or [experiment]:
        own = [by_id[case_id] for case_id in record.get("cases", by_id) if case_id in by_id]
        variants = record.get("variants", ())
        variant_of = {case_id: str(v["name"]) for v in variants for case_id in v["cases"]}
        axes = tuple(record.get("settings", {}).get("matrix", ()))
        found.append(
            Part(
                str(record.get("name", "")),
                str(record.get("question", "")),
                tuple(record.get("notes", ())),
                tuple(entry.case_id for entry in own),
                axes,
                (labels := case_labels(own, axes, variant_of))[0],
                variant_of,
                tuple(
                    VariantNote(v["name"], v["fields"], v["note"], v["unsafe"]) for v in variants
                ),
                tuple(record.get("charts", ())),
                named_by=labels[1],
            )
        )
    return tuple(found)


def evaluate(
    record: Mapping[str, Any], part: Part, cases: Iterable[MeasuredCase]
) -> tuple[Statement, ...]:
    """Hold the published entries of a part against the figures of its cases."""
    return statements(record.get("published", ()), _places(record, part, cases), part.axes)


def fill_tables(
    record: Mapping[str, Any], part: Part, cases: Iterable[MeasuredCase]
) -> tuple[ComparedTable, ...]:
    """Fill the printed tables of a part with the changes of its cases."""
    return tables(record.get("tables", ()), _places(record, part, cases))


def _places(record: Mapping[str, Any], part: Part, cases: Iterable[MeasuredCase]) -> list[Place]:
    altered = set(record.get("altered", ()))
    return [
        Place(
            part.labels[case.case_id],
            {**case.case, "variant": part.variant_of.get(case.case_id, "")},
            case.figures,
            ALTERED if case.case_id in altered else "" if case.status == "ok" else PARTIAL,
        )
        for case in cases
        if case.case_id in part.labels and case.figures.seeds
    ]


def case_labels(
    cases: Sequence[CaseEntry],
    axes: Iterable[str] = (),
    variant_of: Mapping[str, str] | None = None,
) -> tuple[dict[str, str], tuple[str, ...]]:
    """Name every case by its variant and the fields that differ, "ext4 · wal · databases 3".

    Return the names by case_id, and what they are made of. `axes` are the fields that the
    experiment varies; others may differ as a consequence, and between variants. A value that says
    nothing by itself stands with its field's name. Where names are not unique, the case_id is the
    name.
    """
    every = () if variant_of else (name for entry in cases for name in entry.case)
    fields = list(axes) or list(dict.fromkeys(every))
    varying = [
        name
        for name in fields
        if len({json.dumps(entry.case.get(name), sort_keys=True) for entry in cases}) > 1
    ]
    labels = {}
    for entry in cases:
        words = [(variant_of or {}).get(entry.case_id, "")]
        words += [value_words(name, entry.case[name]) for name in varying if name in entry.case]
        labels[entry.case_id] = " · ".join(filter(None, words)) or entry.case_id
    if len(set(labels.values())) < len(labels):
        return {entry.case_id: entry.case_id for entry in cases}, ()
    return labels, (*(["variant"] if variant_of else []), *varying)


def value_words(field: str, value: object) -> str:
    """Return a field's value as a name shows it: alone, or after the field's name."""
    names_itself = field == "variant" or (field in BY_NAME and BY_NAME[field].names_itself)
    alone = names_itself and str(value) not in _SAY_NOTHING
    return str(value) if alone else f"{field} {value}"


@dataclass(frozen=True)
class PartVerdict:
    """One part with one software: its orderings that were measured, those reproduced, and its
    predictions' errors.
    """

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
    """All parts with one software, their sum, and the anchors with what ours is."""

    software: str
    parts: tuple[PartVerdict, ...]
    whole: PartVerdict
    anchors: tuple[tuple[Statement, Point], ...]
    missing: int

    @property
    def close(self) -> int:
        """Predictions whose error is small (SMALL_ERROR)."""
        return sum(abs(error) <= SMALL_ERROR for error in self.whole.errors)


def verdicts(parts: Iterable[Part]) -> tuple[Verdicts, ...]:
    """Count the statements of `parts`, for each software of their cases."""
    parts = tuple(parts)
    found = dict.fromkeys(each.software for part in parts for each in part.statements)
    return tuple(_verdicts(parts, software) for software in found)


def _verdicts(parts: Sequence[Part], software: str) -> Verdicts:
    by_part = {
        part.name: [each for each in part.statements if each.software == software] for part in parts
    }
    everything = [each for found in by_part.values() for each in found]
    return Verdicts(
        software,
        tuple(_verdict(name, found) for name, found in by_part.items()),
        _verdict("all", everything),
        tuple((found, point) for found in everything if found.anchor for point in found.points),
        sum(found.kind == "missing" for found in everything),
    )


def statement_rows(part: Part) -> tuple[tuple[Statement, ...], ...]:
    """Return a part's statements by entry: one of each with every software."""
    found: dict[int, list[Statement]] = {}
    for each in part.statements:
        found.setdefault(each.entry, []).append(each)
    return tuple(map(tuple, found.values()))


def _verdict(name: str, statements: Iterable[Statement]) -> PartVerdict:
    statements = tuple(statements)
    bounds = [
        each for each in statements if each.kind == "bound" and each.verdict != "not measured"
    ]
    predictions = [
        each for each in statements if each.kind in ("value", "change") and not each.anchor
    ]
    return PartVerdict(
        name,
        len(bounds),
        sum(each.verdict != "not reproduced" for each in bounds),
        tuple(p.error for each in predictions for p in each.points if p.error is not None),
    )
