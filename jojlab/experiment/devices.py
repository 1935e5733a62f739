"""What a case's devices have to do with it: whether they can run it, and by which clock."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from jojlab.device.emulated import CAPACITY_BYTES, EMULATED
from jojlab.device.profile import Profile
from jojlab.errors import UseError
from jojlab.experiment.cases import Case, refuse_small_device
from jojlab.experiment.fields import NO_DEVICE, Value
from jojlab.experiment.filesystems import refuse_small_journal


def by_wall_clock(cases: Sequence[Case]) -> bool:
    """Whether the cases run by the clock on the wall, as those of emulated devices do.

    Raises UseError when some do and some do not: their times are not to be compared.
    """
    found = {str(case.settings["device"]) in EMULATED for case in cases}
    if len(found) > 1:
        raise UseError(
            "cases of emulated devices are measured by the clock on the wall, those of modelled "
            "devices by a virtual one",
            f"ask for {', '.join(EMULATED)} in an experiment of its own",
        )
    return True in found


def refuse_devices(settings: Mapping[str, Value], profiles: Mapping[str, Profile]) -> str:
    """Say why a case cannot be run on its devices; empty when it can.

    `profiles` are those of the modelled ones, by name.
    """
    name, journal = str(settings["device"]), str(settings["journal_device"])
    if name in EMULATED:
        if found := _refuse_emulated(settings):
            return found
        return refuse_small_device(settings, CAPACITY_BYTES)
    if found := refuse_small_device(settings, profiles[name].model["capacity_bytes"]):
        return found
    if journal != NO_DEVICE:
        return refuse_small_journal(settings, profiles[journal].model["capacity_bytes"])
    return ""


def _refuse_emulated(settings: Mapping[str, Value]) -> str:
    name = str(settings["device"])
    if settings["journal_device"] != NO_DEVICE:
        return f"{name} is emulated, and a guest has one such device: no journal_device beside it"
    if settings["completion"] != "direct":
        return f"{name} has a driver of its own: completion is for modelled devices alone"
    if settings.get("engine") == "io_uring_polled" and not EMULATED[name].polls:
        polling = ", ".join(device.name for device in EMULATED.values() if device.polls)
        return f"{name} has no queue for polling, which engine = io_uring_polled needs: {polling}"
    return ""
