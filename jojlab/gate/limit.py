"""One limit of a budget: "bytes_per_commit <= 30 KiB", "survives = durable".

Reads its text; gives the figure, what it is compared with, and how. A limit has no tolerance: the
same case gives the same numbers, to the bit, on every machine.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from jojlab.analysis.run.risks import Guarantee
from jojlab.foundation.errors import UseError
from jojlab.foundation.printable import nearest
from jojlab.model.figures import FIGURES, Number, Unit

SURVIVES = "survives"
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
    """`name` is a figure, one of ROW_FIGURES, or "survives". `bound` is in the figure's unit and is
    None of a guarantee; `is_least` tells >= from <=.
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
        """Whether a value of the figure keeps the limit."""
        assert self.bound is not None
        return value >= self.bound if self.is_least else value <= self.bound


def parse_limit(text: str, where: str) -> Limit:
    """Return the limit that a text states; UseError naming what is wrong and what would do."""
    found = _LIMIT.fullmatch(text)
    if not found or not (found["value"] or found["unit"]):
        raise UseError(
            f"{where}: {text!r} is no limit",
            'write one as "bytes_per_commit <= 30 KiB" or "survives = durable"',
        )
    name = found["name"]
    if name == SURVIVES:
        return _guarantee(text, found, where)
    if name not in FIGURES and name not in ROW_FIGURES:
        known = [SURVIVES, *FIGURES, *ROW_FIGURES]
        raise UseError(
            f"{where}: no figure {name!r}{nearest(name, known)}",
            f"joj list figures names them; NAME{PER_COMMIT} has a NAME{PER_ROW} beside it",
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


def _guarantee(text: str, found: re.Match[str], where: str) -> Limit:
    words = [each.value for each in Guarantee if each is not Guarantee.NONE]
    if found["value"] or found["sign"] != "=" or found["unit"] not in words:
        raise UseError(
            f"{where}: {text!r}: what survives is {' or '.join(words)}",
            f"write survives = {words[0]}",
        )
    return Limit(text.strip(), SURVIVES, guarantee=Guarantee(found["unit"]))
