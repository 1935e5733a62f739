"""The kernel that the field `kernel` of a case means."""

from __future__ import annotations

from jojlab.foundation.cache import Cache
from jojlab.foundation.errors import UseError
from jojlab.guest.kernel.built import built_kernel
from jojlab.guest.kernel.counterpart import counterpart_kernel
from jojlab.guest.kernel.installed import installed_kernel
from jojlab.guest.kernel.kernel import Kernel
from jojlab.guest.kernel.named import named_kernel, read_named
from jojlab.model.architecture import X86_64, Architecture

# The kernel of the installed headers.
INSTALLED = "installed"


def check_kernel(name: str, architecture: Architecture = X86_64) -> None:
    """Raise UseError where there is no such kernel; nothing is downloaded."""
    if "/" in name:
        if architecture != X86_64:
            raise UseError(
                f"kernel {name}: a kernel of one's own is for machine={X86_64.name}",
                f"with machine={architecture.name} take installed, or a name of joj list kernels",
            )
        built_kernel(name)
    elif name != INSTALLED:
        is_old = read_named(name).release.startswith("5.")
        # The tracer knows block devices there by a variable, of which Debian's kernel of arm64
        # tells no address: metadata is told as raw-device (docs/arm64.md).
        if is_old and architecture != X86_64:
            raise UseError(
                f"kernel {name}: the tracer is wrong about Linux 5 of {architecture.name}",
                "take kernel=installed, or one of Linux 6 and later",
            )


def chosen_kernel(cache: Cache, name: str, architecture: Architecture = X86_64) -> Kernel:
    """Return the kernel of that name, downloaded if need be; with a slash it is a build's path.

    INSTALLED is, on another architecture than this machine's, the kernel of the same version there.

    Raises UseError where there is none, MachineError where it cannot be had.
    """
    if "/" in name:
        return built_kernel(name)
    if name != INSTALLED:
        return named_kernel(cache, name, architecture)
    if architecture != X86_64:
        return counterpart_kernel(cache, architecture)
    return installed_kernel(cache)
