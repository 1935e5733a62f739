"""What types run.json and a manifest have, and where: checked before anything is made of them.

A shape is a type, a tuple of types, a set of words, [shape] for a list of such, {"key": shape} for
an object, or {} for any object. A key that ends in "!" must be there; others that are not there are
left to the reader, and further ones are let be.
"""

from __future__ import annotations

from typing import Any

_SCALAR = (str, int, float, bool, type(None))
_FIELDS: dict[str, Any] = {"*": _SCALAR}
# Which cases: a value of a field, or a list of them.
_SELECTOR: dict[str, Any] = {"*": (*_SCALAR, list)}

_PUBLISHED: dict[str, Any] = {
    **dict.fromkeys(("source!", "place!", "figure!"), str),
    **dict.fromkeys(("unit", "says", "note", "explanation", "quote"), str),
    "status": {"stated", "inferred", "missing"},
    "holds": {"above", "below"},
    **dict.fromkeys(("case", "against", "than"), _SELECTOR),
    "value": (int, float, type(None)),
    "anchor": bool,
}
_CHART: dict[str, Any] = {
    **dict.fromkeys(("title!", "figure!", "groups!", "bars", "panels"), str),
    "case": _SELECTOR,
}
_VARIANT: dict[str, Any] = {
    **dict.fromkeys(("name!", "note!", "unsafe!"), str),
    "fields!": _FIELDS,
    "cases!": [str],
}

_EXPERIMENT: dict[str, Any] = {
    "name": str,
    "question": str,
    "notes": [str],
    "published": [_PUBLISHED],
    "charts": [_CHART],
    "cases": [str],
    "altered": [str],
    "variants": [_VARIANT],
    "settings": {"fixed": _FIELDS, "matrix": {"*": [_SCALAR]}},
}
_EXPERIMENT["parts"] = [_EXPERIMENT]

RUN: dict[str, Any] = {
    "schema_version": int,
    "experiment": _EXPERIMENT,
    "seeds": [int],
    "cases": [
        {
            "case_id": str,
            "case": _FIELDS,
            "status": str,
            "reason": str,
            "captures": [{"seed": int, "folder": str, "cached": bool}],
        }
    ],
    "fingerprint": {},
}

MANIFEST: dict[str, Any] = {
    "seed": int,
    "clock": str,
    "lost_events": int,
    "unattributed_bytes": int,
    "incomplete": bool,
    "traced": bool,
    "incomplete_reasons": [str],
    "untimed_requests": int,
    "totals": {
        "exact!": bool,
        "bios_without_rows!": int,
        "sums!": [
            {
                "device!": str,
                "operation!": str,
                "block_type!": str,
                "bytes!": int,
                "bytes_without_rows!": int,
            }
        ],
    },
    "phases": [{"name!": str, "begin_ns!": int, "end_ns!": int}],
}

_WORDS = {str: "text", int: "a whole number", bool: "true or false"}
# Beyond this a number is no measure of anything, and is more than a float can hold soon after.
_LIMIT = 1e18


def check_shape(value: object, shape: Any, place: str = "") -> None:
    """Raise ValueError, naming the place, where `value` is not of `shape`."""
    if isinstance(shape, list):
        if not isinstance(value, list):
            raise ValueError(f"{place} is no list")
        for number, element in enumerate(value):
            check_shape(element, shape[0], f"{place}[{number}]")
    elif isinstance(shape, dict):
        if not isinstance(value, dict):
            raise ValueError(f"{place or 'the whole'} is no object")
        for key in shape:
            if key.endswith("!") and key[:-1] not in value:
                raise ValueError(f"{place} has no {key[:-1]}")
        for key, element in value.items():
            inner = shape.get(key, shape.get(f"{key}!", shape.get("*")))
            if inner is not None:
                check_shape(element, inner, f"{place}.{key}".lstrip("."))
        if shape is _PUBLISHED:
            _check_statement(value, place)
    elif isinstance(shape, set):
        if not isinstance(value, str) or value not in shape:
            raise ValueError(f"{place} is none of {', '.join(sorted(shape))}")
    elif isinstance(shape, tuple):
        if not isinstance(value, shape):
            raise ValueError(f"{place} is no {_kind(shape)}")
        if isinstance(value, int | float) and not abs(value) < _LIMIT:
            raise ValueError(f"{place} is no number of a measure: {value}")
    elif type(value) is not shape:  # a bool is an int to isinstance()
        raise ValueError(f"{place} is not {_WORDS[shape]}")


def _check_statement(entry: dict[str, Any], place: str) -> None:
    """Raise ValueError where a statement states nothing (docs/experiments.md has its forms)."""
    if entry.get("status") != "missing" and "holds" not in entry and entry.get("value") is None:
        raise ValueError(f"{place} has no value")
    if "against" not in entry:
        if "holds" in entry:
            raise ValueError(f"{place} has holds without against")
        return
    least = -100 if entry.get("unit") == "%" else 0
    if (entry.get("value") or least + 1) <= least:
        raise ValueError(f"{place}: a change of {entry['value']} leaves nothing")


def _kind(shape: tuple[type, ...]) -> str:
    return "single value" if str in shape else "number"
