"""Reads experiment files: TOML to a checked Experiment. Whatever is unknown is an error."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from jojlab.errors import UseError
from jojlab.experiment.cases import Case, expand, refuse_alone, refuse_useless
from jojlab.experiment.fields import BY_NAME, FIELDS, Value, field_named, nearest

ROOT = Path(__file__).resolve().parents[2]
EXPERIMENTS = ROOT / "experiments"

TOP_LEVEL = ("question", "seed", "seeds", "device", "filesystem", "workload", "matrix", "published")
PUBLISHED = ("source", "place", "figure", "value", "unit", "note", "case")
# Fields of which a case has one.
ALTERNATIVES = {"transactions": "duration_ms", "duration_ms": "transactions"}
MAX_SEEDS = 1000
MAX_CASES = 10_000


@dataclass(frozen=True)
class Experiment:
    """A question and the cases that answer it. `text` is the file as it was read."""

    name: str
    question: str
    seeds: tuple[int, ...]
    fixed: Mapping[str, Value]
    matrix: Mapping[str, tuple[Value, ...]]
    published: tuple[Mapping[str, Any], ...] = ()
    text: str = ""
    where: str = ""
    cases: tuple[Case, ...] = field(default=(), compare=False)

    def expanded(self) -> Experiment:
        """Return the experiment with its cases; UseError when none of them can be run."""
        count = 1
        for values in self.matrix.values():
            count *= len(values)
        if count > MAX_CASES:
            raise UseError(f"{self.where}: {count} cases", f"at most {MAX_CASES} in one experiment")
        refuse_useless(self.fixed, self.matrix, self.where)
        cases = expand(self.fixed, self.matrix)
        refuse_alone(cases, self.where)
        return replace(self, cases=tuple(cases))

    def record(self) -> dict[str, Any]:
        """What run.json keeps of it."""
        return {
            "name": self.name,
            "question": self.question,
            "published": [dict(entry) for entry in self.published],
            "settings": {
                "fixed": dict(self.fixed),
                "matrix": {k: list(v) for k, v in self.matrix.items()},
            },
        }


def find(name: str) -> Path:
    """Return the experiment file that `name` means: a file, a folder with experiment.toml in it,
    or the name of one in experiments/. UseError naming the nearest one otherwise.
    """
    given = Path(name)
    for path in (given, given / "experiment.toml", EXPERIMENTS / given.name / "experiment.toml"):
        if path.is_file():
            return path
    known = sorted(path.parent.name for path in EXPERIMENTS.glob("*/experiment.toml"))
    raise UseError(
        f"{name}: no such experiment{nearest(given.name, known)}",
        f"name a file, or one of: {', '.join(known)}",
    )


def read(path: Path, settings: Sequence[str] = ()) -> Experiment:
    """Read an experiment file and apply `--set KEY=VALUE` changes; expand its cases.

    Raises UseError naming file, key and remedy.
    """
    where = str(path)
    try:
        text = path.read_text(encoding="utf-8")
        document = tomllib.loads(text)
    except OSError as error:
        raise UseError(
            f"{where}: cannot be read: {error.strerror}", "name a readable file"
        ) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UseError(f"{where}: not TOML: {error}", "see CONTRIBUTING.md for the form") from error
    name = path.parent.name if path.name == "experiment.toml" else path.stem
    return apply(parse(document, name, text, where), settings).expanded()


def parse(document: Mapping[str, Any], name: str, text: str, where: str) -> Experiment:
    """Check a parsed document; see read()."""
    for key in document:
        if key not in TOP_LEVEL:
            hint = nearest(key, (*TOP_LEVEL, *BY_NAME))
            raise UseError(f"{where}: unknown key {key!r}{hint}", f"known: {', '.join(TOP_LEVEL)}")
    question = document.get("question")
    if not isinstance(question, str) or not question.strip():
        raise UseError(f"{where}: question is missing", 'begin the file with question = "..."')
    fixed = _fixed(document, where)
    matrix = _matrix(_table(document, "matrix", where), where)
    for twice in fixed.keys() & matrix.keys():
        table = BY_NAME[twice].key[0]
        raise UseError(f"{where}: {twice} stands in [{table}] and in [matrix]", "drop one of them")
    return Experiment(
        name=name,
        question=question,
        seeds=_seeds(document.get("seed", 1), document.get("seeds", 1), where),
        fixed=fixed,
        matrix=matrix,
        published=tuple(_published(document.get("published", []), where)),
        text=text,
        where=where,
    )


def _seeds(first: object, count: object, where: str) -> tuple[int, ...]:
    for key, value, lowest in (("seed", first, 0), ("seeds", count, 1)):
        if not isinstance(value, int) or isinstance(value, bool) or value < lowest:
            raise UseError(f"{where}: {key} must be a whole number, not {value!r}", f">= {lowest}")
    assert isinstance(first, int) and isinstance(count, int)
    if count > MAX_SEEDS or first > 2**32:
        raise UseError(f"{where}: seed = {first}, seeds = {count} is too large", "use fewer seeds")
    return tuple(range(first, first + count))


def _table(document: Mapping[str, Any], name: str, where: str) -> Mapping[str, Any]:
    table = document.get(name, {})
    if not isinstance(table, dict):
        raise UseError(f"{where}: {name} must be a table", f"write [{name}] on a line of its own")
    return table


def _fixed(document: Mapping[str, Any], where: str) -> dict[str, Value]:
    """Read the tables that hold one value a field."""
    places = {known.key: known for known in FIELDS}
    fixed: dict[str, Value] = {}
    for table in ("device", "filesystem", "workload"):
        keys = [key for place, key in places if place == table]
        for key, value in _table(document, table, where).items():
            known = places.get((table, key))
            if known is None:
                hint = nearest(key, keys)
                raise UseError(
                    f"{where}: [{table}] has no key {key!r}{hint}", f"known: {', '.join(keys)}"
                )
            if isinstance(value, list):
                raise UseError(
                    f"{where}: [{table}] {key} has several values", f"put {known.name} in [matrix]"
                )
            fixed[known.name] = known.check(value, f"{where}: [{table}]")
    return fixed


def _matrix(table: Mapping[str, Any], where: str) -> dict[str, tuple[Value, ...]]:
    where = f"{where}: [matrix]"
    matrix: dict[str, tuple[Value, ...]] = {}
    for name, values in table.items():
        known = field_named(name, where)
        if not isinstance(values, list) or not values:
            raise UseError(f"{where} {name} must be a list", f'{name} = ["...", "..."]')
        checked = tuple(known.check(value, where) for value in values)
        if len(set(checked)) < len(checked):
            raise UseError(f"{where} {name} names a value twice", "name each value once")
        matrix[name] = checked
    return matrix


def _published(entries: object, where: str) -> list[Mapping[str, Any]]:
    if not isinstance(entries, list):
        raise UseError(f"{where}: published must be a list of tables", "write [[published]]")
    for number, entry in enumerate(entries, 1):
        place = f"{where}: [[published]] number {number}"
        if not isinstance(entry, dict):
            raise UseError(f"{place} is no table", "write [[published]]")
        for key in entry:
            if key not in PUBLISHED:
                raise UseError(
                    f"{place} has no key {key!r}{nearest(key, PUBLISHED)}",
                    f"known: {', '.join(PUBLISHED)}",
                )
        for key in ("source", "place", "figure", "value"):
            if key not in entry:
                raise UseError(f"{place} lacks {key}", "say what was printed, and where")
        for name, value in _table(entry, "case", place).items():
            field_named(name, place).check(value, place)
    return entries


def apply(experiment: Experiment, settings: Sequence[str]) -> Experiment:
    """Apply `KEY=VALUE` changes in order; `KEY=A,B` makes a matrix axis of the field."""
    fixed, matrix, seeds = dict(experiment.fixed), dict(experiment.matrix), experiment.seeds
    for setting in settings:
        name, equals, text = setting.partition("=")
        if not equals:
            raise UseError(f"--set {setting}: no value", "--set KEY=VALUE")
        where = f"--set {setting}"
        if name in ("seed", "seeds"):
            if not text.isdigit():
                raise UseError(f"{where}: {name} must be a whole number", "digits only")
            first, count = (int(text), len(seeds)) if name == "seed" else (seeds[0], int(text))
            seeds = _seeds(first, count, where)
            continue
        known = field_named(name, where)
        # What the file said of the alternative no longer holds.
        if other := ALTERNATIVES.get(name):
            fixed.pop(other, None)
            matrix.pop(other, None)
        # A list of mount options has commas of its own.
        texts = [text] if name == "mount_options" else text.split(",")
        values = tuple(known.parse(part, where) for part in texts)
        if len(set(values)) < len(values):
            raise UseError(f"{where}: a value is named twice", "name each value once")
        if len(values) > 1:
            fixed.pop(name, None)
            matrix[name] = values
        else:
            matrix.pop(name, None)
            fixed[name] = values[0]
    return replace(experiment, fixed=fixed, matrix=matrix, seeds=seeds)
