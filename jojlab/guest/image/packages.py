"""Finds the kernel to use: the newest installed kernel headers, and the kernel package of exactly
the same version, which apt-get downloads (without root; nothing else is downloaded).
"""

from __future__ import annotations

import re
import shutil
from dataclasses import dataclass
from pathlib import Path

from jojlab.foundation.cache import Cache
from jojlab.foundation.disk import FULL_BELOW_BYTES
from jojlab.foundation.errors import MachineError
from jojlab.foundation.tools import package_version, run_tool

HEADERS_ROOT = Path("/usr/src")
# Debian's main flavour; the cloud and rt flavours lack filesystems or behave differently.
_HEADERS_NAME = re.compile(r"linux-headers-(\d(?!.*-(?:cloud|rt)-).*-amd64)")
_INSTALL_HEADERS = "sudo apt-get install linux-headers-amd64"


@dataclass(frozen=True)
class KernelPackage:
    """A kernel that modules can be built for: its release, package version, headers, package."""

    release: str
    version: str
    headers: Path
    package: Path


def find_kernel(cache: Cache, headers_root: Path = HEADERS_ROOT) -> KernelPackage:
    """The kernel of the newest installed headers; its package is downloaded once.

    Raises MachineError when the headers are missing or the package cannot be had.
    """
    release = newest_release([path.name for path in headers_root.glob("linux-headers-*")])
    if release is None:
        raise MachineError(f"no kernel headers in {headers_root}", _INSTALL_HEADERS)
    version = package_version(f"linux-headers-{release}")
    name = f"linux-image-{release}"

    def download(folder: Path) -> None:
        _apt_download(f"{name}={version}", folder)

    entry = cache.entry("packages", f"{name}_{version.replace(':', '%3a')}", download)
    return KernelPackage(
        release, version, headers_root / f"linux-headers-{release}", next(entry.glob("*.deb"))
    )


def newest_release(names: list[str]) -> str | None:
    """The newest kernel release among names of header folders, by its numbers."""
    releases = [match[1] for name in names if (match := _HEADERS_NAME.fullmatch(name))]
    return max(
        releases,
        key=lambda release: [int(n) for n in re.findall(r"\d+", release)][:4],
        default=None,
    )


def _apt_download(wanted: str, folder: Path) -> None:
    # As root apt warns that its sandbox's user cannot write here; as another it has no sandbox.
    command = ["apt-get", "-q", "-o", "APT::Sandbox::User=root", "download", wanted]
    try:
        run_tool(command, f"download {wanted}", cwd=folder)
    except MachineError as error:
        if shutil.disk_usage(folder).free < FULL_BELOW_BYTES:
            raise  # the cache tells of its full disk
        raise MachineError(
            error.message,
            "sudo apt-get update && sudo apt-get install linux-headers-amd64"
            "  (the headers may be older than what the archive still offers)",
        ) from error
