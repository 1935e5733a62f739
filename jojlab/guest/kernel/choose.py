"""Chooses the kernel of a guest by its name; of arm64, the one of the same version."""

from __future__ import annotations

from pathlib import Path

from jojlab.foundation.cache import Cache
from jojlab.foundation.errors import MachineError, UseError
from jojlab.guest.kernel.archive import own_sources
from jojlab.guest.kernel.built import built_kernel
from jojlab.guest.kernel.installed import installed_kernel, installed_version
from jojlab.guest.kernel.kernel import Kernel
from jojlab.guest.kernel.named import (
    ArchiveKernel,
    fetch_kernel,
    kernel_of,
    named_kernel,
    read_named,
)
from jojlab.model.architecture import X86_64, Architecture


def counterpart_kernel(cache: Cache, architecture: Architecture) -> ArchiveKernel:
    """Return it, downloaded once.

    Raises MachineError when there are no installed headers, or the archive has another version.
    """
    there, version = installed_version()
    release = f"{there.removesuffix(X86_64.debian)}{architecture.debian}"

    def build(folder: Path) -> None:
        sources = own_sources()
        fetch_kernel(cache, sources, release, architecture, folder)
        found = kernel_of(folder, "", architecture).version
        if found != version:
            raise MachineError(
                f"the archive has Linux {found} for {architecture.name}; the installed headers are "
                f"of {version}",
                "sudo apt-get update && sudo apt-get install linux-headers-amd64",
            )

    name = f"linux-image-{release}_{version.replace(':', '%3a')}"
    return kernel_of(cache.entry("packages", name, build), "", architecture)


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
