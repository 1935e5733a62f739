"""Reads and checks a device profile, devices/NAME.toml; gives the parameters of the flash model.

The keys and their meaning are in devices/README.md. Whether the capacity fits in a guest's memory
is not checked here but where the guest is known (jojlab.guest).
"""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from jojlab.errors import UseError

DEVICES = Path(__file__).resolve().parents[2] / "devices"

# Least and greatest value of each parameter, in the order of the module's own list
# (kernel/flash/model/flash_config.h); a test compares the two.
LIMITS: Mapping[str, tuple[int, int]] = MappingProxyType(
    {
        "capacity_bytes": (1 << 20, 1 << 40),
        "queue_depth": (1, 1024),
        "command_overhead_ns": (0, 10**9),
        "read_access_ns": (0, 10**9),
        "read_bandwidth_bytes_per_s": (1000, 10**12),
        "write_access_ns": (0, 10**9),
        "write_bandwidth_bytes_per_s": (1000, 10**12),
        "program_unit_bytes": (512, 1 << 24),
        "program_ns": (1, 10**9),
        "mapping_program_ns": (0, 10**9),
        "cache_bytes": (0, 1 << 30),
        "drain_delay_ns": (0, 10**12),
        "flush_overhead_ns": (0, 10**9),
        "fua": (0, 1),
        "discard_ns": (0, 10**9),
        "zeroes_ns": (0, 10**9),
    }
)
CPU_LIMITS: Mapping[str, tuple[int, int]] = MappingProxyType({"icount_shift": (0, 10)})
BLOCK_BYTES = 4096


@dataclass(frozen=True)
class Profile:
    """A device: its names, the speed of its CPU, the parameters of its flash.

    `icount_shift`: an instruction takes 2**icount_shift ns.
    `model`: the flash module's parameters by name, in the module's order.
    `sources`: where each number is from.
    """

    name: str
    title: str
    icount_shift: int
    model: Mapping[str, int]
    sources: Mapping[str, str]


def read_profile(name: str | Path, devices: Path = DEVICES) -> Profile:
    """Read a profile by its name (`emmc-galaxy-s3`) or its path (anything that ends in .toml).

    Raises UseError, naming the file, the key and the remedy.
    """
    path = Path(name) if str(name).endswith(".toml") else devices / f"{name}.toml"
    document = _read_toml(path, str(name), devices)
    _check_keys(path, "the file", document, ("name", "title", "cpu", "model", "sources"))
    title = _string(path, "title", document["title"])
    if _string(path, "name", document["name"]) != path.stem:
        raise UseError(
            f"{path}: name is {document['name']!r}, the file's name is {path.stem!r}",
            "give both the same name",
        )
    cpu = _integers(path, "cpu", document["cpu"], CPU_LIMITS)
    model = _integers(path, "model", document["model"], LIMITS)
    _check_together(path, model)
    sources = _table(path, "sources", document["sources"])
    _check_keys(path, "[sources]", sources, (*CPU_LIMITS, *LIMITS), "say where the number is from")
    for key, source in sources.items():
        _string(path, f"sources.{key}", source)
    return Profile(
        name=path.stem,
        title=title,
        icount_shift=cpu["icount_shift"],
        model=MappingProxyType(model),
        sources=MappingProxyType({key: sources[key] for key in (*CPU_LIMITS, *LIMITS)}),
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


def _nearest(name: str, known: Iterable[str]) -> str:
    matches = difflib.get_close_matches(name, list(known), n=1)
    return f"did you mean {matches[0]!r}?" if matches else ""


def _check_keys(
    path: Path, place: str, table: Mapping[str, Any], known: tuple[str, ...], missing: str = ""
) -> None:
    for key in table:
        if key not in known:
            remedy = _nearest(key, known) or f"known are {', '.join(known)}"
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
            raise UseError(
                f"{path}: {place}.{key} is {number}", f"give a value of {least} to {greatest}"
            )
    return {key: table[key] for key in limits}


def _check_together(path: Path, model: Mapping[str, int]) -> None:
    if model["capacity_bytes"] % BLOCK_BYTES:
        raise UseError(
            f"{path}: model.capacity_bytes is {model['capacity_bytes']}",
            f"give a multiple of {BLOCK_BYTES}",
        )
    if 0 < model["cache_bytes"] < model["program_unit_bytes"]:
        raise UseError(
            f"{path}: model.cache_bytes is {model['cache_bytes']}",
            "give 0 (no cache) or at least program_unit_bytes",
        )
