"""Reads and checks a device profile, devices/NAME.toml; gives the parameters of the flash model.

The keys and their meaning are in devices/README.md. Whether the capacity fits in a guest's memory
is not checked here but where the guest is known (jojlab.guest).
"""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from jojlab.foundation.errors import UseError
from jojlab.foundation.places import DEVICES

# Least and greatest value of each parameter, in the order of the module's own list
# (kernel/flash/model/flash_config.h); a test compares the two.
LIMITS: Mapping[str, tuple[int, int]] = MappingProxyType(
    {
        "capacity_bytes": (1 << 20, 1 << 40),
        "queue_depth": (1, 1024),
        "half_duplex": (0, 1),
        "packed_writes": (1, 64),
        "command_overhead_ns": (0, 10**9),
        "read_command_ns": (0, 10**9),
        "write_command_ns": (0, 10**9),
        "read_access_ns": (0, 10**9),
        "read_bandwidth_bytes_per_s": (1000, 10**12),
        "write_access_ns": (0, 10**9),
        "write_bandwidth_bytes_per_s": (1000, 10**12),
        "channels": (1, 32),
        "dies_per_channel": (1, 32),
        "channel_bandwidth_bytes_per_s": (1000, 10**12),
        "program_unit_bytes": (4096, 262144),
        "units_per_erase_block": (2, 8192),
        "page_read_ns": (1, 10**9),
        "program_ns": (1, 10**9),
        "erase_ns": (1, 10**9),
        "mapping_program_ns": (0, 10**9),
        "mapping_cache_bytes": (0, 1 << 30),
        "over_provisioning_percent": (1, 400),
        "gc_policy": (0, 1),
        "wear_spread_max": (0, 1000000),
        "cache_bytes": (0, 1 << 30),
        "power_loss_protection": (0, 1),
        "drain_delay_ns": (0, 10**12),
        "flush_overhead_ns": (0, 10**9),
        "fua": (0, 1),
        "fua_overhead_ns": (0, 10**9),
        "discard_ns": (0, 10**9),
        "zeroes_ns": (0, 10**9),
        "preload_percent": (0, 100),
        "overwrite_percent": (0, 1000),
        "ageing_seed": (0, 2**32 - 1),
    }
)
TOP_LEVEL = ("name", "title", "cpu", "model", "sources", "stated")
CPU_LIMITS: Mapping[str, tuple[int, int]] = MappingProxyType({"icount_shift": (0, 9)})
# Why a limit is where it is, for those who meet it. Measured of the greatest shift: a guest of
# 2^10 ns an instruction has 3,906 of them from one timer tick to the next, and does not boot.
_WHY = {"icount_shift": "beyond, the guest's kernel spends all its time on its timer tick of 4 ms"}

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


@dataclass(frozen=True)
class Stated:
    """A figure that somebody printed or measured of such a device; `figure` is one of FIGURES."""

    figure: str
    value: int
    source: str


@dataclass(frozen=True)
class Calibration:
    """The one parameter that may be fitted, and the one published number it is fitted to.

    `parameter` lies between `least` and `greatest`; `case` are fields of an experiment, and
    `throughput_tps` is what `source` printed of it, in transactions a second.
    """

    parameter: str
    least: int
    greatest: int
    throughput_tps: float
    source: str
    case: Mapping[str, Any]


@dataclass(frozen=True)
class Profile:
    """A device: its names, the speed of its CPU, the parameters of its flash.

    `icount_shift`: an instruction takes 2**icount_shift ns.
    `model`: the flash module's parameters by name, in the module's order.
    `sources`: where each number is from.
    `stated`: figures that the device is known by.
    `calibration`: what `joj device calibrate` fits; None: nothing.
    """

    path: Path
    name: str
    title: str
    icount_shift: int
    model: Mapping[str, int]
    sources: Mapping[str, str]
    stated: tuple[Stated, ...]
    calibration: Calibration | None

    def changed(self, values: Mapping[str, int], owner: str) -> Profile:
        """Return the profile with other values of keys of [model] or [cpu].

        `owner` is what the profile is called in errors. Raises UseError where a value is beyond its
        limits, or does not go with the others.
        """
        if not values:
            return self
        both = {"icount_shift": self.icount_shift, **self.model, **values}
        limits = {**CPU_LIMITS, **LIMITS}
        for key, value in values.items():
            least, greatest = limits[key]
            if not least <= value <= greatest:
                raise UseError(f"{owner}.{key} is {value}", _limits(key, least, greatest))
        model = {key: both[key] for key in LIMITS}
        _check_together(owner, model)
        shift = both["icount_shift"]
        return replace(self, icount_shift=shift, model=MappingProxyType(model))


def read_profile(name: str | Path, devices: Path = DEVICES) -> Profile:
    """Read a profile by its name (`emmc-galaxy-s3`) or path (with a slash, or .toml at its end).

    Raises UseError, naming the file, the key and the remedy.
    """
    is_path = "/" in str(name) or str(name).endswith(".toml")
    path = Path(name) if is_path else devices / f"{name}.toml"
    document = _read_toml(path, str(name), devices)
    _check_keys(path, "the file", document, TOP_LEVEL, optional=("calibration",))
    title = _string(path, "title", document["title"])
    if _string(path, "name", document["name"]) != path.stem:
        raise UseError(
            f"{path}: name is {document['name']!r}, the file's name is {path.stem!r}",
            f"a copied profile has a name of its own: write name = {path.stem!r}; to change single "
            "keys, leave the profile as it is and use --set device.KEY=VALUE",
        )
    cpu = _integers(path, "cpu", document["cpu"], CPU_LIMITS)
    model = _integers(path, "model", document["model"], LIMITS)
    _check_together(f"{path}: model", model)
    sources = _table(path, "sources", document["sources"])
    _check_keys(path, "[sources]", sources, (*CPU_LIMITS, *LIMITS), "say where the number is from")
    for key, source in sources.items():
        _string(path, f"sources.{key}", source)
    return Profile(
        path=path,
        name=path.stem,
        title=title,
        icount_shift=cpu["icount_shift"],
        model=MappingProxyType(model),
        sources=MappingProxyType({key: sources[key] for key in (*CPU_LIMITS, *LIMITS)}),
        stated=_stated(path, document["stated"]),
        calibration=_calibration(path, document["calibration"])
        if "calibration" in document
        else None,
    )


def _read_toml(path: Path, name: str, devices: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        known = sorted(file.stem for file in devices.glob("*.toml"))
        raise UseError(
            f"no device profile {name!r}: {path} does not exist",
            _nearest(name, known) or f"known are {', '.join(known)}",
        ) from None
    except OSError as error:
        raise UseError(f"{path}: {error.strerror}", "make the file readable") from error
    except ValueError as error:  # TOML's and UTF-8's errors are among them
        raise UseError(f"{path}: {error}", "correct the file at that place") from error
    except RecursionError as error:
        raise UseError(f"{path}: nested too deep", "write it as devices/*.toml are") from error


def _nearest(name: str, known: Iterable[str]) -> str:
    matches = difflib.get_close_matches(name, list(known), n=1)
    return f"did you mean {matches[0]!r}?" if matches else ""


def _check_keys(
    path: Path,
    place: str,
    table: Mapping[str, Any],
    known: tuple[str, ...],
    missing: str = "",
    *,
    optional: tuple[str, ...] = (),
) -> None:
    for key in table:
        if key not in (*known, *optional):
            remedy = _nearest(key, (*known, *optional)) or f"known are {', '.join(known)}"
            raise UseError(f"{path}: {place} has an unknown key {key!r}", remedy)
    for key in known:
        if key not in table:
            remedy = missing or "add it; devices/README.md says what it is"
            raise UseError(f"{path}: {place} has no {key!r}", remedy)


def _table(path: Path, key: str, value: object) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise UseError(f"{path}: {key} is not a table", f"write it as [{key}]")
    return value


def _string(path: Path, key: str, value: object) -> str:
    if not isinstance(value, str) or not value.strip():
        raise UseError(f"{path}: {key} is {value!r}", "give it a text that is not empty")
    return value


def _integers(
    path: Path, place: str, value: object, limits: Mapping[str, tuple[int, int]]
) -> dict[str, int]:
    """Check the table `place`; give its values in the order of `limits`."""
    table = _table(path, place, value)
    _check_keys(path, f"[{place}]", table, tuple(limits))
    for key, number in table.items():
        least, greatest = limits[key]
        if type(number) is not int:  # a bool is an int to isinstance()
            remedy = f"give an integer, {least} to {greatest}"
            raise UseError(f"{path}: {place}.{key} is {number!r}", remedy)
        if not least <= number <= greatest:
            raise UseError(f"{path}: {place}.{key} is {number}", _limits(key, least, greatest))
    return {key: table[key] for key in limits}


def _limits(key: str, least: int, greatest: int) -> str:
    why = f": {_WHY[key]}" if key in _WHY else ""
    return f"give a value of {least} to {greatest}{why}"


def _stated(path: Path, rows: object) -> tuple[Stated, ...]:
    if not isinstance(rows, list):
        raise UseError(f"{path}: stated is not a list of tables", "write each as [[stated]]")
    found = []
    for row in rows:
        table = _table(path, "stated", row)
        _check_keys(path, "[[stated]]", table, ("figure", "value", "source"))
        figure = _string(path, "stated.figure", table["figure"])
        if figure not in FIGURES:
            remedy = _nearest(figure, FIGURES) or f"known are {', '.join(FIGURES)}"
            raise UseError(f"{path}: stated.figure is {figure!r}", remedy)
        if type(table["value"]) is not int or table["value"] <= 0:
            raise UseError(
                f"{path}: stated.value of {figure} is {table['value']!r}", "give a whole number"
            )
        source = _string(path, f"stated.source of {figure}", table["source"])
        found.append(Stated(figure, table["value"], source))
    return tuple(found)


def _calibration(path: Path, value: object) -> Calibration:
    table = _table(path, "calibration", value)
    keys = ("parameter", "least", "greatest", "throughput_tps", "source", "case")
    _check_keys(path, "[calibration]", table, keys)
    parameter = _string(path, "calibration.parameter", table["parameter"])
    if parameter not in LIMITS:
        remedy = _nearest(parameter, LIMITS) or "give a key of [model]"
        raise UseError(f"{path}: calibration.parameter is {parameter!r}", remedy)
    limits = {"least": LIMITS[parameter], "greatest": LIMITS[parameter]}
    ends = _integers(path, "calibration", {key: table[key] for key in limits}, limits)
    if ends["least"] >= ends["greatest"]:
        raise UseError(f"{path}: calibration.least is not below greatest", "exchange them")
    throughput = table["throughput_tps"]
    if type(throughput) not in (int, float) or not 0 < throughput < 1e9:
        raise UseError(
            f"{path}: calibration.throughput_tps is {throughput!r}", "give transactions a second"
        )
    source = _string(path, "calibration.source", table["source"])
    case = MappingProxyType(dict(_table(path, "calibration.case", table["case"])))
    return Calibration(parameter, ends["least"], ends["greatest"], float(throughput), source, case)


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
