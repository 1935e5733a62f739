"""Variants: named sets of field values that an experiment compares, in addition to its matrix.

A [[variant]] names fields of a case by their own names. Every variant is crossed with the axes of
[matrix] that it does not name itself.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from msgspec import Struct

from jojlab.experiment.cases import Case, expand
from jojlab.experiment.input_files import refuse_outside
from jojlab.foundation.document import check_document
from jojlab.foundation.errors import UseError, refuse_unknown
from jojlab.model.device_keys import with_dotted_keys
from jojlab.model.field import Value
from jojlab.model.fields import BY_NAME, field_named

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_+.-]{0,59}")


class _Words(Struct):
    """The keys of an entry besides the fields of a case."""

    name: str = ""
    note: str = ""
    unsafe: str = ""


WORDS = _Words.__struct_fields__


@dataclass(frozen=True)
class Variant:
    """One set of fields. `unsafe` says what a power cut may destroy; empty where nothing."""

    name: str
    fields: Mapping[str, Value]
    note: str = ""
    unsafe: str = ""


def read_variants(entries: Sequence[Mapping[str, Any]], where: str) -> tuple[Variant, ...]:
    """Check the entries [[variant]]; UseError naming file, entry and key."""
    found: dict[str, Variant] = {}
    for number, entry in enumerate(entries, 1):
        place = f"{where}: [[variant]] number {number}"
        variant = _read_variant(entry, place)
        if variant.name in found:
            raise UseError(f"{place}: name {variant.name!r} is there already", "name it otherwise")
        found[variant.name] = variant
    return tuple(found.values())


def _read_variant(entry: Mapping[str, Any], place: str) -> Variant:
    words = check_document(entry, _Words, place, "docs/experiments.md has the form")
    if not NAME.fullmatch(words.name):
        raise UseError(
            f"{place}: name cannot be {words.name!r}",
            "up to 60 letters, digits and _+.- for its cases",
        )
    fields: dict[str, Value] = {}
    for key, value in with_dotted_keys(entry).items():
        if key in WORDS:
            continue
        remedy = f"known: {', '.join(WORDS)}, and the fields of a case"
        refuse_unknown(key, (*WORDS, *BY_NAME), f"{place} has no key {key!r}", remedy)
        fields[key] = field_named(key, place).check(value, place)
        refuse_outside(key, fields[key], place)
    return Variant(words.name, fields, words.note, words.unsafe)


def expand_variants(
    fixed: Mapping[str, Value], matrix: Mapping[str, Sequence[Value]], variants: Sequence[Variant]
) -> list[Case]:
    """Return the cases of every variant, or of the matrix alone where there is no variant."""
    if not variants:
        return expand(fixed, matrix)
    cases = []
    for variant in variants:
        axes = {name: values for name, values in matrix.items() if name not in variant.fields}
        for case in expand({**fixed, **variant.fields}, axes):
            own = f"{variant.name}-{case.case_id}" if axes else variant.name
            cases.append(replace(case, case_id=own, variant=variant.name))
    return cases


def workloads(
    fixed: Mapping[str, Value], matrix: Mapping[str, Sequence[Value]], variants: Sequence[Variant]
) -> list[Value]:
    """Return every workload that the cases may have."""
    default = fixed.get("workload", BY_NAME["workload"].default)
    own = [variant.fields.get("workload") for variant in variants]
    words = list(matrix.get("workload", [default] if default else []))
    return list(dict.fromkeys([*words, *(word for word in own if word is not None)]))


def settle(variants: Sequence[Variant], name: str, values: Sequence[Value]) -> tuple[Variant, ...]:
    """Return the variants once the user has fixed a field to `values`.

    A word chooses: variants that name another one are left out. A number takes the place of what
    a variant says, and so does a text without choices.
    """
    if BY_NAME[name].choices:
        return tuple(v for v in variants if name not in v.fields or v.fields[name] in values)
    return tuple(
        replace(v, fields={key: value for key, value in v.fields.items() if key != name})
        for v in variants
    )


def choose(variants: Sequence[Variant], names: Sequence[str], where: str) -> tuple[Variant, ...]:
    """Return the variants called `names`; UseError with the nearest one for an unknown name."""
    known = {variant.name: variant for variant in variants}
    for name in names:
        remedy = "" if known else "the experiment has no variants"
        refuse_unknown(name, known, f"{where}: no variant {name!r}", remedy)
    return tuple(known[name] for name in names)
