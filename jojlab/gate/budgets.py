"""Reads a file of budgets: which experiment, and what must hold of which of its cases.

docs/gate.md has the form.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta, Struct

from jojlab.experiment.published import check_selector
from jojlab.foundation.document import checked, read_toml
from jojlab.foundation.errors import UseError
from jojlab.gate.limit import Limit, parse_limit
from jojlab.trace.shapes import Selector

FORM = "docs/gate.md has the form"


class _Budget(Struct, forbid_unknown_fields=True):
    """An entry [[budget]]."""

    limits: list[str]
    case: Selector = {}


class _Document(Struct, forbid_unknown_fields=True):
    """A file of budgets."""

    budget: list[_Budget]
    experiment: str = ""
    set: list[str] = []
    states: Annotated[int, Meta(ge=1, le=1_000_000)] = 1000


@dataclass(frozen=True)
class Budget:
    """Limits of the cases that `case` chooses by their fields; an empty table chooses all."""

    where: str
    case: Mapping[str, Any]
    limits: tuple[Limit, ...]

    def chooses(self, settings: Mapping[str, Any]) -> bool:
        """Whether it is about a case with these settings."""
        return all(
            settings.get(name) in (value if isinstance(value, list) else [value])
            for name, value in self.case.items()
        )


@dataclass(frozen=True)
class Budgets:
    """A file's budgets. `experiment` is what a fresh run runs, with `settings` as --set gives them;
    `states` are judged of each case with a guarantee.
    """

    path: Path
    experiment: str
    settings: tuple[str, ...]
    states: int
    budgets: tuple[Budget, ...]

    @property
    def accepted_path(self) -> Path:
        """Where the bill is kept that was accepted last."""
        return self.path.with_suffix(".accepted.json")


def read_budgets(path: Path) -> Budgets:
    """Read a file of budgets; UseError naming file, entry, value and remedy."""
    _, document = read_toml(path, FORM)
    asked = checked(document, _Document, str(path), FORM)
    if not asked.budget:
        raise UseError(f"{path}: no budget", f"write [[budget]]; {FORM}")
    budgets = tuple(
        _budget(entry, f"{path}: [[budget]] number {number}")
        for number, entry in enumerate(asked.budget, 1)
    )
    return Budgets(path, _beside(path, asked.experiment), tuple(asked.set), asked.states, budgets)


def _budget(entry: _Budget, where: str) -> Budget:
    if "variant" in entry.case:
        raise UseError(f"{where}: variant is no field", "choose by the fields that it sets")
    check_selector(entry.case, (), f"{where}: case")
    if not entry.limits:
        raise UseError(f"{where} has no limits", 'write limits = ["bytes_per_commit <= 30 KiB"]')
    return Budget(where, entry.case, tuple(parse_limit(text, where) for text in entry.limits))


def _beside(path: Path, experiment: str) -> str:
    """Return an experiment's path as seen from here: in the file it is relative to the file."""
    beside = path.parent / experiment
    return str(beside) if experiment and beside.exists() else experiment


def refuse_idle_budgets(budgets: Sequence[Budget], cases: Sequence[Mapping[str, Any]]) -> None:
    """Raise UseError for a budget that chooses no case: it would guard nothing."""
    for budget in budgets:
        if not any(budget.chooses(settings) for settings in cases):
            raise UseError(
                f"{budget.where}: case = {dict(budget.case)} is no case of this run",
                "correct it: a budget that chooses no case guards nothing",
            )
