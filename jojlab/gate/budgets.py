"""Reads budgets and the accepted bill beside them: limits of figures and guarantees."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from jojlab.analysis.commit.bill import BillLine, lines_of
from jojlab.analysis.run.risks import Guarantee
from jojlab.analysis.run.summary import RunSummary
from jojlab.experiment.published import check_selector
from jojlab.foundation.document import check_document, read_toml
from jojlab.foundation.errors import UseError, unreadable, writable
from jojlab.foundation.printable import nearest
from jojlab.model.figures import FIGURES, Number, Unit
from jojlab.trace.shapes import Selector, selects

GUARANTEE = "guarantee"
PER_COMMIT, PER_ROW = "_per_commit", "_per_row"
# A figure of a commit, divided by the rows that the commit changes.
ROW_FIGURES = {
    name.removesuffix(PER_COMMIT) + PER_ROW: name
    for name, figure in FIGURES.items()
    if figure.is_sum
}
_UNITS: dict[Unit, dict[str, Number]] = {
    "ns": {"ns": 1, "us": 1_000, "ms": 1_000_000, "s": 1_000_000_000},
    "bytes": {"B": 1, "KiB": 1024, "MiB": 1024**2, "GiB": 1024**3},
    "%": {"%": 1},
    "1/s": {"": 1, "/s": 1},
    "count": {"": 1},
    "ratio": {"": 1},
}
_LIMIT = re.compile(
    r"\s*(?P<name>\w+)\s*(?P<sign><=|>=|=)\s*(?P<value>[0-9][0-9_]*(?:\.[0-9]+)?)?\s*"
    r"(?P<unit>[A-Za-z%/]*)\s*"
)


@dataclass(frozen=True)
class Limit:
    """`name` is a figure, one of ROW_FIGURES, or "guarantee". `bound` is in the figure's unit and
    is None of a guarantee; `is_least` tells >= from <=.
    """

    text: str
    name: str
    bound: Number | None = None
    is_least: bool = False
    guarantee: Guarantee | None = None

    @property
    def figure(self) -> str:
        """The figure behind it; empty of a guarantee."""
        return "" if self.guarantee else ROW_FIGURES.get(self.name, self.name)

    def holds(self, value: Number) -> bool:
        """Return whether a value of the figure keeps the limit."""
        assert self.bound is not None
        return value >= self.bound if self.is_least else value <= self.bound


def parse_limit(text: str, where: str) -> Limit:
    """Return the limit that a text states; UseError naming what is wrong and what would do."""
    found = _LIMIT.fullmatch(text)
    if not found or not (found["value"] or found["unit"]):
        raise UseError(
            f"{where}: {text!r} is no limit",
            'write one as "bytes_per_commit <= 30 KiB" or "guarantee = durable"',
        )
    name = found["name"]
    if name == GUARANTEE:
        return _guarantee(text, found, where)
    if name not in FIGURES and name not in ROW_FIGURES:
        known = [GUARANTEE, *FIGURES, *ROW_FIGURES]
        raise UseError(
            f"{where}: no figure {name!r}{nearest(name, known)}",
            f"joj list figures names them; NAME{PER_COMMIT} has a NAME{PER_ROW} beside it; what "
            f"power cuts may take is limited by {GUARANTEE} = {Guarantee.DURABLE.value}",
        )
    if found["sign"] == "=":
        raise UseError(f"{where}: {text!r} compares by =", "write <= or >=")
    units = _UNITS[FIGURES[ROW_FIGURES.get(name, name)].unit]
    if not found["value"] or (found["unit"] not in units):
        words = " or ".join(unit for unit in units if unit)
        raise UseError(
            f"{where}: {text!r} has no value in {words or 'plain digits'}",
            f"write {name} {found['sign']} NUMBER {next(iter(units))}".strip(),
        )
    number = found["value"].replace("_", "")
    value: Number = float(number) if "." in number else int(number)
    return Limit(text.strip(), name, value * units[found["unit"]], found["sign"] == ">=")


def _guarantee(text: str, match: re.Match[str], where: str) -> Limit:
    words = [each.value for each in Guarantee if each is not Guarantee.NONE]
    if match["value"] or match["sign"] != "=" or match["unit"] not in words:
        raise UseError(
            f"{where}: {text!r}: a guarantee is {' or '.join(words)}",
            f"write guarantee = {words[0]}",
        )
    return Limit(text.strip(), GUARANTEE, guarantee=Guarantee(match["unit"]))


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
        """Return whether it is about a case with these settings."""
        return selects(self.case, settings)


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
        """Return the path of the bill that was accepted last."""
        return self.path.with_suffix(".accepted.json")


def read_budgets(path: Path) -> Budgets:
    """Read a file of budgets; UseError naming file, entry, value and remedy."""
    _, document = read_toml(path, FORM)
    parsed = check_document(document, _Document, str(path), FORM)
    if not parsed.budget:
        raise UseError(f"{path}: no budget", f"write [[budget]]; {FORM}")
    budgets = tuple(
        _budget(entry, f"{path}: [[budget]] number {number}")
        for number, entry in enumerate(parsed.budget, 1)
    )
    return Budgets(
        path, _experiment_path(path, parsed.experiment), tuple(parsed.set), parsed.states, budgets
    )


def _budget(entry: _Budget, where: str) -> Budget:
    if "variant" in entry.case:
        raise UseError(f"{where}: variant is no field", "choose by the fields that it sets")
    check_selector(entry.case, (), f"{where}: case")
    if not entry.limits:
        raise UseError(f"{where} has no limits", 'write limits = ["bytes_per_commit <= 30 KiB"]')
    return Budget(where, entry.case, tuple(parse_limit(text, where) for text in entry.limits))


def _experiment_path(path: Path, experiment: str) -> str:
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


class AcceptedCase(msgspec.Struct, frozen=True):
    """One case: the fields that it had, its figures, and the lines of its bill."""

    settings: dict[str, str | int]
    figures: dict[str, int | float]
    lines: list[BillLine]


class AcceptedBill(msgspec.Struct, frozen=True):
    """The cases by their names, and the hash of the image that measured them."""

    image: str
    cases: dict[str, AcceptedCase]


def accept(summary: RunSummary) -> AcceptedBill:
    """Return what a run says of its cases."""
    return AcceptedBill(
        str(summary.fingerprint.get("image", "")),
        {
            case.case_id: AcceptedCase(
                dict(case.case), dict(case.figures.median), list(lines_of(case.bill))
            )
            for case in summary.measured_cases
            if case.bill
        },
    )


def read_accepted(path: Path) -> AcceptedBill | None:
    """Return the accepted bill, None where none is kept; UseError for one that cannot be read."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise unreadable(path, error) from error
    except (ValueError, RecursionError) as error:
        raise UseError(f"{path}: not JSON: {error}", "joj gate --accept writes it again") from error
    return check_document(document, AcceptedBill, str(path), "joj gate --accept writes it again")


def write_accepted(path: Path, accepted: AcceptedBill) -> None:
    """Keep an accepted bill; MachineError where that cannot be written."""
    text = json.dumps(msgspec.to_builtins(accepted), indent=1, sort_keys=True, ensure_ascii=False)
    with writable(path, "make room"):
        path.write_text(text + "\n", encoding="utf-8")
