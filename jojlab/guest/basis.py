"""The hash of what the files that a guest hands out depend on. Loads nothing that running a guest
needs.
"""

from __future__ import annotations

from jojlab.guest import qemu
from jojlab.guest.image.build import Image
from jojlab.guest.machine import Machine


def basis(image: Image, machine: Machine) -> str:
    """Return the hash of all that the files depend on beside what the guest is given."""
    return qemu.run_key(image, machine)
