"""Reads experiment files: TOML to a checked Experiment. Anything unknown is an error."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from msgspec import Struct

from jojlab.experiment.cases import Case, refuse_alone, refuse_useless
from jojlab.experiment.input_files import input_files, refuse_outside
from jojlab.experiment.published import check_charts, check_published, check_tables, refuse_idle
from jojlab.experiment.variants import (
    Variant,
    choose,
    expand_variants,
    read_variants,
    settle,
    workloads,
)
from jojlab.foundation.document import check_document, read_toml
from jojlab.foundation.errors import UseError
from jojlab.foundation.places import EXPERIMENTS
from jojlab.foundation.printable import nearest
from jojlab.model.device_keys import with_dotted_keys
from jojlab.model.field import Value
from jojlab.model.fields import BY_NAME, MAX_SEED, field_named
from jojlab.model.software import SET_FIELDS, SOFTWARE, STUDY

CASES = ("case", "matrix", "variant", "published", "table", "chart")
FORM = "docs/experiments.md has the form"
# Tables of an older form, with the names that three fields had in them.
DROPPED = {
    "device": {"profile": "device", "journal_profile": "journal_device"},
    "filesystem": {"kind": "filesystem"},
    "workload": {"kind": "workload"},
}
# Fields of which a case has one.
ALTERNATIVES = {"transactions": "duration_ms", "duration_ms": "transactions"}
# Fields whose values have commas of their own: --set gives them one value.
WITH_COMMAS = ("mkfs_options", "mount_options")
MAX_SEEDS = 1000
MAX_CASES = 10_000


class _Part(Struct, forbid_unknown_fields=True):
    """An entry [[part]]: an experiment, and changes as of `--set`."""

    experiment: str
    set: list[str] = []


class _Document(Struct, forbid_unknown_fields=True):
    """An experiment file; what stands in its tables is checked with the fields of a case."""

    question: str = ""
    seed: int = 1
    seeds: int = 1
    notes: list[str] = []
    case: dict[str, Any] = {}
    matrix: dict[str, Any] = {}
    variant: list[dict[str, Any]] = []
    published: list[dict[str, Any]] = []
    chart: list[dict[str, Any]] = []
    table: list[dict[str, Any]] = []
    part: list[_Part] = []


# What makes a case the one that it is: its variant, and all of its fields.
Identity = tuple[str, frozenset[tuple[str, Value]]]


def _identity(case: Case) -> Identity:
    return case.variant, frozenset(case.settings.items())


@dataclass(frozen=True)
class Experiment:
    """A question and the cases that answer it. `text` is the file as it was read, and `folder` is
    where the files are that it names.

    One with `parts` has no cases of its own: it runs those of other experiments as one.
    """

    name: str
    question: str
    seeds: tuple[int, ...]
    fixed: Mapping[str, Value]
    matrix: Mapping[str, tuple[Value, ...]]
    variants: tuple[Variant, ...] = ()
    published: tuple[Mapping[str, Any], ...] = ()
    charts: tuple[Mapping[str, Any], ...] = ()
    tables: tuple[Mapping[str, Any], ...] = ()
    notes: tuple[str, ...] = ()
    parts: tuple[Experiment, ...] = ()
    text: str = ""
    where: str = ""
    folder: Path = Path()
    prefix: str = ""
    cases: tuple[Case, ...] = field(default=(), compare=False)
    # The cases of the file itself, of which [[published]] speaks; None: the experiment has no file.
    own: frozenset[Identity] | None = None

    def expand(self) -> Experiment:
        """Return the experiment with its cases, or raise UseError when none of them can be run."""
        if self.parts:
            # Among the cases of others, those of a part are named after it.
            named = (replace(part, prefix=f"{part.name}/") for part in self.parts)
            parts = tuple(part.expand() for part in named)
            return replace(self, parts=parts, cases=tuple(c for part in parts for c in part.cases))
        count = max(1, len(self.variants))
        for values in self.matrix.values():
            count *= len(values)
        if count > MAX_CASES:
            raise UseError(f"{self.where}: {count} cases", f"at most {MAX_CASES} in one experiment")
        counts = {name: 0 for variant in self.variants for name in variant.fields}
        words = workloads(self.fixed, self.matrix, self.variants)
        refuse_useless([*self.fixed, *self.matrix, *counts], words, self.where)
        cases = expand_variants(self.fixed, self.matrix, self.variants)
        refuse_alone(cases, self.where)
        cases = [
            replace(
                case,
                case_id=f"{self.prefix}{case.case_id}",
                inputs=input_files(case.settings, self.folder, self.where),
            )
            for case in cases
        ]
        return replace(self, cases=tuple(cases))

    def record(self) -> dict[str, Any]:
        """Return what run.json keeps of it."""
        return {
            "name": self.name,
            "question": self.question,
            "notes": list(self.notes),
            "published": [dict(entry) for entry in self.published],
            "charts": [dict(entry) for entry in self.charts],
            "tables": [dict(entry) for entry in self.tables],
            "cases": [case.case_id for case in self.cases],
            # Cases that --set made: nothing that was published speaks of them.
            "altered": [
                case.case_id
                for case in self.cases
                if self.own is not None and _identity(case) not in self.own
            ],
            "variants": [
                {**vars(v), "cases": [c.case_id for c in self.cases if c.variant == v.name]}
                for v in self.variants
            ],
            "settings": {
                "fixed": dict(self.fixed),
                "matrix": {k: list(v) for k, v in self.matrix.items()},
            },
            "parts": [part.record() for part in self.parts],
        }


def find(name: str) -> Path:
    """Return the experiment file that `name` means: a file, a folder with experiment.toml in it,
    or the name of one in experiments/. UseError naming the nearest one otherwise.
    """
    place = Path(name)
    for path in (place, place / "experiment.toml", EXPERIMENTS / place.name / "experiment.toml"):
        with contextlib.suppress(OSError):  # a name too long, a folder that may not be looked into
            if path.is_file():
                return path
    known = sorted(path.parent.name for path in EXPERIMENTS.glob("*/experiment.toml"))
    raise UseError(
        f"{name or 'an empty name'}: no such experiment{nearest(place.name, known)}",
        f"name a file, or one of: {', '.join(known)}",
    )


def read(path: Path, settings: Sequence[str] = ()) -> Experiment:
    """Read an experiment file and apply `--set KEY=VALUE` changes; expand its cases.

    Raises UseError naming file, key and remedy.
    """
    experiment = _load(path)
    if experiment.parts:
        experiment = replace(
            experiment, parts=tuple(_with_own_cases(part) for part in experiment.parts)
        )
    return apply(_with_own_cases(experiment), settings).expand()


def _with_own_cases(experiment: Experiment) -> Experiment:
    """Remember the cases that what was published is about; UseError where it is about none."""
    if not (experiment.published or experiment.tables):
        return experiment
    cases = experiment.expand().cases
    refuse_idle(experiment.published, experiment.tables, cases, experiment.where)
    return replace(experiment, own=frozenset(map(_identity, cases)))


def _load(path: Path, part_of: str = "") -> Experiment:
    """Read one file; `part_of` is where a [[part]] names it, which may have no parts itself."""
    text, document = read_toml(path, FORM)
    # Of "experiment.toml" alone, or "..": the name of the folder that it is in.
    folder = path.resolve().parent.name or "experiment"
    name = folder if path.name == "experiment.toml" else path.stem
    if part_of and "part" in document:
        raise UseError(f"{part_of}: {name} has parts itself", "name those instead")
    return replace(parse(document, name, text, str(path)), folder=path.parent)


def parse(document: Mapping[str, Any], name: str, text: str, where: str) -> Experiment:
    """Check a parsed document; see read()."""
    for key in DROPPED:
        if isinstance(table := document.get(key), dict):
            raise UseError(f"{where}: [{key}] is no table", _as_case(key, table))
    parsed = check_document(document, _Document, where, FORM)
    if not parsed.question.strip():
        raise UseError(f"{where}: question is missing", 'begin the file with question = "..."')
    seeds, notes = _seeds(parsed.seed, parsed.seeds, where), tuple(parsed.notes)
    if "part" in document:
        parts = tuple(replace(part, seeds=seeds) for part in _parts(document, parsed.part, where))
        return Experiment(name, parsed.question, seeds, {}, {}, notes=notes, parts=parts, text=text,
                          where=where)  # fmt: skip
    fixed = _read_fixed_fields(parsed.case, f"{where}: [case]")
    matrix = _matrix(parsed.matrix, where)
    variants = read_variants(parsed.variant, where)
    for twice in fixed.keys() & matrix.keys():
        raise UseError(f"{where}: {twice} stands in [case] and in [matrix]", "drop one of them")
    names = [variant.name for variant in variants]
    check_published(parsed.published, names, where)
    check_charts(parsed.chart, names, where)
    check_tables(parsed.table, names, where)
    return Experiment(
        name=name,
        question=parsed.question,
        seeds=seeds,
        fixed=fixed,
        matrix=matrix,
        variants=variants,
        published=tuple(parsed.published),
        charts=tuple(parsed.chart),
        tables=tuple(parsed.table),
        notes=notes,
        text=text,
        where=where,
    )


def _parts(document: Mapping[str, Any], entries: Sequence[_Part], where: str) -> list[Experiment]:
    """Read the experiments that [[part]] names."""
    for key in CASES:
        if key in document:
            raise UseError(f"{where}: {key} beside [[part]]", "an experiment has cases or parts")
    if not entries:
        raise UseError(f"{where}: part is empty", "write [[part]]")
    parts: dict[str, Experiment] = {}
    for number, entry in enumerate(entries, 1):
        place = f"{where}: [[part]] number {number}"
        with _error_place(place):
            path = find(entry.experiment)
        part = _load(path, place)
        with _error_place(place):
            part = apply(part, entry.set)
        if part.name in parts:
            raise UseError(f"{place}: {part.name} is named twice", "name each part once")
        parts[part.name] = part
    return list(parts.values())


@contextlib.contextmanager
def _error_place(place: str) -> Iterator[None]:
    """Raise what is refused with the place that asks for it."""
    try:
        yield
    except UseError as error:
        raise UseError(f"{place}: {error.message}", error.remedy) from error


def _seeds(first: int, count: int, where: str) -> tuple[int, ...]:
    for key, value, lowest in (("seed", first, 0), ("seeds", count, 1)):
        if value < lowest:
            raise UseError(f"{where}: {key} must be {lowest} or more, not {value}", f">= {lowest}")
    if count > MAX_SEEDS or first > MAX_SEED:
        raise UseError(f"{where}: seed = {first}, seeds = {count} is too large", "use fewer seeds")
    return tuple(range(first, first + count))


def _read_fixed_fields(table: Mapping[str, Any], where: str) -> dict[str, Value]:
    """Read the fields that have one value."""
    fixed: dict[str, Value] = {}
    for name, value in with_dotted_keys(table).items():
        known = field_named(name, where)
        if isinstance(value, list):
            remedy = f"put {name} in [matrix]"
            if known.is_list:
                remedy = f"write one text, quoted as in a shell; or, to compare them, {remedy}"
            raise UseError(f"{where} {name} has several values", remedy)
        fixed[name] = known.check(value, where)
        refuse_outside(name, fixed[name], where)
    return fixed


def _as_case(table: str, dropped: Mapping[str, Any]) -> str:
    """Say how to write the fields of a dropped table."""
    names = [DROPPED[table].get(key, key) for key in dropped if key in (*DROPPED[table], *BY_NAME)]
    return (
        "fields that have one value stand in [case], each by its own name: "
        f"{', '.join(names) or 'docs/experiments.md says which'}"
    )


def _matrix(table: Mapping[str, Any], where: str) -> dict[str, tuple[Value, ...]]:
    where = f"{where}: [matrix]"
    matrix: dict[str, tuple[Value, ...]] = {}
    for name, values in with_dotted_keys(table).items():
        known = field_named(name, where)
        if not isinstance(values, list) or not values:
            raise UseError(f"{where} {name} must be a list", f'{name} = ["...", "..."]')
        checked = tuple(known.check(value, where) for value in values)
        if len(set(checked)) < len(checked):
            raise UseError(f"{where} {name} names a value twice", "name each value once")
        for value in checked:
            refuse_outside(name, value, where)
        matrix[name] = checked
    return matrix


def apply(experiment: Experiment, settings: Sequence[str]) -> Experiment:
    """Apply `KEY=VALUE` changes in order; `KEY=A,B` makes a matrix axis of the field.

    `variant=A,B` chooses among the variants. Parts are changed each.
    """
    if experiment.parts:
        parts = tuple(apply(part, settings) for part in experiment.parts)
        return replace(experiment, parts=parts, seeds=parts[0].seeds)
    variants = experiment.variants
    fixed, matrix, seeds = dict(experiment.fixed), dict(experiment.matrix), experiment.seeds
    if any(re.fullmatch(f"{SOFTWARE.name}=.*{STUDY}.*", setting) for setting in settings):
        # What the file says of these fields is said of other software.
        for name in SET_FIELDS:
            fixed.pop(name, None)
            matrix.pop(name, None)
    for setting in settings:
        name, equals, text = setting.partition("=")
        if not equals:
            raise UseError(f"--set {setting}: no value", "--set KEY=VALUE")
        where = f"--set {setting}"
        if name in ("seed", "seeds"):
            if not re.fullmatch("[0-9]{1,30}", text):
                raise UseError(f"{where}: {name} must be a whole number", "30 digits at most")
            first, count = (int(text), len(seeds)) if name == "seed" else (seeds[0], int(text))
            seeds = _seeds(first, count, where)
            continue
        if name == "variant":
            variants = choose(variants, text.split(","), where)
            continue
        known = field_named(name, where)
        # What the file said of the alternative no longer holds.
        if other := ALTERNATIVES.get(name):
            fixed.pop(other, None)
            matrix.pop(other, None)
        texts = [text] if name in WITH_COMMAS else text.split(",")
        values = tuple(known.parse(part, where) for part in texts)
        if len(set(values)) < len(values):
            raise UseError(f"{where}: a value is named twice", "name each value once")
        had = bool(variants)
        variants = settle(variants, name, values)
        if had and not variants:
            raise UseError(f"{where}: no variant is left", "name a value that one of them has")
        if len(values) > 1:
            fixed.pop(name, None)
            matrix[name] = values
        else:
            matrix.pop(name, None)
            fixed[name] = values[0]
    return replace(experiment, fixed=fixed, matrix=matrix, variants=variants, seeds=seeds)
