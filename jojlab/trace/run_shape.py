"""What types run.json has, and where: checked before anything is made of it.

A shape is a type, [shape] for a list of such, {"key": shape} for an object (keys that are not there
are left to the reader, further ones are let be), or {} for any object.
"""

from __future__ import annotations

from typing import Any

_SCALAR = (str, int, float, bool, type(None))
_FIELDS: dict[str, Any] = {"*": _SCALAR}

_EXPERIMENT: dict[str, Any] = {
    "name": str,
    "question": str,
    "notes": [str],
    "published": [{}],
    "charts": [{}],
    "cases": [str],
    "variants": [{"name": str, "note": str, "unsafe": str, "fields": _FIELDS, "cases": [str]}],
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

_WORDS = {str: "text", int: "a whole number", bool: "true or false"}


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
        for key, element in value.items():
            inner = shape.get(key, shape.get("*"))
            if inner is not None:
                check_shape(element, inner, f"{place}.{key}".lstrip("."))
    elif isinstance(shape, tuple):
        if not isinstance(value, shape):
            raise ValueError(f"{place} is no single value")
    elif type(value) is not shape:  # a bool is an int to isinstance()
        raise ValueError(f"{place} is not {_WORDS[shape]}")
