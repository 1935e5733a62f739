"""What a benchmark would measure of a modelled device: builds kernel/flash/figures or
kernel/nand/figures, the model in user space driven by closed loops of requests, and runs it with a
profile's parameters.
"""

from __future__ import annotations

import hashlib
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

from jojlab.device.profile import BLOCK, INTERFACES, RAW_NAND
from jojlab.foundation.cache import Cache
from jojlab.foundation.errors import MachineError
from jojlab.foundation.places import KERNEL, RESTORE
from jojlab.foundation.tools import need_tool, package_version, run_tool

# In the kernel zone, by interface.
_FILES = {
    BLOCK: ("flash/figures/*.c", "flash/model/*.c", "flash/model/*.h"),
    RAW_NAND: (
        *("nand/figures/*.c", "nand/model/*.c", "nand/model/*.h"),
        *("flash/model/die.c", "flash/model/nand.c", "flash/model/*.h"),
    ),
}
_COMPILE = ("-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror")


def measure_model(
    model: Mapping[str, int],
    cache: Cache | None = None,
    next_is: Callable[[str], None] = lambda _: None,
    interface: str = BLOCK,
) -> dict[str, int]:
    """Return the figures (of profile.INTERFACES) of a device with these parameters.

    Bandwidth in bytes a second, times in ns of the device's own; the same on every machine.
    `next_is` is told which figure is being measured: ageing a device of 60 GB takes half a minute.
    Raises MachineError when the compiler or memory for the model's tables is missing.
    """
    program = _program(cache or Cache.default(), interface)
    known = INTERFACES[interface].figures
    words = [f"{name}={value}" for name, value in model.items()]
    figures: dict[str, int] = {}
    awaited = iter(known)
    pipe = subprocess.PIPE
    with subprocess.Popen([program, *words], stdout=pipe, stderr=pipe, text=True) as driven:
        assert driven.stdout
        assert driven.stderr
        next_is(next(awaited))
        for line in driven.stdout:
            name, value = line.split()
            figures[name] = int(value)
            next_is(next(awaited, ""))
        complaint = driven.stderr.read().strip()  # a line at most: it cannot fill the pipe
    if driven.returncode != 0:
        raise MachineError(f"the model cannot be driven: {complaint}")
    assert list(figures) == list(known), "figures.c prints what profile.py lists"
    return figures


def _program(cache: Cache, interface: str) -> Path:
    """The compiled program, built once per source and compiler."""
    files = sorted(path for pattern in _FILES[interface] for path in KERNEL.glob(pattern))
    if not files:
        raise MachineError(f"no source of the flash model in {KERNEL}", RESTORE)
    compiler = str(need_tool("gcc", "gcc"))
    digest = hashlib.sha256(package_version("gcc").encode())
    for path in files:
        digest.update(f"{path.relative_to(KERNEL)}\0{path.stat().st_size}\0".encode())
        digest.update(path.read_bytes())

    def build(out: Path) -> None:
        sources = [str(path) for path in files if path.suffix == ".c"]
        command = [compiler, *_COMPILE, "-o", str(out / "figures"), *sources]
        run_tool(command, "build the flash model in user space")

    return cache.entry("modules", digest.hexdigest(), build) / "figures"
