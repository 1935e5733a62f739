"""Finds the kernel to use: the newest installed kernel headers, and the kernel package of exactly
the same version, which apt-get downloads (without root; nothing else is downloaded).
"""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from jojlab.errors import MachineError
from jojlab.guest.cache import FULL_BELOW_BYTES, Cache

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


def package_version(name: str) -> str:
    """The version of an installed package; MachineError when it is not installed."""
    status, _, version = dpkg_query("${db:Status-Status} ${Version}", name).partition(" ")
    if status != "installed":
        raise MachineError(f"the package {name} is not installed", f"sudo apt-get install {name}")
    return version


def dpkg_query(form: str, name: str) -> str:
    """What dpkg-query(1) says of a package in the form asked for; nothing when it is unknown."""
    command = ["dpkg-query", "-W", "-f", form, name]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout
    except FileNotFoundError:
        raise MachineError("dpkg-query is missing", "use Debian 12, or a container of it") from None


def need_tool(name: str, package: str) -> Path:
    """The path of a program; MachineError naming its package when it is missing.

    Debian keeps some tools in sbin folders that are not on every user's PATH.
    """
    found = shutil.which(name) or shutil.which(name, path="/usr/sbin:/sbin")
    if found is None:
        raise MachineError(f"{name} is not installed", f"sudo apt-get install {package}")
    return Path(found)


def run_tool(command: list[str], purpose: str, cwd: Path | None = None) -> str:
    """Runs a tool and returns what it prints; MachineError with its last lines when it fails."""
    result = subprocess.run(command, capture_output=True, text=True, errors="replace", cwd=cwd)
    if result.returncode != 0:
        last = "\n".join((result.stderr or result.stdout).splitlines()[-15:])
        raise MachineError(f"cannot {purpose}: {command[0]} failed:\n{last}")
    return result.stdout


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
