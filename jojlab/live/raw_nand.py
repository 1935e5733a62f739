"""Raw NAND of this machine: says whether a run may have it, and loads UBI and UBIFS for it.

Reads /sys/class/mtd (Documentation/ABI/testing/sysfs-class-mtd) and /sys/module.
"""

from __future__ import annotations

import os
import platform
from pathlib import Path

from jojlab.foundation.cache import Cache
from jojlab.foundation.errors import MachineError, UseError
from jojlab.foundation.places import KERNEL
from jojlab.foundation.tools import need_tool, run_tool
from jojlab.guest.image.chosen_buffers import FOLDER, MODULES, chosen_buffer_modules
from jojlab.guest.kernel.installed import installed_kernel

_MTD = Path("/sys/class/mtd")
_SYSTEM_MODULES = Path("/sys/module")
_TYPES = ("nand", "mlc-nand")


def refuse_nand(node: Path | None, *, may_destroy: bool, mtd: Path = _MTD) -> None:
    """Raise UseError or MachineError unless `node` is raw NAND that a run may have."""
    parts = {Path("/dev") / name: title for name, title in _parts(mtd).items()}
    if not parts:
        raise MachineError(
            "--clock wall: this machine has no raw NAND: the kernel lists none in /proc/mtd",
            "it needs NAND without a controller, and the driver of its host; "
            "without --clock wall the cases run on modelled NAND",
        )
    listed = ", ".join(f"{path} ({title})" for path, title in parts.items())
    if node is None:
        raise UseError("--clock wall: no --nand", f"one of: {listed}")
    if node not in parts:
        raise UseError(f"--nand {node}: no raw NAND of this machine", f"one of: {listed}")
    if not may_destroy:
        raise UseError(
            f"--nand {node}: everything on it ({parts[node]}) would be lost",
            "give --destroy-data if it may be",
        )
    if os.geteuid() != 0:
        raise MachineError("--clock wall: only root may use raw NAND", "run it by sudo")


def _parts(mtd: Path) -> dict[str, str]:
    found = {}
    for folder in sorted(mtd.glob("mtd*")):
        if not folder.name.removeprefix("mtd").isdigit():
            continue  # mtd0ro is the same device
        facts = {name: (folder / name).read_text().strip() for name in ("type", "name", "size")}
        if facts["type"] in _TYPES:
            found[folder.name] = f"{facts['name']}, {int(facts['size']) >> 20} MiB"
    return found


def load_ubifs(cache: Cache, *, chosen_buffers: bool) -> None:
    """Have UBI and UBIFS in the kernel, with `chosen_buffers` our own build of both (kernel/ubi).

    Raises MachineError where the kernel has others, or none can be built for it.
    """
    modprobe = str(need_tool("modprobe", "kmod"))
    if not chosen_buffers:
        run_tool([modprobe, MODULES[-1]], "load UBIFS")
        return
    loaded = [name for name in MODULES if (_SYSTEM_MODULES / name).exists()]
    if all((_SYSTEM_MODULES / name / "parameters" / "allocator").exists() for name in MODULES):
        return
    if loaded:
        raise MachineError(
            f"{' and '.join(loaded)} in this kernel cannot choose the allocator of their buffers",
            f"unload them (modprobe -r {' '.join(reversed(MODULES))}), so that our own build takes "
            "their place; where they are built in, build them as modules by kernel/ubi "
            "(docs/raw-nand.md)",
        )
    kernel = installed_kernel(cache)
    if kernel.release != platform.release():
        raise MachineError(
            f"this machine runs Linux {platform.release()}, and the newest installed headers are "
            f"of {kernel.release}",
            "boot that kernel, or build UBI and UBIFS by kernel/ubi and load them "
            "(docs/raw-nand.md)",
        )
    built = chosen_buffer_modules(cache, kernel, KERNEL / FOLDER)
    for name in _needed_modules(modprobe):
        run_tool([modprobe, name], f"load {name}")
    insmod = str(need_tool("insmod", "kmod"))
    for path in built:
        run_tool([insmod, str(path)], f"load {path.name}")


def _needed_modules(modprobe: str) -> list[str]:
    """Return what UBI and UBIFS need, in the order in which it is to be loaded."""
    lines = run_tool([modprobe, "--show-depends", MODULES[-1]], "look UBIFS up").splitlines()
    names = [Path(line.split()[1]).name.partition(".")[0] for line in lines if "insmod" in line]
    return [name for name in names if name not in MODULES]
