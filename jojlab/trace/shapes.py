"""The types of run.json's experiment; they are checked before anything uses them.

Keys that are not listed are let be, except in entries that an author writes: PublishedStatement and
Chart are also what jojlab/experiment reads in [[published]] and [[chart]].
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType, field

from jojlab.foundation.document import Mismatch

# Beyond this a number is no measure of anything, and is more than a float can hold soon after.
LIMIT = 10**18
Number = (
    Annotated[int, Meta(gt=-LIMIT, lt=LIMIT)] | Annotated[float, Meta(gt=-1.0 * LIMIT, lt=LIMIT)]
)
Scalar = str | bool | Number | None
Fields = dict[str, Scalar]
# Which cases: a value of a field, or a list of them.
Selector = dict[str, Scalar | list[Any]]


def selects(selector: Mapping[str, Any], fields: Mapping[str, Any]) -> bool:
    """Return whether fields have the values, or one of the values, that a selector says."""
    return all(
        fields.get(name) in (wanted if isinstance(wanted, list) else [wanted])
        for name, wanted in selector.items()
    )


class PublishedStatement(Struct, kw_only=True, forbid_unknown_fields=True):
    """A statement that others published of some cases; docs/experiments.md has the forms."""

    source: str
    place: str
    figure: str
    unit: str = ""
    says: str = ""
    note: str = ""
    explanation: str = ""
    study_explanation: str = ""
    advice: str = ""
    quote: str = ""
    value: Number | None = None
    status: Literal["stated", "inferred", "missing"] = "stated"
    holds: Literal["above", "below"] | UnsetType = UNSET
    anchor: bool = False
    case: Selector = {}
    against: Selector | UnsetType = UNSET
    other_change: Selector | UnsetType = field(default=UNSET, name="than")

    def __post_init__(self) -> None:
        """Check that the keys make one of the forms."""
        missing, bound = self.status == "missing", self.holds is not UNSET
        if missing and self.value is not None:
            raise Mismatch("a missing value is given", "drop value, or the status")
        if not missing and not bound and self.value is None:
            raise Mismatch("lacks value", 'give it, or status = "missing"')
        if self.against is UNSET:
            for key, value in (("holds", self.holds), ("than", self.other_change)):
                if value is not UNSET:
                    raise Mismatch(f"{key} without against", "say against which cases")
            return
        if self.other_change is not UNSET and (self.value is not None or not bound):
            raise Mismatch(
                "than compares two changes", 'with holds = "above" or "below", and no value'
            )
        if self.case == self.against:
            raise Mismatch("case and against are the same", "name what they differ in")
        if self.value is None:
            return
        if self.unit not in ("%", "times"):
            raise Mismatch(
                f"the unit of a change cannot be {self.unit!r}", 'unit = "%" or unit = "times"'
            )
        if self.value <= (-100 if self.unit == "%" else 0):
            raise Mismatch(f"a change of {self.value} {self.unit} leaves nothing", "correct value")


class Chart(Struct, kw_only=True, forbid_unknown_fields=True):
    """A chart of some cases; jojlab/experiment/published.py says what its keys mean."""

    title: str
    figure: str
    groups: str
    bars: str = ""
    panels: str = ""
    case: Selector = {}


class TableColumn(Struct, forbid_unknown_fields=True):
    """A column of a published table: the cases of its cells, and their figure if it is its own."""

    name: str
    figure: str = ""
    case: Selector = {}


class TableRow(Struct, forbid_unknown_fields=True):
    """A row of a published table: the cases of its cells, and what was printed in each column."""

    name: str
    values: list[Number]
    case: Selector = {}


class TableGroup(Struct, forbid_unknown_fields=True):
    """Rows that a published table has a mean of."""

    name: str
    rows: list[TableRow]
    case: Selector = {}
    note: str = ""


class PublishedTable(Struct, kw_only=True, forbid_unknown_fields=True):
    """A table of changes in per cent, as it was printed; docs/experiments.md has the form."""

    source: str
    place: str
    title: str
    figure: str
    against: Selector
    columns: list[TableColumn]
    group: list[TableGroup]

    def __post_init__(self) -> None:
        """Check that every row has a value for each column."""
        for group in self.group:
            for row in group.rows:
                if len(row.values) != len(self.columns):
                    sentence = f"{group.name}, {row.name} has {len(row.values)} values"
                    raise Mismatch(sentence, f"one for each of the {len(self.columns)} columns")


class StoredVariant(Struct):
    """A variant, and the case_ids of its cases."""

    name: str
    note: str
    unsafe: str
    fields: Fields
    cases: list[str]


class Settings(Struct):
    """The fields that have one value in all cases, and those that the experiment varies."""

    fixed: Fields = {}
    matrix: dict[str, list[Scalar]] = {}


class StoredExperiment(Struct):
    """The experiment of a run, as run.json has it."""

    name: str = ""
    question: str = ""
    notes: list[str] = []
    published: list[PublishedStatement] = []
    charts: list[Chart] = []
    tables: list[PublishedTable] = []
    cases: list[str] = []
    altered: list[str] = []
    variants: list[StoredVariant] = []
    settings: Settings = field(default_factory=Settings)
    parts: list[StoredExperiment] = []
