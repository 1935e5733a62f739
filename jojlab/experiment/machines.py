"""What a guest of another architecture than x86-64 does not have (docs/arm64.md)."""

from __future__ import annotations

from collections.abc import Mapping

from jojlab.device.emulated import EMULATED
from jojlab.experiment.fields import PROGRAMS, RAW_NAND_FILESYSTEMS, Value
from jojlab.guest.architecture import X86_64


def impossible_machine(settings: Mapping[str, Value]) -> str:
    """Say why a case cannot be run on its machine; empty when it can."""
    machine = settings.get("machine", X86_64.name)
    if machine == X86_64.name:
        return ""
    only = f"is only for machine={X86_64.name}"
    if settings["device"] in EMULATED:
        return f"{settings['device']} {only}: {machine} has no clock on the wall"
    if settings["filesystem"] in RAW_NAND_FILESYSTEMS:
        return f"{settings['filesystem']} {only}: {machine} has no raw NAND"
    if settings["workload"] in PROGRAMS:
        return f"workload {settings['workload']} {only}, as programs of this machine are"
    return ""
