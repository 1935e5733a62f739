"""Which parts of what made two runs differ, and which of them moved a figure?

A part is what a user can change by itself: the kernel, the mkfs of a filesystem, QEMU, the agent, a
setting. Chain two hosts several differ at once, and no figure says which of them moved it. So
further runs may lie between the two, with some parts of the one and some of the other: a change is
then the sum of its steps from run to run, and the parts that differ in a step are fewer.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from jojlab.analysis.run.differences import differences
from jojlab.analysis.run.summary import CaseSummary, RunSummary
from jojlab.model.figures import Number
from jojlab.model.filesystems import FILESYSTEMS

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
    """What a figure did from one run to the next that has it, and the parts that differ there."""

    old: Number
    new: Number
    parts: tuple[str, ...]


def parts(names: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Group dotted names of a fingerprint (differences.py) by the part that they are of."""
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
        self._cases = [{case.case_id: case for case in run.measured} for run in runs]
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
