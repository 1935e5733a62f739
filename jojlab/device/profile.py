"""Reads and checks a device profile, devices/NAME.toml; gives the parameters of the model of
flash or of raw NAND, and how far each of its numbers may be wrong. Beside the profiles stand the
disks that QEMU emulates.

The keys and their meaning are in devices/README.md. Whether the capacity fits in a guest's memory
is not checked here but where the guest is known (jojlab.guest).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Literal, TypeVar

from msgspec import Meta, Struct

from jojlab.foundation.document import check_document, read_toml
from jojlab.foundation.errors import UseError, refuse_unknown
from jojlab.foundation.places import DEVICES
from jojlab.foundation.printable import nearest
from jojlab.model.device_keys import (
    CPU_LIMITS,
    LIMITS,
    MECHANISMS,
    RAW_NAND_LIMITS,
    RAW_NAND_MECHANISMS,
    REASONS,
)

Kind = TypeVar("Kind")

# What a benchmark measures of a device (kernel/flash/figures/figures.c); a profile states some of
# them, with their sources, and a test compares.
FIGURES: Mapping[str, str] = MappingProxyType(
    {
        "sequential_read_bytes_per_s": "reads of 512 KiB in order, queue full",
        "sequential_write_bytes_per_s": "writes of 512 KiB in order, queue full, sustained",
        "random_read_iops": "reads of 4 KiB within 128 MiB, queue full",
        "random_write_iops": "writes of 4 KiB within 128 MiB, queue full, sustained",
        "wide_random_read_iops": "reads of 4 KiB within half of the disk, queue full",
        "wide_random_write_iops": "writes of 4 KiB within half of the disk, queue full, sustained",
        "random_read_latency_ns": "a read of 4 KiB, one at a time",
        "random_write_latency_ns": "a write of 4 KiB that the cache takes, one at a time",
        "flush_empty_ns": "a flush of an empty cache",
        "flush_dirty_ns": "a flush of one write of 4 KiB",
        "write_and_flush_ns": "a write of 4 KiB and its flush",
        "fua_write_ns": "a write of 4 KiB with FUA",
        "aged_random_write_iops": "as wide_random_write_iops, on a disk 90 % full and overwritten",
        "aged_ftl_wa_percent": "NAND bytes / block bytes of aged_random_write_iops, in per cent",
        "model_memory_bytes": "guest memory of the model's tables",
    }
)

# Of the geometry, as in kernel/flash/model/geometry.h.
SLOT_BYTES = 4096
SPARE_ROWS = 6


# Where the keys of a profile are described.
FORM = "devices/README.md describes it"

Text = Annotated[str, Meta(pattern=r"\S")]


@dataclass(frozen=True)
class Interface:
    """A kind of device: its module's parameters, and the figures that a benchmark measures."""

    limits: Mapping[str, tuple[int, int]]
    mechanisms: tuple[str, ...]
    figures: Mapping[str, str]
    check_together: Callable[[str, Mapping[str, int]], None]


class StatedFigure(Struct, frozen=True, forbid_unknown_fields=True):
    """A figure that somebody printed or measured of such a device; `figure` is one of FIGURES.

    `sets` is the parameter that was set from it: that the model has the figure then checks nothing.
    """

    figure: str
    value: Annotated[int, Meta(ge=1)]
    source: Text
    sets: str = ""


class Calibration(Struct, frozen=True, forbid_unknown_fields=True):
    """The one parameter that may be fitted, and the one published number it is fitted to.

    `parameter` lies between `least` and `greatest`; `case` are fields of an experiment, and
    `throughput_tps` is what `source` printed of it, in transactions a second.
    """

    parameter: str
    least: int
    greatest: int
    throughput_tps: Annotated[float, Meta(gt=0, lt=1e9)]
    source: Text
    case: dict[str, Any]


class Range(Struct, frozen=True, forbid_unknown_fields=True):
    """The values that a number may lie between, and who says so."""

    low: int
    high: int
    source: Text


class _Document(Struct, forbid_unknown_fields=True):
    """A profile as its file has it."""

    name: Text
    title: Text
    cpu: dict[str, int]
    model: dict[str, int]
    sources: dict[str, Text]
    stated: list[StatedFigure]
    interface: Literal["block", "raw-nand"] = "block"
    ranges: dict[str, Range] = {}
    calibration: Calibration | None = None


@dataclass(frozen=True)
class Profile:
    """A device: its names, the speed of its CPU, the parameters of its flash.

    `interface`: what the kernel sees of it, a block device or raw NAND (a key of INTERFACES).
    `icount_shift`: an instruction takes 2**icount_shift ns.
    `model`: the flash module's parameters by name, in the module's order.
    `sources`: where each number is from; mechanisms that the file leaves out have none.
    `stated`: figures that the device is known by.
    `ranges`: of some numbers, between which values they may lie.
    `calibration`: what `joj device calibrate` fits; None: nothing.
    """

    path: Path
    name: str
    title: str
    interface: str
    icount_shift: int
    model: Mapping[str, int]
    sources: Mapping[str, str]
    stated: tuple[StatedFigure, ...]
    ranges: Mapping[str, Range]
    calibration: Calibration | None

    def change_values(self, values: Mapping[str, int], owner: str) -> Profile:
        """Return the profile with other values of keys of [model] or [cpu].

        `owner` is what the profile is called in errors. Raises UseError where a value is beyond its
        limits, or does not go with the others.
        """
        if not values:
            return self
        both = {"icount_shift": self.icount_shift, **self.model, **values}
        interface = INTERFACES[self.interface]
        limits = {**CPU_LIMITS, **interface.limits}
        for key, value in values.items():
            if key not in limits:
                raise UseError(
                    f"{self.name} is {self.interface} and has no {key}",
                    f"known: {', '.join(interface.limits)}",
                )
            _refuse_beyond(owner, key, value, limits[key])
        model = {key: both[key] for key in interface.limits}
        interface.check_together(owner, model)
        shift = both["icount_shift"]
        return replace(self, icount_shift=shift, model=MappingProxyType(model))


def read_profile(name: str | Path, devices: Path = DEVICES) -> Profile:
    """Read a profile by its name (`emmc-galaxy-s3`) or path (with a slash, or .toml at its end).

    Raises UseError, naming the file, the key and the remedy.
    """
    is_path = "/" in str(name) or str(name).endswith(".toml")
    path = Path(name) if is_path else devices / f"{name}.toml"
    if not path.exists():
        known = sorted(file.stem for file in devices.glob("*.toml"))
        raise UseError(
            f"no device profile {name!r}{nearest(str(name), known)}: {path} does not exist",
            f"known: {', '.join(known)}",
        )
    parsed = check_document(read_toml(path, FORM)[1], _Document, str(path), FORM)
    if parsed.name != path.stem:
        raise UseError(
            f"{path}: name is {parsed.name!r}, the file's name is {path.stem!r}",
            f"a copied profile has a name of its own: write name = {path.stem!r}; to change single "
            "keys, leave the profile as it is and use --set device.KEY=VALUE",
        )
    interface = INTERFACES[parsed.interface]
    limits, figures = interface.limits, interface.figures
    cpu = _checked_limits(path, "cpu", parsed.cpu, CPU_LIMITS)
    left_out = [key for key in interface.mechanisms if key not in parsed.model]
    model = _checked_limits(path, "model", {**parsed.model, **dict.fromkeys(left_out, 0)}, limits)
    interface.check_together(f"{path}: model", model)
    sourced = [key for key in (*CPU_LIMITS, *limits) if key not in left_out]
    sources = _only(path, "sources", parsed.sources, sourced)
    for stated in parsed.stated:
        if stated.sets:
            refuse_unknown(
                stated.sets, limits, f"{path}: no parameter {stated.sets!r} to set", FORM
            )
        remedy = f"known: {', '.join(figures)}"
        refuse_unknown(
            stated.figure, figures, f"{path}: no figure {stated.figure!r} to state", remedy
        )
    for key, range_ in parsed.ranges.items():
        _check_range(path, key, range_, limits)
    if parsed.calibration and parsed.interface != BLOCK:
        raise UseError(f"{path}: calibration is only for block devices", "drop it")
    if parsed.calibration:
        _check_calibration(path, parsed.calibration)
    return Profile(
        path=path,
        name=path.stem,
        title=parsed.title,
        interface=parsed.interface,
        icount_shift=cpu["icount_shift"],
        model=MappingProxyType(model),
        sources=MappingProxyType(sources),
        stated=tuple(parsed.stated),
        ranges=MappingProxyType(parsed.ranges),
        calibration=parsed.calibration,
    )


def _only(
    path: Path, place: str, table: Mapping[str, Kind], names: Iterable[str]
) -> dict[str, Kind]:
    """Return the table in the order of `names`, whose keys it has, each of them and no other."""
    names = tuple(names)
    for key in table:
        remedy = f"known: {', '.join(names)}"
        refuse_unknown(key, names, f"{path}: {place} has no key {key!r}", remedy)
    for key in names:
        if key not in table:
            raise UseError(f"{path}: {place} lacks {key}", f"add it; {FORM}")
    return {key: table[key] for key in names}


def _checked_limits(
    path: Path, place: str, table: Mapping[str, int], limits: Mapping[str, tuple[int, int]]
) -> dict[str, int]:
    """Return the table in the order of `limits`, every value within its own."""
    numbers = _only(path, place, table, limits)
    for key, number in numbers.items():
        _refuse_beyond(f"{path}: {place}", key, number, limits[key])
    return numbers


def _refuse_beyond(where: str, key: str, number: int, limits: tuple[int, int]) -> None:
    least, greatest = limits
    if not least <= number <= greatest:
        why = f": {REASONS[key]}" if key in REASONS else ""
        raise UseError(f"{where}.{key} is {number}", f"give a value of {least} to {greatest}{why}")


def _check_range(
    path: Path, key: str, wanted: Range, model_limits: Mapping[str, tuple[int, int]]
) -> None:
    limits = {**CPU_LIMITS, **model_limits}
    refuse_unknown(key, limits, f"{path}: no parameter {key!r} to range", FORM)
    for number in (wanted.low, wanted.high):
        _refuse_beyond(f"{path}: ranges", key, number, limits[key])
    if wanted.low >= wanted.high:
        raise UseError(f"{path}: ranges.{key}.low is not below high", "exchange them")


def _check_calibration(path: Path, wanted: Calibration) -> None:
    message = f"{path}: calibration.parameter is {wanted.parameter!r}"
    refuse_unknown(wanted.parameter, LIMITS, message, "give a key of [model]")
    for key, end in (("least", wanted.least), ("greatest", wanted.greatest)):
        _refuse_beyond(f"{path}: calibration", key, end, LIMITS[wanted.parameter])
    if wanted.least >= wanted.greatest:
        raise UseError(f"{path}: calibration.least is not below greatest", "exchange them")


def _check_together(where: str, model: Mapping[str, int]) -> None:
    """Refuse what no device can have; flash_geometry_derive() of the model has the same rules."""

    def wrong(key: str, remedy: str) -> UseError:
        return UseError(f"{where}.{key} is {model[key]}", remedy)

    for key in ("capacity_bytes", "program_unit_bytes"):
        if model[key] % SLOT_BYTES:
            raise wrong(key, f"give a multiple of {SLOT_BYTES}")
    if 0 < model["cache_bytes"] < model["program_unit_bytes"]:
        raise wrong("cache_bytes", "give 0 (no cache) or at least program_unit_bytes")
    if 0 < model["mapping_cache_bytes"] < SLOT_BYTES:
        raise wrong("mapping_cache_bytes", f"give 0 (the whole table) or at least {SLOT_BYTES}")
    atomic = model["atomic_write_bytes"]
    if atomic & (atomic - 1) or 0 < atomic < SLOT_BYTES:
        raise wrong(
            "atomic_write_bytes", f"give 0 (none) or a power of two of at least {SLOT_BYTES}"
        )
    if model["slc_buffer_bytes"] > model["capacity_bytes"]:
        raise wrong("slc_buffer_bytes", "give no more than capacity_bytes")
    if model["slc_buffer_bytes"] and not model["slc_program_ns"]:
        raise wrong("slc_program_ns", "give 1 or more, as there is an slc_buffer_bytes")
    slots = model["capacity_bytes"] // SLOT_BYTES
    unit_slots = model["program_unit_bytes"] // SLOT_BYTES
    dies = model["channels"] * model["dies_per_channel"]
    spare = SPARE_ROWS * dies * model["units_per_erase_block"] * unit_slots
    if spare > slots:
        raise wrong(
            "units_per_erase_block",
            f"give less: {SPARE_ROWS} erase blocks of every die, {spare * SLOT_BYTES >> 20} MiB, "
            "must fit in the capacity",
        )


# kernel/nand/figures/figures.c prints them in this order.
RAW_NAND_FIGURES: Mapping[str, str] = MappingProxyType(
    {
        "page_read_latency_ns": "a page read, its bytes moved, one at a time",
        "page_program_latency_ns": "a page moved and programmed, one at a time",
        "block_erase_latency_ns": "a block erased, one at a time",
        "sequential_read_bytes_per_s": "pages read in order, one at a time",
        "sequential_program_bytes_per_s": "pages programmed in order, one at a time",
    }
)


def check_raw_nand(where: str, model: Mapping[str, int]) -> None:
    """Refuse what no part can have; raw_nand_check() of the model has the same rules."""

    def wrong(key: str, remedy: str) -> UseError:
        return UseError(f"{where}.{key} is {model[key]}", remedy)

    for key in ("page_bytes", "pages_per_block", "programs_per_page"):
        if model[key] & (model[key] - 1):
            raise wrong(key, "give a power of two")
    block_bytes = model["page_bytes"] * model["pages_per_block"]
    blocks, rest = divmod(model["capacity_bytes"], block_bytes)
    if rest:
        raise wrong("capacity_bytes", f"give whole blocks of {block_bytes} bytes")
    if blocks * model["pages_per_block"] >= 2**32 - 1:
        raise wrong("capacity_bytes", "give less than 2^32 pages")
    if model["factory_bad_blocks"] > blocks // 2:
        raise wrong("factory_bad_blocks", f"give at most half of the {blocks} blocks")


BLOCK = "block"
RAW_NAND = "raw-nand"
INTERFACES: Mapping[str, Interface] = MappingProxyType(
    {
        BLOCK: Interface(LIMITS, MECHANISMS, FIGURES, _check_together),
        RAW_NAND: Interface(RAW_NAND_LIMITS, RAW_NAND_MECHANISMS, RAW_NAND_FIGURES, check_raw_nand),
    }
)


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
class TriedNumber:
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


def numbers(profile: Profile) -> list[TriedNumber]:
    """Return all numbers of the profile's file, with what to try of those that may be wrong.

    These are the assumptions and the fitted number, by half and double, and what the profile states
    a range of.
    """
    values = {"icount_shift": profile.icount_shift, **profile.model}
    return [
        _number(profile, key, values[key], profile.sources[key])
        for key in sorted(profile.sources, key=[*CPU_LIMITS, *LIMITS].index)
    ]


def _number(profile: Profile, key: str, value: int, source: str) -> TriedNumber:
    found = origin(source)
    stated = profile.ranges.get(key)
    wanted: tuple[int, ...]
    if stated:
        wanted, why = (stated.low, stated.high), stated.source
    elif found not in (Origin.ASSUMPTION, Origin.FITTED):
        return TriedNumber(key, value, found, source, (), "")
    else:
        wanted, why = _neighbours(key, value)
    tried = tuple(
        new for new in dict.fromkeys(wanted) if new != value and _is_possible(profile, key, new)
    )
    return TriedNumber(
        key, value, found, source, tried, why if tried else "0 has no half and no double"
    )


def _neighbours(key: str, value: int) -> tuple[tuple[int, ...], str]:
    limits = {**CPU_LIMITS, **LIMITS}[key]
    if limits == (0, 1):
        return (1 - value,), OTHER_VALUE
    if key == "icount_shift":  # the time of an instruction is 2 to the power of it
        return (value - 1, value + 1), HALF_AND_DOUBLE
    unit = SLOT_BYTES if key in ("capacity_bytes", "program_unit_bytes") else 1
    return (value // 2 // unit * unit, 2 * value), HALF_AND_DOUBLE


def _is_possible(profile: Profile, key: str, value: int) -> bool:
    """Return whether a device can have the value, with all others as they are."""
    try:
        profile.change_values({key: value}, profile.name)
    except UseError:
        return False
    return True


# The disks that QEMU emulates, in a guest that runs by the clock on the wall. There is no flash
# behind them, and no model of time: what they take is what QEMU takes on this machine. They are
# real to the guest's kernel, driver and queues and interrupts, which the modelled device is not.
EMULATED_BYTES = 1 << 30


@dataclass(frozen=True)
class EmulatedDisk:
    """A disk that QEMU emulates: `disk` is its name in the guest; `polls`: it has queues for it."""

    name: str
    disk: str
    title: str
    polls: bool = False


EMULATED: Mapping[str, EmulatedDisk] = MappingProxyType(
    {
        device.name: device
        for device in (
            EmulatedDisk(
                "qemu-nvme",
                "nvme0n1",
                "NVMe: a queue for each of two processors and one for polling, volatile cache",
                polls=True,
            ),
            EmulatedDisk(
                "qemu-scsi",
                "sda",
                "SCSI disk behind a virtio adapter: a queue for each of two processors, volatile "
                "cache",
            ),
            EmulatedDisk(
                "qemu-sd",
                "mmcblk0",
                "SD card on an SDHCI controller: one command at a time, no cache",
            ),
        )
    }
)
EMULATED_NOTE = (
    "Emulated by QEMU on a file of this machine. It has no flash and no model of time; a flush "
    "costs nothing. It is measured in real time, so a result is not a pure function of image and "
    "case: results differ from run to run and are never cached."
)
