"""The parameters of modelled devices with their limits, and the fields that change one of them.

`device.KEY` and `journal_device.KEY` change one key of [model] or [cpu] of a device's profile
(devices/README.md), within the limits that the model's own header states. They show how much a
result depends on a parameter. A case has only those that were named; the profile gives the rest.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from jojlab.foundation.places import KERNEL
from jojlab.model.field import Changes, Field, Value

# The fields that name a profile.
OWNERS = ("device", "journal_device")

_PARAMETER = re.compile(r"^\tP\((\w+), +(\d+), +(\d+)\)", re.MULTILINE)


def _read_limits(header: str) -> Mapping[str, tuple[int, int]]:
    """Return the least and greatest value of each parameter that a model's header lists, in its
    order.
    """
    rows = _PARAMETER.findall((KERNEL / header).read_text(encoding="utf-8"))
    return MappingProxyType({name: (int(least), int(greatest)) for name, least, greatest in rows})


LIMITS = _read_limits("flash/model/flash_config.h")
# What not every device has: a profile may leave these keys out, and then they are 0.
MECHANISMS = tuple(LIMITS)[tuple(LIMITS).index("flush_lies") :]
CPU_LIMITS: Mapping[str, tuple[int, int]] = MappingProxyType({"icount_shift": (0, 9)})
# Why a limit is where it is, for those who meet it. Measured of the greatest shift: a guest of
# 2^10 ns an instruction has 3,906 of them from one timer tick to the next, and does not boot.
REASONS = {
    "icount_shift": "beyond, the guest's kernel spends all its time on its timer tick of 4 ms"
}


RAW_NAND_LIMITS = _read_limits("nand/model/raw_nand.h")
# Errors, off where a profile leaves them out.
RAW_NAND_MECHANISMS = tuple(RAW_NAND_LIMITS)[tuple(RAW_NAND_LIMITS).index("factory_bad_blocks") :]


def _merge(
    first: Mapping[str, tuple[int, int]], second: Mapping[str, tuple[int, int]]
) -> dict[str, tuple[int, int]]:
    """Return the keys of both kinds of device; the profile knows which of them are its own."""
    merged = {**first, **second}
    for key in first.keys() & second.keys():
        lows, highs = zip(first[key], second[key], strict=True)
        merged[key] = min(lows), max(highs)
    return merged


# Only the profile of `device` describes the guest's processor.
_KEYS = {"device": {**CPU_LIMITS, **_merge(RAW_NAND_LIMITS, LIMITS)}, "journal_device": LIMITS}

DEVICE_FIELDS: tuple[Field, ...] = tuple(
    Field(
        f"{owner}.{key}",
        f"overrides {key} of the profile of {owner}",
        None,
        limits=limits,
        changes=Changes.TARGET,
    )
    for owner in OWNERS
    for key, limits in _KEYS[owner].items()
)


def device_values(settings: Mapping[str, Value], owner: str) -> dict[str, int]:
    """Return the keys that a case changes of the profile of `owner`, with their values."""
    prefix = f"{owner}."
    return {
        name.removeprefix(prefix): int(value)
        for name, value in settings.items()
        if name.startswith(prefix)
    }


def with_dotted_keys(table: Mapping[str, Any]) -> dict[str, Any]:
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
