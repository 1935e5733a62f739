"""What a guest of another architecture than x86-64 does not have (docs/arm64.md)."""

from __future__ import annotations

from collections.abc import Mapping

from jojlab.device.emulated import EMULATED
from jojlab.experiment.fields import ALLOCATOR_FIELDS, PROGRAMS, Value
from jojlab.guest.architecture import X86_64


def impossible_machine(settings: Mapping[str, Value]) -> str:
    """Say why a case cannot be run on its machine; empty when it can."""
    machine = settings.get("machine", X86_64.name)
    if machine == X86_64.name:
        return ""
    only = f"is only for machine={X86_64.name}"
    if settings["device"] in EMULATED:
        return f"{settings['device']} {only}: {machine} has no clock on the wall"
    if named := [field.name for field in ALLOCATOR_FIELDS if field.name in settings]:
        return f"{named[0]} {only}: UBI and UBIFS are built anew for it"
    if settings["workload"] in PROGRAMS:
        return f"workload {settings['workload']} {only}, as programs of this machine are"
    return ""
