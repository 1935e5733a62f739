"""Where the files are that come with jojlab and are not Python: experiments, devices, schema,
sources of the kernel zone, and the agent.

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
# A checkout builds the agent too; a wheel holds it.
DEBIAN_PACKAGES = tuple(
    _ROOT / "setup" / name
    for name in ("packages.txt", *(() if INSTALLED else ("packages-agent.txt",)))
)
AGENT_CARGO = _ROOT / "agent" / "Cargo.toml"
_BUILT_AGENT = Path("x86_64-unknown-linux-gnu") / "release" / "joj-agent"


def agent_path() -> Path:
    """Return the path of the agent; MachineError with the remedy when it is not there."""
    if INSTALLED:
        agent = _DATA / "joj-agent"
    else:
        target = Path(os.environ.get("CARGO_TARGET_DIR") or _ROOT / "target")
        agent = target / _BUILT_AGENT
    if not agent.is_file():
        raise MachineError(f"no agent at {agent}", BUILD_AGENT)
    return agent
