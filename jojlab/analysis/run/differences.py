"""Which parts of two nested records differ? Of fingerprints, and of the settings of cases."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """Return the parts that differ, by dotted name; None stands for a part that is not there."""
    flat_old, flat_new = flatten(old), flatten(new)
    return {
        name: (flat_old.get(name), flat_new.get(name))
        for name in sorted(flat_old.keys() | flat_new.keys())
        if flat_old.get(name) != flat_new.get(name)
    }


def flatten(value: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return nested mappings as one, with dotted names."""
    flat: dict[str, Any] = {}
    for name, part in value.items():
        if isinstance(part, Mapping):
            flat |= flatten(part, f"{prefix}{name}.")
        else:
            flat[f"{prefix}{name}"] = part
    return flat
