"""The mount and the block device under a path of this machine, as /proc and /sys show them.

Sources: proc(5) for mountinfo, Documentation/ABI/stable/sysfs-block and
Documentation/block/stat.rst of Linux for the queue and the counters,
Documentation/ABI/testing/sysfs-driver-ufs and drivers/mmc/core/mmc.c for the wear of UFS and eMMC.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from jojlab.foundation.errors import MachineError

SECTOR_BYTES = 512
_WRITTEN_SECTORS, _FLUSHES = 6, 15  # fields of /sys/block/NAME/stat, from 0


@dataclass(frozen=True)
class Mount:
    """A line of /proc/self/mountinfo: what is mounted where, and with which options.

    `driver_options` are the lines of the driver's own file in /proc/fs; none where it has none.
    `is_upper`: it has the upper layer of an overlay, to which what is written there goes.
    """

    point: Path
    filesystem: str
    source: str
    options: tuple[str, ...]
    device: tuple[int, int]
    driver_options: tuple[str, ...] = ()
    is_upper: bool = False


@dataclass(frozen=True)
class BlockDevice:
    """A block device as the kernel describes it; None is what it does not say.

    `below` are the devices that it is made of (dm, md), or the file (loop). `wear` is the device's
    own estimate of its used life, in its own words. `written_bytes` and `flushes` are counted since
    the machine began.
    """

    name: str
    write_cache: bool | None
    fua: bool | None
    rotational: bool | None
    logical_block_bytes: int | None
    written_bytes: int | None
    flushes: int | None
    wear: str | None
    below: tuple[str, ...]

    @property
    def interface(self) -> str:
        """Return "eMMC or SD", "NVMe" and so on, by the kernel's name; empty where that says
        nothing.
        """
        for pattern, words in _INTERFACES:
            if re.match(pattern, self.name):
                return words
        return ""


_INTERFACES = (
    ("mmcblk", "eMMC or SD"),
    ("nvme", "NVMe"),
    ("vd", "a virtual disk: what lies below it is the host's"),
    ("loop", "a file of another filesystem"),
    ("dm-", "a device-mapper target"),
    ("md", "a RAID of the kernel's"),
    ("(zram|ram|pmem)", "memory"),
)


def read_mounts(table: str) -> Iterator[Mount]:
    """Yield the mounts of the text of a mountinfo, in its order; a line of another form is left
    out.
    """
    for line in table.splitlines():
        before, _, after = line.partition(" - ")
        fields, kinds = before.split(), after.split()
        if len(fields) < 6 or len(kinds) < 3:
            continue
        major, _, minor = fields[2].partition(":")
        options = dict.fromkeys([*fields[5].split(","), *kinds[2].split(",")])
        yield Mount(
            Path(_unescape(fields[4])),
            kinds[0],
            _unescape(kinds[1]),
            tuple(options),
            (int(major), int(minor)),
        )


def mount_under(path: Path, table: Path = Path("/proc/self/mountinfo")) -> Mount:
    """Return the mount that a path of this machine lies on; of an overlay that of its upper layer,
    where that is seen from here.

    Raises MachineError where the table of mounts names none.
    """
    real = Path(os.path.realpath(path))
    lines = table.read_text(errors="surrogateescape")
    # Of two mounts on one point, the later one hides the other.
    mounts = [each for each in read_mounts(lines) if real.is_relative_to(each.point)]
    if not mounts:
        raise MachineError(f"no mount of {table} has {real}", "mount /proc")
    _, mount = max(enumerate(mounts), key=lambda each: (len(each[1].point.parts), each[0]))
    named = (each.removeprefix("upperdir=") for each in mount.options if "upperdir=" in each)
    upper = Path(next(named, "") if mount.filesystem == "overlay" else "")
    if upper.is_absolute() and upper.is_dir():
        return replace(mount_under(upper, table), is_upper=True)
    major, minor = mount.device
    device = Path(f"/sys/dev/block/{major}:{minor}").resolve().name
    settings = _text(Path("/proc/fs") / mount.filesystem / device / "options") or ""
    return replace(mount, driver_options=tuple(settings.splitlines()))


def device_under(mount: Mount, sysfs: Path = Path("/sys")) -> BlockDevice | None:
    """Return the block device that a filesystem is on; None where it is on none.

    Btrfs and overlays have device numbers of their own: there the mount's source is looked at.
    """
    major, minor = mount.device
    folder = sysfs / f"dev/block/{major}:{minor}"
    if not folder.exists():
        try:
            source = os.stat(mount.source)
        except OSError:
            return None
        if not stat.S_ISBLK(source.st_mode):
            return None
        folder = sysfs / f"dev/block/{os.major(source.st_rdev)}:{os.minor(source.st_rdev)}"
        if not folder.exists():
            return None
    folder = folder.resolve()
    disk = folder.parent if (folder / "partition").exists() else folder
    queue = disk / "queue"
    counters = (_text(disk / "stat") or "").split()
    cache = _text(queue / "write_cache")
    below = sorted(each.name for each in disk.glob("slaves/*"))
    if file := _text(disk / "loop/backing_file"):
        below.append(file)
    return BlockDevice(
        name=disk.name,
        write_cache=None if cache is None else cache == "write back",
        fua=_flag(queue / "fua"),
        rotational=_flag(queue / "rotational"),
        logical_block_bytes=_number(_text(queue / "logical_block_size")),
        written_bytes=_counter(counters, _WRITTEN_SECTORS, SECTOR_BYTES),
        flushes=_counter(counters, _FLUSHES),
        wear=_wear(disk / "device"),
        below=tuple(below),
    )


def _wear(device: Path) -> str | None:
    """Return the wear that an eMMC or UFS device tells; NVMe tells it to nvme-cli alone."""
    if (life := _text(device / "life_time")) is not None:
        end = _text(device / "pre_eol_info")
        return f"life_time {life}" + (f", pre_eol_info {end}" if end else "")
    for folder in (device / "health_descriptor", *device.glob("../../../health_descriptor")):
        parts = [(name, _text(folder / name)) for name in
                 ("life_time_estimation_a", "life_time_estimation_b", "eol_info")]  # fmt: skip
        if any(value for _, value in parts):
            return ", ".join(f"{name} {value}" for name, value in parts if value)
    return None


def _unescape(text: str) -> str:
    """Return a field of mountinfo without its octal escapes: blank, tab, newline, backslash."""
    return re.sub(r"\\([0-7]{3})", lambda each: chr(int(each[1], 8)), text)


def _text(path: Path) -> str | None:
    try:
        return path.read_text().strip()
    except (OSError, UnicodeDecodeError):
        return None


def _number(text: str | None) -> int | None:
    return int(text) if text and text.isdecimal() else None


def _flag(path: Path) -> bool | None:
    number = _number(_text(path))
    return None if number is None else bool(number)


def _counter(counters: list[str], place: int, unit: int = 1) -> int | None:
    number = _number(counters[place]) if len(counters) > place else None
    return None if number is None else number * unit
