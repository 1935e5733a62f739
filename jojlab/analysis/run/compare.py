"""Compares two runs: which figures moved by how much, and what differs in how they were made."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from jojlab.analysis.run.durability import Durability
from jojlab.analysis.run.summary import CaseSummary, RunSummary
from jojlab.foundation.printable import public_fields
from jojlab.model.figures import FIGURES, Number
from jojlab.model.filesystems import FILESYSTEMS


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


# What is made of other parts that the fingerprint has too.
_MADE_OF_OTHERS = ("image", "initramfs_sha256")
_OF_THE_KERNEL = ("kernel_release", "kernel_package_version", "kernel_sha256", "modules_sha256")
_OWN_MODULES = ("flash.ko", "raw_nand.ko")
_MKFS = "mkfs."
# Words in the names of the parts of an image's tools: packages, programs and what they read.
_TOOLS = (
    *(
        (
            f"{_MKFS}{each.name}",
            (each.mkfs.package, each.mkfs.name, *(path.name for path in each.configuration)),
        )
        for each in FILESYSTEMS.values()
        if each.mkfs
    ),
    ("fsck", ("/sbin/",)),
    ("libraries of mkfs and fsck", ("",)),
)


@dataclass(frozen=True)
class Move:
    """The change of a figure from one run to the next that has it, and what differs there."""

    old: Number
    new: Number
    parts: tuple[str, ...]


def parts(names: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Group dotted names of a fingerprint, as flatten() makes them, by their part."""
    found: dict[str, tuple[str, ...]] = {}
    for name in names:
        if part := _part(name):
            found[part] = (*found.get(part, ()), name)
    return found


def _part(name: str) -> str:
    kind = name.partition(".")[0]
    if kind in _MADE_OF_OTHERS:
        return ""
    if kind in _OF_THE_KERNEL:
        return "flash device" if name.endswith(_OWN_MODULES) else "kernel"
    if kind in ("tools_sha256", "mkfs_package_versions"):
        return next(part for part, words in _TOOLS if any(word in name for word in words))
    return {"agent_sha256": "agent", "qemu_version": "QEMU"}.get(kind, kind)


class Chain:
    """Runs in order, the first and the last of which are compared."""

    def __init__(self, runs: Sequence[RunSummary]) -> None:
        """Look the cases of the runs up."""
        self._runs = runs
        self._cases = [{case.case_id: case for case in run.measured_cases} for run in runs]
        self._parts: dict[tuple[int, int], tuple[str, ...]] = {}

    def steps(self, case_id: str, figure: str) -> tuple[Move, ...]:
        """Return the steps from run to run in which a figure of a case moved; a run that has not
        measured it is passed over.

        The parts of a step are those that may have moved the figure: of mkfs only that of the
        case's filesystem.
        """
        having = [
            (number, cases[case_id])
            for number, cases in enumerate(self._cases)
            if case_id in cases and figure in cases[case_id].figures.median
        ]
        found = []
        for (first, case), (then, next_case) in pairwise(having):
            old, new = (each.figures.median[figure] for each in (case, next_case))
            if old != new:
                found.append(Move(old, new, self._differing(first, case, then, next_case)))
        return tuple(found)

    def _differing(
        self, first: int, case: CaseSummary, then: int, next_case: CaseSummary
    ) -> tuple[str, ...]:
        """Return the parts and settings that differ between a case of two runs."""
        if (first, then) not in self._parts:
            ends = (self._runs[number].fingerprint for number in (first, then))
            self._parts[first, then] = tuple(parts(differences(*ends)))
        own = f"{_MKFS}{case.case.get('filesystem')}"
        others = self._parts[first, then]
        named = [part for part in others if not part.startswith(_MKFS) or part == own]
        # The kernel's name is a setting; which kernel it is, a part.
        settings = differences(_but_kernel(case.case), _but_kernel(next_case.case))
        seeds = ["seeds"] if case.figures.seeds != next_case.figures.seeds else []
        contents = [f"contents of {name}" for name in changed_inputs(case.inputs, next_case.inputs)]
        return (*named, *settings, *contents, *seeds)


def changed_inputs(old: Mapping[str, str], new: Mapping[str, str]) -> list[str]:
    """Return the fields whose files have other contents: those that both runs know the hash of."""
    return [name for name, own in old.items() if name in new and new[name] != own]


def _but_kernel(case: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in case.items() if name != "kernel"}


@dataclass(frozen=True)
class FigureChange:
    """One figure of one case in both runs. `change` is (new - old) / old; None from zero."""

    case_id: str
    label: str
    figure: str
    old: Number
    new: Number
    change: float | None
    is_within_spread: bool  # the ranges over the seeds overlap: the change may be chance
    steps: tuple[Move, ...]  # by the runs between the two


@dataclass(frozen=True)
class DurabilityChange:
    """The outcomes of power cuts of a case in both runs, where they differ; None: not tested."""

    case_id: str
    label: str
    old: Durability | None
    new: Durability | None

    @property
    def differs(self) -> bool:
        """Return whether it was tested in both: what one run did not test is not known."""
        return bool(self.old and self.new)


@dataclass(frozen=True)
class OneSided:
    """The cases, and by case_id the figures, that one run has and the other has not."""

    cases: tuple[str, ...] = ()
    figures: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    # By case_id: what its captures lack, or why it has none.
    lacking: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Comparison:
    """All that differs. Where nothing does, and something was measured, the runs are the same."""

    changes: tuple[FigureChange, ...]
    equal_figures: int
    old: OneSided
    new: OneSided
    # By case_id: the seeds of both, where they differ.
    seeds: Mapping[str, tuple[tuple[int, ...], tuple[int, ...]]]
    fingerprint: Mapping[str, tuple[Any, Any]]
    # By case_id: the fields that differ, though the case has one name in both runs.
    settings: Mapping[str, Mapping[str, tuple[Any, Any]]]
    # The clocks of the two runs where they differ: live and lab are not to be compared in time.
    clocks: tuple[tuple[str, ...], tuple[str, ...]] | None = None
    durability_changes: tuple[DurabilityChange, ...] = ()
    # By case_id: the fields whose files have other contents, such as a program or its files.
    contents: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def is_same(self) -> bool:
        """Return whether all figures, seeds and outcomes of cuts that both tested are equal."""
        return not (
            self.is_empty
            or self.changes
            or any(change.differs for change in self.durability_changes)
            or self.seeds
            or any(side.cases or side.figures for side in (self.old, self.new))
            or self.old.lacking != self.new.lacking
        )

    @property
    def is_empty(self) -> bool:
        """Return whether there is nothing to compare: neither run has a case with figures."""
        compared = self.equal_figures or self.changes
        return not (compared or self.old.cases or self.new.cases)

    @property
    def is_incomplete(self) -> bool:
        """Return whether something is missing in either run, so that equal figures prove little."""
        return bool(self.is_empty or self.old.lacking or self.new.lacking)


def compare(old: RunSummary, new: RunSummary, through: Sequence[RunSummary] = ()) -> Comparison:
    """Compare the medians of what both runs measured, by steps where runs lie between."""
    chain = Chain((old, *through, new))
    old_cases = {case.case_id: case for case in old.measured_cases}
    new_cases = {case.case_id: case for case in new.measured_cases}
    both = {name: (ours, new_cases[name]) for name, ours in old_cases.items() if name in new_cases}
    changes = [change for pair in both.values() for change in _changes(*pair, chain)]
    compared = sum(len(_shared_figures(*pair)) for pair in both.values())
    return Comparison(
        tuple(changes),
        compared - len(changes),
        _one_sided(old, old_cases, new_cases),
        _one_sided(new, new_cases, old_cases),
        {
            case_id: (ours.figures.seeds, theirs.figures.seeds)
            for case_id, (ours, theirs) in both.items()
            if ours.figures.seeds != theirs.figures.seeds
        },
        differences(old.fingerprint, new.fingerprint),
        {
            case_id: fields
            for case_id, (ours, theirs) in both.items()
            if (fields := differences(ours.case, theirs.case))
        },
        None if old.clocks == new.clocks else (old.clocks, new.clocks),
        tuple(
            DurabilityChange(case_id, ours.label, ours.durability, theirs.durability)
            for case_id, (ours, theirs) in both.items()
            if _durability_differs(ours.durability, theirs.durability)
        ),
        {
            case_id: tuple(names)
            for case_id, (ours, theirs) in both.items()
            if (names := changed_inputs(ours.inputs, theirs.inputs))
        },
    )


def _durability_differs(old: Durability | None, new: Durability | None) -> bool:
    """Return whether it differs; of unlike numbers of states only the worst outcomes count."""
    if old is None or new is None:
        return old is not new
    if old.requested_states != new.requested_states:
        return old.worst_outcome != new.worst_outcome
    return old.outcomes != new.outcomes


def _one_sided(
    run: RunSummary, own: Mapping[str, CaseSummary], others: Mapping[str, CaseSummary]
) -> OneSided:
    """Return what `run` has of its `own` cases that the `others` have not, and what it lacks."""
    figures = {
        case_id: tuple(n for n in case.figures.median if n not in others[case_id].figures.median)
        for case_id, case in own.items()
        if case_id in others
    }
    return OneSided(
        tuple(case_id for case_id in own if case_id not in others),
        {case_id: names for case_id, names in figures.items() if names},
        {
            case.case_id: _lacking(case)
            for case in run.cases
            if case.missing.is_incomplete or case.status in ("failed", "pending")
        },
    )


def _lacking(case: CaseSummary) -> str:
    """Say what a case lacks."""
    ended = f"{case.status}: {case.reason}" if case.status != "ok" else ""
    return "; ".join(filter(None, (*case.missing.in_words, ended)))


def comparison_json(comparison: Comparison) -> dict[str, Any]:
    """Return what `joj diff --json` prints."""
    return {
        "same": comparison.is_same,
        "changes": [
            public_fields(change, is_within_spread="within_spread") for change in comparison.changes
        ],
        "equal_figures": comparison.equal_figures,
        "only_old": list(comparison.old.cases),
        "only_new": list(comparison.new.cases),
        "vanished_figures": {k: list(v) for k, v in comparison.old.figures.items()},
        "new_figures": {k: list(v) for k, v in comparison.new.figures.items()},
        "seeds": _ends(comparison.seeds),
        "incomplete": {"old": dict(comparison.old.lacking), "new": dict(comparison.new.lacking)},
        "nothing_to_compare": comparison.is_empty,
        "fingerprint": _ends(comparison.fingerprint),
        "clocks": dict(zip(("old", "new"), comparison.clocks, strict=True))
        if comparison.clocks
        else None,
        "durability": {
            change.case_id: {
                "old": _durability_json(change.old),
                "new": _durability_json(change.new),
            }
            for change in comparison.durability_changes
        },
        "contents": {case_id: list(names) for case_id, names in comparison.contents.items()},
        "settings": {case_id: _ends(fields) for case_id, fields in comparison.settings.items()},
    }


def _durability_json(durability: Durability | None) -> dict[str, Any] | None:
    if durability is None:
        return None
    return {"worst": durability.worst_outcome, "outcomes": dict(durability.outcomes)}


def _ends(changed: Mapping[str, tuple[Any, Any]]) -> dict[str, dict[str, Any]]:
    return {name: {"old": old, "new": new} for name, (old, new) in changed.items()}


def _shared_figures(old: CaseSummary, new: CaseSummary) -> list[str]:
    """Return the figures that both have: a capture without a tracer lacks some."""
    return [n for n in FIGURES if n in old.figures.median and n in new.figures.median]


def _changes(old: CaseSummary, new: CaseSummary, chain: Chain) -> list[FigureChange]:
    changes = []
    for name in _shared_figures(old, new):
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
                    chain.steps(old.case_id, name),
                )
            )
    return changes
