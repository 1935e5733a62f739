"""What a benchmark would measure of a modelled device: builds kernel/flash/figures, the model in
user space driven by closed loops of requests, and runs it with a profile's parameters.
"""

from __future__ import annotations

import hashlib
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

from jojlab.device.profile import FIGURES
from jojlab.foundation.cache import Cache
from jojlab.foundation.errors import MachineError
from jojlab.foundation.places import FLASH, RESTORE
from jojlab.foundation.tools import need_tool, package_version, run_tool

_FILES = ("figures/*.c", "model/*.c", "model/*.h")
_COMPILE = ("-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror")


def measure_model(
    model: Mapping[str, int],
    cache: Cache | None = None,
    next_is: Callable[[str], None] = lambda _: None,
) -> dict[str, int]:
    """Return the figures (profile.FIGURES) of a device with these parameters.

    Bandwidth in bytes a second, times in ns of the device's own; the same on every machine.
    `next_is` is told which figure is being measured: ageing a device of 60 GB takes half a minute.
    Raises MachineError when the compiler or memory for the model's tables is missing.
    """
    program = _program(cache or Cache.default())
    words = [f"{name}={value}" for name, value in model.items()]
    figures: dict[str, int] = {}
    awaited = iter(FIGURES)
    pipe = subprocess.PIPE
    with subprocess.Popen([program, *words], stdout=pipe, stderr=pipe, text=True) as driven:
        assert driven.stdout and driven.stderr
        next_is(next(awaited))
        for line in driven.stdout:
            name, value = line.split()
            figures[name] = int(value)
            next_is(next(awaited, ""))
        complaint = driven.stderr.read().strip()  # a line at most: it cannot fill the pipe
    if driven.returncode != 0:
        raise MachineError(f"the model cannot be driven: {complaint}")
    assert list(figures) == list(FIGURES), "figures.c prints what profile.py lists"
    return figures


def _program(cache: Cache) -> Path:
    """The compiled program, built once per source and compiler."""
    files = sorted(path for pattern in _FILES for path in FLASH.glob(pattern))
    if not files:
        raise MachineError(f"no source of the flash model in {FLASH}", RESTORE)
    compiler = str(need_tool("gcc", "gcc"))
    digest = hashlib.sha256(package_version("gcc").encode())
    for path in files:
        digest.update(f"{path.relative_to(FLASH)}\0{path.stat().st_size}\0".encode())
        digest.update(path.read_bytes())

    def build(out: Path) -> None:
        sources = [str(path) for path in files if path.suffix == ".c"]
        command = [compiler, *_COMPILE, "-o", str(out / "figures"), *sources]
        run_tool(command, "build the flash model in user space")

    return cache.entry("modules", digest.hexdigest(), build) / "figures"
