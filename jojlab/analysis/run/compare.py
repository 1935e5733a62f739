"""What differs between two runs? Figures and fields case by case, and what made the runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from jojlab.analysis.figures.case_figures import FIGURES, Number
from jojlab.analysis.run.summary import CaseSummary, RunSummary


@dataclass(frozen=True)
class FigureChange:
    """One figure of one case in both runs. `change` is (new - old) / old; None from zero."""

    case_id: str
    label: str
    figure: str
    old: Number
    new: Number
    change: float | None
    within_spread: bool  # the ranges over the seeds overlap: the change may be chance


@dataclass(frozen=True)
class Comparison:
    """All that differs. Without a change and a one-sided case the runs measured the same."""

    changes: tuple[FigureChange, ...]
    equal_figures: int
    only_old: tuple[str, ...]
    only_new: tuple[str, ...]
    fingerprint: Mapping[str, tuple[Any, Any]]
    # By case_id: the fields that differ, though the case has one name in both runs.
    settings: Mapping[str, Mapping[str, tuple[Any, Any]]]
    # The clocks of the two runs where they differ: live and lab are not to be compared in time.
    clocks: tuple[tuple[str, ...], tuple[str, ...]] | None = None

    @property
    def same(self) -> bool:
        """Whether every figure of every case is equal."""
        return not (self.changes or self.only_old or self.only_new)


def compare(old: RunSummary, new: RunSummary) -> Comparison:
    """Compare the medians of all figures of the cases that both runs measured."""
    old_cases = {case.case_id: case for case in old.measured}
    new_cases = {case.case_id: case for case in new.measured}
    both = [case_id for case_id in old_cases if case_id in new_cases]
    changes = [
        change for case_id in both for change in _changes(old_cases[case_id], new_cases[case_id])
    ]
    compared = sum(len(_shared(old_cases[case_id], new_cases[case_id])) for case_id in both)
    return Comparison(
        tuple(changes),
        compared - len(changes),
        tuple(case_id for case_id in old_cases if case_id not in new_cases),
        tuple(case_id for case_id in new_cases if case_id not in old_cases),
        differences(old.fingerprint, new.fingerprint),
        {
            case_id: fields
            for case_id in both
            if (fields := differences(old_cases[case_id].case, new_cases[case_id].case))
        },
        None if old.clocks == new.clocks else (old.clocks, new.clocks),
    )


def differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """Return the parts that differ, by dotted name; None stands for a part that is not there."""
    flat_old, flat_new = flatten(old), flatten(new)
    return {
        name: (flat_old.get(name), flat_new.get(name))
        for name in sorted(flat_old.keys() | flat_new.keys())
        if flat_old.get(name) != flat_new.get(name)
    }


def flatten(value: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return nested mappings as one, with dotted names."""
    flat: dict[str, Any] = {}
    for name, part in value.items():
        if isinstance(part, Mapping):
            flat |= flatten(part, f"{prefix}{name}.")
        else:
            flat[f"{prefix}{name}"] = part
    return flat


def comparison_json(comparison: Comparison) -> dict[str, Any]:
    """Return what `joj diff --json` prints."""
    return {
        "same": comparison.same,
        "changes": [vars(change) for change in comparison.changes],
        "equal_figures": comparison.equal_figures,
        "only_old": list(comparison.only_old),
        "only_new": list(comparison.only_new),
        "fingerprint": _ends(comparison.fingerprint),
        "clocks": dict(zip(("old", "new"), comparison.clocks, strict=True))
        if comparison.clocks
        else None,
        "settings": {case_id: _ends(fields) for case_id, fields in comparison.settings.items()},
    }


def _ends(changed: Mapping[str, tuple[Any, Any]]) -> dict[str, dict[str, Any]]:
    return {name: {"old": old, "new": new} for name, (old, new) in changed.items()}


def _shared(old: CaseSummary, new: CaseSummary) -> list[str]:
    """Return the figures that both have: a capture without a tracer lacks some."""
    return [n for n in FIGURES if n in old.figures.median and n in new.figures.median]


def _changes(old: CaseSummary, new: CaseSummary) -> list[FigureChange]:
    changes = []
    for name in _shared(old, new):
        before, after = old.figures.median[name], new.figures.median[name]
        if before != after:
            low, high = old.figures.spread[name]
            new_low, new_high = new.figures.spread[name]
            changes.append(
                FigureChange(
                    old.case_id,
                    old.label,
                    name,
                    before,
                    after,
                    (after - before) / before if before else None,
                    new_low <= high and low <= new_high,
                )
            )
    return changes
