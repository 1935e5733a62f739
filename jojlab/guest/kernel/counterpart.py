"""The kernel of this machine's distribution for another architecture: of the release and version of
the installed headers, from the suites that this machine installs from; nothing is installed.
"""

from __future__ import annotations

from pathlib import Path

from jojlab.foundation.cache import Cache
from jojlab.foundation.errors import MachineError
from jojlab.guest.kernel.archive import own_sources
from jojlab.guest.kernel.installed import installed_version
from jojlab.guest.kernel.named import ArchiveKernel, fetch_kernel, kernel_of
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
