"""The fields that change one key of a device's profile, `device.KEY` and `journal_device.KEY`.

They are the keys of [model] and [cpu] (devices/README.md). They show how much a result depends on a
parameter. A case has only those that were named; the profile gives the rest.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jojlab.device import raw_nand
from jojlab.device.profile import CPU_LIMITS, LIMITS
from jojlab.experiment.fields.field import Field, Value

# The fields that name a profile.
OWNERS = ("device", "journal_device")


def both(
    first: Mapping[str, tuple[int, int]], second: Mapping[str, tuple[int, int]]
) -> dict[str, tuple[int, int]]:
    """Return the keys of both kinds of device; the profile knows which of them are its own."""
    keys = dict.fromkeys((*first, *second))
    of_each = {key: [limits[key] for limits in (first, second) if key in limits] for key in keys}
    return {
        key: (min(low for low, _ in found), max(high for _, high in found))
        for key, found in of_each.items()
    }


# Only the profile of `device` describes the guest's processor.
_KEYS = {"device": {**CPU_LIMITS, **both(raw_nand.LIMITS, LIMITS)}, "journal_device": LIMITS}

DEVICE_FIELDS: tuple[Field, ...] = tuple(
    Field(
        f"{owner}.{key}",
        f"overrides {key} of the profile of {owner}",
        None,
        lowest=least,
        highest=greatest,
    )
    for owner in OWNERS
    for key, (least, greatest) in _KEYS[owner].items()
)


def device_values(settings: Mapping[str, Value], owner: str) -> dict[str, int]:
    """Return the keys that a case changes of the profile of `owner`, with their values."""
    prefix = f"{owner}."
    return {
        name.removeprefix(prefix): int(value)
        for name, value in settings.items()
        if name.startswith(prefix)
    }


def flat(table: Mapping[str, Any]) -> dict[str, Any]:
    """Return a table of an experiment file with device.KEY = ... as the key "device.KEY".

    To TOML, a dotted key without quotes is a table in a table.
    """
    found: dict[str, Any] = {}
    for name, value in table.items():
        if name in OWNERS and isinstance(value, dict):
            found |= {f"{name}.{key}": inner for key, inner in value.items()}
        else:
            found[name] = value
    return found
