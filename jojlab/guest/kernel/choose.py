"""The kernel that the field `kernel` of a case means."""

from __future__ import annotations

from jojlab.foundation.cache import Cache
from jojlab.guest.kernel.built import built_kernel
from jojlab.guest.kernel.installed import installed_kernel
from jojlab.guest.kernel.kernel import Kernel
from jojlab.guest.kernel.named import named_kernel, read_named

# The kernel of the installed headers.
INSTALLED = "installed"


def check_kernel(name: str) -> None:
    """Raise UseError where there is no such kernel; nothing is downloaded."""
    if "/" in name:
        built_kernel(name)
    elif name != INSTALLED:
        read_named(name)


def chosen_kernel(cache: Cache, name: str) -> Kernel:
    """Return the kernel of that name, downloaded if need be; with a slash it is a build's path.

    Raises UseError where there is none, MachineError where it cannot be had.
    """
    if "/" in name:
        return built_kernel(name)
    return installed_kernel(cache) if name == INSTALLED else named_kernel(cache, name)
