"""The images of this jojlab: made with its own agent and flash device."""

from __future__ import annotations

from jojlab.foundation.cache import Cache
from jojlab.foundation.places import FLASH, agent_path
from jojlab.guest.image.build import NO_EXTRAS, Extras, Image, build_image

# Of the disks that QEMU emulates (jojlab/guest/wall_clock.py).
DRIVERS = Extras(("nvme", "virtio_pci", "virtio_scsi", "sd_mod", "sdhci_pci", "mmc_block"))


def ready_image(cache: Cache, extras: Extras = NO_EXTRAS) -> Image:
    """Return the image with jojlab's agent and flash device, built if need be."""
    return build_image(cache, agent_path(), FLASH, extras)


def ready_wall_image(cache: Cache) -> Image:
    """Return the image of the guest by the clock on the wall: drivers in place of the device."""
    return build_image(cache, agent_path(), None, DRIVERS)
