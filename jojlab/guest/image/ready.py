"""The images of this jojlab: made with its own agent and flash device.

Whether an image is still the one to use is seen by the stat data of everything that it was made of
(jojlab/foundation/cache.py). Only where one of these files has changed is all of it read.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from jojlab.foundation.cache import Cache, Sources, lock_entry, sha256
from jojlab.foundation.places import FLASH, KERNELS, PACKAGE, agent_path
from jojlab.foundation.tools import need_tool
from jojlab.guest.image.build import MKFS_PACKAGES, NO_EXTRAS, Extras, Image, build_image
from jojlab.guest.kernel.choose import INSTALLED
from jojlab.model.architecture import X86_64, Architecture
from jojlab.model.filesystems import FILESYSTEMS, RAW_NAND_FILESYSTEMS

# Of the disks that QEMU emulates (jojlab/guest/wall_clock.py); the self-test writes through an
# overlay there too.
DRIVERS = Extras(
    ("nvme", "virtio_pci", "virtio_scsi", "sd_mod", "sdhci_pci", "mmc_block", "overlay")
)
# The filesystems on raw NAND, and the modelled NAND.
RAW_NAND = Extras(
    tuple(module for name in RAW_NAND_FILESYSTEMS for module in FILESYSTEMS[name].modules),
    raw_nand=True,
)
# The same, with our own build of UBI and UBIFS.
CHOSEN_BUFFERS = replace(RAW_NAND, chosen_buffers=True)
# What makes an image.
_SOURCES = (
    PACKAGE / "guest" / "image",
    PACKAGE / "guest" / "kernel",
    PACKAGE / "foundation",
    PACKAGE / "model",
    PACKAGE / "model" / "filesystems",
)
# What decides which library a program loads, and where packages are looked up.
_VARIABLES = ("LD_LIBRARY_PATH", "LD_PRELOAD", "DPKG_ADMINDIR", "DPKG_ROOT")


@dataclass(frozen=True)
class _KnownImage:
    """An image as it is remembered."""

    fingerprint: str
    kernel: str
    initramfs: str
    manifest: dict[str, object]


def ready_image(
    cache: Cache,
    extras: Extras = NO_EXTRAS,
    kernel: str = INSTALLED,
    tell: Callable[[], None] = lambda: None,
    architecture: Architecture = X86_64,
    agent: Path | None = None,
) -> Image:
    """Return the image with jojlab's agent, or another, and flash device, built if need be; with
    DRIVERS that of the guest by the clock on the wall, which has them in place of the device.

    `kernel` and `architecture` are of chosen_kernel. `tell` is called before it is built.
    """
    agent = agent or agent_path(architecture.name)
    flash_source = None if extras == DRIVERS else FLASH
    build_it = partial(
        build_image, cache, agent, flash_source, extras,
        kernel_name=kernel, architecture=architecture,
    )  # fmt: skip

    def build(sources: Sources) -> _KnownImage:
        tell()
        sources.add([each for folder in _SOURCES for each in (folder, *folder.glob("*.py"))])
        sources.add([KERNELS, KERNELS / f"{kernel}.toml"])
        image = build_it(sources=sources)
        return _KnownImage(
            image.fingerprint, str(image.kernel), str(image.initramfs), dict(image.manifest)
        )

    wanted = {
        "agent": str(agent),
        "kernel": kernel,
        "flash_source": str(flash_source),
        "modules": extras.modules,
        "raw_nand": extras.raw_nand,
        "chosen_buffers": extras.chosen_buffers,
        "machine": architecture.name,
        "programs": _programs(extras, architecture),
        "variables": [os.environ.get(name) for name in _VARIABLES],
        "python": sys.version,
    }
    key = sha256(json.dumps(wanted, sort_keys=True).encode())
    known = cache.value("seen", key, _KnownImage, build)
    image = Image(known.fingerprint, Path(known.kernel), Path(known.initramfs), known.manifest)
    if lock_entry(image.kernel.parent) and lock_entry(image.initramfs.parent):
        return image
    return build_it()  # emptied just now


def _programs(extras: Extras, architecture: Architecture) -> Mapping[str, str]:
    """Return the path of every program that is looked up; MachineError when one is missing."""
    packages = {architecture.qemu: architecture.qemu_package}
    if architecture == X86_64:
        packages = {**MKFS_PACKAGES, **dict(extras.programs), **packages}
    else:
        packages[architecture.gcc] = architecture.cross_package
    return {name: str(need_tool(name, package)) for name, package in packages.items()}
