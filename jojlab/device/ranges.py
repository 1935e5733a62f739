"""Finds how far the numbers of a profile may be wrong: reads where each is from, gives the low and
the high value to try in its place.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from jojlab.device.profile import SLOT_BYTES, Profile
from jojlab.foundation.errors import UseError
from jojlab.model.device_keys import CPU_LIMITS, LIMITS

HALF_AND_DOUBLE = "half and double"
OTHER_VALUE = "the other value"


class Origin(StrEnum):
    """The origin of a number, as the first word of its source says."""

    MEASURED = "measured"
    PRINTED = "printed"  # in a data sheet, a standard, a paper or another program
    ASSUMPTION = "assumption"
    FITTED = "fitted"
    NOT_USED = "not used"


@dataclass(frozen=True)
class Tried:
    """A number of a profile, and what to try in its place.

    `values` are those that differ from `value` and that the device can have, the low one first;
    `why` says where they are from, or why there are none.
    """

    key: str
    value: int
    origin: Origin
    source: str
    values: tuple[int, ...]
    why: str


def origin(source: str) -> Origin:
    """Return where a number with this source is from."""
    if source.startswith("not measured"):  # by joj device measure: as the profile it began from
        return Origin.ASSUMPTION
    for word in (Origin.ASSUMPTION, Origin.FITTED, Origin.MEASURED, Origin.NOT_USED):
        if source.startswith(word):
            return word
    return Origin.PRINTED


def numbers(profile: Profile) -> list[Tried]:
    """Return all numbers of the profile's file, with what to try of those that may be wrong.

    These are the assumptions and the fitted number, by half and double, and what the profile states
    a range of.
    """
    values = {"icount_shift": profile.icount_shift, **profile.model}
    return [
        _number(profile, key, values[key], profile.sources[key])
        for key in sorted(profile.sources, key=[*CPU_LIMITS, *LIMITS].index)
    ]


def _number(profile: Profile, key: str, value: int, source: str) -> Tried:
    found = origin(source)
    stated = profile.ranges.get(key)
    wanted: tuple[int, ...]
    if stated:
        wanted, why = (stated.low, stated.high), stated.source
    elif found not in (Origin.ASSUMPTION, Origin.FITTED):
        return Tried(key, value, found, source, (), "")
    else:
        wanted, why = _around(key, value)
    tried = tuple(new for new in dict.fromkeys(wanted) if new != value and _can(profile, key, new))
    return Tried(key, value, found, source, tried, why if tried else "0 has no half and no double")


def _around(key: str, value: int) -> tuple[tuple[int, ...], str]:
    limits = {**CPU_LIMITS, **LIMITS}[key]
    if limits == (0, 1):
        return (1 - value,), OTHER_VALUE
    if key == "icount_shift":  # the time of an instruction is 2 to the power of it
        return (value - 1, value + 1), HALF_AND_DOUBLE
    unit = SLOT_BYTES if key in ("capacity_bytes", "program_unit_bytes") else 1
    return (value // 2 // unit * unit, 2 * value), HALF_AND_DOUBLE


def _can(profile: Profile, key: str, value: int) -> bool:
    """Return whether a device can have the value, with all others as they are."""
    try:
        profile.changed({key: value}, profile.name)
    except UseError:
        return False
    return True
