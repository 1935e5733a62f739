"""The plan of what can be run of an experiment: reads the profiles of its devices, looks for the
files that its cases name, and marks the cases that their devices cannot run, in virtual or in real
time, or whose bytes do not fit on them or into the memory of their guest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from jojlab.device.profile import EMULATED, EMULATED_BYTES, RAW_NAND, Profile, read_profile
from jojlab.experiment.cases import Case, refuse_alone
from jojlab.experiment.input_files import check_inputs
from jojlab.experiment.read import Experiment
from jojlab.foundation.errors import UseError
from jojlab.guest.image.own_sqlite import refuse_older
from jojlab.guest.kernel.choose import check_kernel
from jojlab.guest.memory import memory_mib
from jojlab.model.architecture import ARCHITECTURES
from jojlab.model.device_keys import OWNERS, device_values
from jojlab.model.field import Settings, Value
from jojlab.model.fields import ALLOCATOR_FIELDS, RAW_NAND_DEVICE
from jojlab.model.filesystem import MIB, NO_DEVICE
from jojlab.model.filesystems import RAW_NAND_FILESYSTEMS, filesystem_of
from jojlab.model.workloads import workload_of


class Plan(NamedTuple):
    """An experiment whose cases can be run unless they say why not, and its device profiles."""

    experiment: Experiment
    profiles: dict[str, Profile]


def plan(experiment: Experiment) -> Plan:
    """Read the device profiles, and skip the cases whose filesystem does not fit on its device.

    Raises UseError for a bad profile, an unknown kernel, a file that is not there or may not be
    named, for devices of two clocks, or when no case is left.
    """
    runs_by_wall_clock(experiment.cases)
    fields = [(case.settings["kernel"], case.settings["machine"]) for case in experiment.cases]
    for kernel, machine in dict.fromkeys(fields):
        check_kernel(str(kernel), ARCHITECTURES[str(machine)])
    for case in experiment.cases:
        check_inputs(case, experiment.where)
    names = dict.fromkeys(
        str(case.settings[field])
        for field in ("device", "journal_device")
        for case in experiment.cases
        if case.settings[field] != NO_DEVICE
    )
    profiles = {name: read_profile(name) for name in names if name not in EMULATED}
    cases = [
        replace(
            case,
            skip=case.skip or refuse_devices(case.settings, profiles) or _refuse_sqlite(case),
        )
        for case in experiment.cases
    ]
    refuse_alone(cases, experiment.where)
    return Plan(replace(experiment, cases=tuple(cases)), profiles)


def _refuse_sqlite(case: Case) -> str:
    """Return why the SQLite of a folder cannot do what a case asks; empty if it can."""
    folder = case.sqlite_folder
    return refuse_older(folder, case.settings) if folder else ""


# Journals, logs and tables of a filesystem.
_FILESYSTEM_BYTES = 128 * MIB


def runs_by_wall_clock(cases: Sequence[Case]) -> bool:
    """Return whether the cases run in real time, as those of emulated devices do.

    Raises UseError when some do and some do not: their times cannot be compared.
    """
    found = {str(case.settings["device"]) in EMULATED for case in cases}
    if len(found) > 1:
        raise UseError(
            "cases of emulated devices are measured in real time, those of modelled devices in "
            "virtual time",
            f"put {', '.join(EMULATED)} into a separate experiment",
        )
    return True in found


def refuse_devices(settings: Mapping[str, Value], profiles: Mapping[str, Profile]) -> str:
    """Say why a case cannot be run on its devices, by their profiles; empty when it can."""
    name, journal = str(settings["device"]), str(settings["journal_device"])
    if journal == NO_DEVICE and (values := device_values(settings, "journal_device")):
        return f"journal_device.{next(iter(values))} is of no device: journal_device is {NO_DEVICE}"
    if name in EMULATED:
        if found := _refuse_emulated(settings):
            return found
        return refuse_small_device(settings, EMULATED_BYTES)
    try:
        modelled = profile_of(settings, profiles)
        journals = profile_of(settings, profiles, "journal_device")
    except UseError as error:
        return f"{error.message}: {error.remedy}"
    assert modelled
    if found := _refuse_interface(settings, modelled, journals):
        return found
    if found := refuse_small_device(settings, modelled.model["capacity_bytes"]):
        return found
    if journals and (found := refuse_small_journal(settings, journals.model["capacity_bytes"])):
        return found
    try:
        memory_mib(expected_bytes(settings, profiles))
    except UseError as error:
        return f"{error.message}: {error.remedy}"
    return ""


def expected_bytes(settings: Mapping[str, Value], profiles: Mapping[str, Profile]) -> int:
    """Return what the modelled devices of a case are expected to hold in the end, together."""
    device, journal = (profile_of(settings, profiles, owner) for owner in OWNERS)
    assert device
    expected = contents_bytes(settings, device.model["capacity_bytes"])
    return expected + (_smallest_journal_bytes(settings) if journal else 0)


def profile_of(
    settings: Mapping[str, Value], profiles: Mapping[str, Profile], owner: str = "device"
) -> Profile | None:
    """Return the profile of a case's `device` or `journal_device`, as the case changes it.

    None where it is emulated, or there is none. Raises UseError where the changed keys do not go
    together.
    """
    profile = profiles.get(str(settings[owner]))
    return profile.change_values(device_values(settings, owner), owner) if profile else None


def is_on_raw_nand(settings: Mapping[str, Value]) -> bool:
    """Return whether the filesystem of a case is one of raw NAND."""
    return filesystem_of(settings).is_on_raw_nand


def chooses_buffers(settings: Mapping[str, Value]) -> bool:
    """Return whether a case names the allocator of UBI's or UBIFS's buffers."""
    return any(field.name in settings for field in ALLOCATOR_FIELDS)


def _refuse_interface(
    settings: Mapping[str, Value], device: Profile, journal: Profile | None
) -> str:
    """Say where a filesystem of block devices meets raw NAND, or the other way round."""
    filesystem = settings["filesystem"]
    if is_on_raw_nand(settings) and device.interface != RAW_NAND:
        return (
            f"{filesystem} is on raw NAND, and {device.name} is a block device; "
            f"name a device such as {RAW_NAND_DEVICE}"
        )
    for each in filter(None, (device, journal)):
        if not is_on_raw_nand(settings) and each.interface == RAW_NAND:
            return (
                f"{each.name} is raw NAND, and {filesystem} needs a block device; "
                f"{' and '.join(RAW_NAND_FILESYSTEMS)} can be on it"
            )
    if device.interface == RAW_NAND and settings["completion"] != "direct":
        return f"{device.name} is raw NAND: completion is only for block devices"
    return ""


def _refuse_emulated(settings: Mapping[str, Value]) -> str:
    name = str(settings["device"])
    if is_on_raw_nand(settings):
        return f"{settings['filesystem']} is on raw NAND, and {name} is a block device"
    if settings["journal_device"] != NO_DEVICE:
        return f"{name} is emulated, and a guest has one such device: no journal_device beside it"
    if values := device_values(settings, "device"):
        return f"{name} is emulated, and has no profile with a key {next(iter(values))}"
    if settings["completion"] != "direct":
        return f"{name} has its own driver: completion is only for modelled devices"
    if settings.get("engine") == "io_uring_polled" and not EMULATED[name].polls:
        polling = ", ".join(device.name for device in EMULATED.values() if device.polls)
        return f"{name} has no queue for polling, which engine = io_uring_polled needs: {polling}"
    return ""


def contents_bytes(settings: Settings, capacity_bytes: int) -> int:
    """Return what a device of `capacity_bytes` is expected to hold in the end, at most."""
    copies = 2 if filesystem_of(settings).is_out_of_place else 1
    files_bytes = workload_of(settings).files_bytes(settings)
    return min(files_bytes * copies + _FILESYSTEM_BYTES, capacity_bytes)


def refuse_small_device(settings: Settings, capacity_bytes: int) -> str:
    """Return why filesystem or files do not fit on a device of that size; empty if they do."""
    filesystem, workload = filesystem_of(settings), workload_of(settings)
    smallest = filesystem.smallest_device_bytes
    if capacity_bytes < smallest:
        return (
            f"{filesystem.name} needs a device of {smallest // MIB} MiB, "
            f"{settings['device']} has {capacity_bytes // MIB} MiB"
        )
    # The rest is the filesystem's own, and what a log-structured one needs in order to clean.
    needed = workload.files_bytes(settings)
    if needed <= capacity_bytes // 4 * 3:
        return ""
    return workload.too_large(settings, capacity_bytes, needed)


def _smallest_journal_bytes(settings: Settings) -> int:
    journal = filesystem_of(settings).external_journal
    assert journal
    return journal.smallest_bytes


def refuse_small_journal(settings: Settings, capacity_bytes: int) -> str:
    """Return why a journal does not fit on its device of `capacity_bytes`; empty if it does."""
    smallest = _smallest_journal_bytes(settings)
    if capacity_bytes >= smallest:
        return ""
    return (
        f"{settings['filesystem']} needs a journal device of {smallest // MIB} MiB, "
        f"{settings['journal_device']} has {capacity_bytes // MIB} MiB"
    )
