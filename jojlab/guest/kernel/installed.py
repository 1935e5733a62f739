"""The kernel of this machine's distribution: the newest installed kernel headers, and the kernel
package of exactly the same version, which apt-get downloads (without root).
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from jojlab.foundation.cache import Cache
from jojlab.foundation.errors import FULL_BELOW_BYTES, MachineError
from jojlab.foundation.tools import package_version, run_tool
from jojlab.guest.kernel.kernel import source_package, unpack_packages
from jojlab.model.architecture import X86_64, Architecture

HEADERS_ROOT = Path("/usr/src")
# The main flavours of Debian and of Ubuntu; others lack filesystems or behave differently.
_MAIN_FLAVOUR = r"\d(?!.*-(?:cloud|rt)-).*-"
_UBUNTUS = "generic"
# What ends the release of a kernel of arm64 whose pages are of 16 KiB.
PAGES_16_KIB = "-16k"
_INSTALL_HEADERS = "sudo apt-get install linux-headers-amd64  (Ubuntu: linux-headers-generic)"


@dataclass(frozen=True)
class InstalledKernel:
    """The kernel of the installed headers: its release, package version, headers, packages."""

    release: str
    version: str
    headers_folder: Path
    files: Sequence[Path]
    architecture: Architecture = X86_64
    make_words: Sequence[str] = ()

    def unpack(self, folder: Path) -> None:
        """See Kernel."""
        unpack_packages(self.files, folder)

    def headers(self, folder: Path) -> Path:
        """See Kernel; `folder` stays empty."""
        return self.headers_folder

    def download_source(self, folder: Path) -> None:
        """See Kernel."""
        _apt_download([source_package(self.release)], self.version, folder)


def installed_kernel(cache: Cache, headers_root: Path = HEADERS_ROOT) -> InstalledKernel:
    """Return the kernel of the newest installed headers; its packages are downloaded once.

    Raises MachineError when the headers are missing or a package cannot be had.
    """
    release, version = installed_version(headers_root)
    name = f"linux-image-{release}"

    def download(folder: Path) -> None:
        _apt_download(_parts(name, release), version, folder)

    entry = cache.entry("packages", f"{name}_{version.replace(':', '%3a')}", download)
    headers = headers_root / f"linux-headers-{release}"
    return InstalledKernel(release, version, headers, sorted(entry.glob("*.deb")))


def installed_version(headers_root: Path = HEADERS_ROOT) -> tuple[str, str]:
    """Return release and version of the newest installed headers; MachineError without any."""
    release = newest_release(
        [path.name.removeprefix("linux-headers-") for path in headers_root.glob("linux-headers-*")]
    )
    if release is None:
        raise MachineError(f"no kernel headers in {headers_root}", _INSTALL_HEADERS)
    return release, package_version(f"linux-headers-{release}")


def newest_release(names: Sequence[str], architecture: Architecture = X86_64) -> str | None:
    """Return the newest kernel release of a main flavour among `names`, by its numbers."""
    others = f"|{_UBUNTUS}" if architecture == X86_64 else f"|{architecture.debian}{PAGES_16_KIB}"
    flavours = f"{architecture.debian}{others}"
    main = re.compile(f"{_MAIN_FLAVOUR}(?:{flavours})")
    releases = [name for name in names if main.fullmatch(name)]
    return max(releases, key=lambda name: [int(n) for n in re.findall(r"\d+", name)], default=None)


def _parts(name: str, release: str) -> list[str]:
    """Return the packages that hold a kernel.

    From Linux 6.17 on Debian has them in three parts. Ubuntu has the modules apart, and those of
    F2FS, NILFS2 and UBIFS in a package that the image does not depend on.
    """
    depends = run_tool(["apt-cache", "depends", name], f"look {name} up")
    own = re.findall(rf"Depends: (linux-(?:binary|modules)-{re.escape(release)})\n", depends)
    extra = [f"linux-modules-extra-{release}"] if release.endswith(f"-{_UBUNTUS}") else []
    return [name, *own, *extra]


def _apt_download(names: Sequence[str], version: str, folder: Path) -> None:
    # As root apt warns that its sandbox's user cannot write here; as another it has no sandbox.
    command = ["apt-get", "-q", "-o", "APT::Sandbox::User=root", "download"]
    wanted = [f"{name}={version}" for name in names]
    try:
        run_tool([*command, *wanted], f"download {' '.join(wanted)}", cwd=folder)
    except MachineError as error:
        if shutil.disk_usage(folder).free < FULL_BELOW_BYTES:
            raise  # the cache tells of its full disk
        raise MachineError(
            error.message,
            f"sudo apt-get update && {_INSTALL_HEADERS}"
            "  (the headers may be older than what the archive still offers)",
        ) from error
