"""The places of files that come with jojlab and are not Python: experiments, devices, schema,
sources of the kernel zone, the agent, and the VFS for SQLite.

A checkout uses its own files, beside the package. A wheel holds them as package data.
"""

from __future__ import annotations

import os
from pathlib import Path

from jojlab.foundation.errors import MachineError

PACKAGE = Path(__file__).resolve().parent.parent
_DATA = PACKAGE / "data"  # made by setup/wheel.py; no checkout has it
INSTALLED = _DATA.is_dir()
# The remedies where one of these files, or the agent, is missing.
RESTORE = "install jojlab again" if INSTALLED else "run joj from a whole checkout"
BUILD_AGENT = RESTORE if INSTALLED else "make setup"
_ROOT = _DATA if INSTALLED else PACKAGE.parent

EXPERIMENTS = _ROOT / "experiments"
DEVICES = _ROOT / "devices"
SCHEMA = _ROOT / "schema"
KERNELS = _ROOT / "kernels"
KERNEL = _ROOT / "kernel"
FLASH = KERNEL / "flash"
USER_MODE = KERNEL / "user_mode"
# What scripts of SQL may do with PRAGMAs: the agent has the same file.
PRAGMAS = _ROOT / "agent" / "src" / "sql_script" / "pragmas.txt"
# A checkout builds the agent too; a wheel holds it.
DEBIAN_PACKAGES = tuple(
    _ROOT / "setup" / name
    for name in ("packages.txt", *(() if INSTALLED else ("packages-agent.txt",)))
)
AGENT_CARGO = _ROOT / "agent" / "Cargo.toml"
# joj_wal.so and joj_wal_preload.so, as `make cure` builds them.
_CURE = _ROOT / "vfs" / "build"
# By the field `machine` of a case: Rust's name of the target, and the remedy where it is missing.
_AGENTS = {
    "x86-64": ("x86_64-unknown-linux-gnu", BUILD_AGENT),
    "arm64": ("aarch64-unknown-linux-gnu", "make agent-arm64, in a checkout"),
}


def agent_path(machine: str = "x86-64") -> Path:
    """Return the path of the agent; MachineError with the remedy when it is not there."""
    rust_target, remedy = _AGENTS[machine]
    if INSTALLED:
        agent = _DATA / ("joj-agent" if machine == "x86-64" else f"joj-agent-{machine}")
    else:
        target = Path(os.environ.get("CARGO_TARGET_DIR") or _ROOT / "target")
        agent = target / rust_target / "release" / "joj-agent"
    if not agent.is_file():
        raise MachineError(f"no agent at {agent}", remedy)
    return agent


def cure_folder() -> Path:
    """Return the folder of the VFS's libraries; MachineError when they are not there."""
    if not (_CURE / "joj_wal.so").is_file():
        raise MachineError(f"no joj_wal.so in {_CURE}", RESTORE if INSTALLED else "make cure")
    return _CURE
