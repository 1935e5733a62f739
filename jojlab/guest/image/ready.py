"""The image of this checkout: finds the agent that was built here, and makes the image with it."""

from __future__ import annotations

import os
from pathlib import Path

from jojlab.errors import MachineError
from jojlab.guest.cache import Cache
from jojlab.guest.image.build import NO_EXTRAS, Extras, Image, build_image

ROOT = Path(__file__).resolve().parents[3]
# Of the disks that QEMU emulates (jojlab/guest/wall_clock.py).
DRIVERS = Extras(("nvme", "virtio_pci", "virtio_scsi", "sd_mod", "sdhci_pci", "mmc_block"))
AGENT = Path("x86_64-unknown-linux-gnu") / "release" / "joj-agent"


def agent_path() -> Path:
    """Return the release build of the agent; MachineError with the line to run if there is none."""
    target = Path(os.environ.get("CARGO_TARGET_DIR") or ROOT / "target")
    agent = target / AGENT
    if not agent.is_file():
        raise MachineError(f"no agent at {agent}", "make setup")
    return agent


def ready_image(cache: Cache, extras: Extras = NO_EXTRAS) -> Image:
    """Return the image with this checkout's agent and flash device, built if need be."""
    return build_image(cache, agent_path(), ROOT / "kernel" / "flash", extras)


def ready_wall_image(cache: Cache) -> Image:
    """Return the image of the guest by the clock on the wall: drivers in place of the device."""
    return build_image(cache, agent_path(), None, DRIVERS)
