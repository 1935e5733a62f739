"""A kernel as the image needs it, whatever it comes from."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from jojlab.foundation.errors import MachineError
from jojlab.foundation.tools import run_tool
from jojlab.model.architecture import Architecture


class Kernel(Protocol):
    """A kernel that guests boot and modules can be built for."""

    @property
    def release(self) -> str:
        """As uname -r says."""

    @property
    def version(self) -> str:
        """The version of its package."""

    @property
    def files(self) -> Sequence[Path]:
        """The files that it is unpacked from."""

    def unpack(self, folder: Path) -> None:
        """Put the image and lib/modules into `folder`, as on the root of a system."""

    @property
    def architecture(self) -> Architecture:
        """What it runs on."""

    @property
    def make_words(self) -> Sequence[str]:
        """What make is told beside the folders, where it builds a module."""

    def headers(self, folder: Path) -> Path:
        """Return the folder that modules are built with (make -C), unpacked if need be.

        It is in `folder` then.
        """

    def download_source(self, folder: Path) -> None:
        """Put the package with the kernel's source into `folder`."""


def unpack_packages(packages: Sequence[Path], folder: Path) -> None:
    """Unpack Debian packages into `folder`; nothing is installed."""
    for package in packages:
        run_tool(["dpkg-deb", "-x", str(package), str(folder)], f"unpack {package.name}")


def packed_image(folder: Path, release: str) -> Path:
    """Return the packed image of an unpacked kernel; MachineError where there is none."""
    places = (f"boot/vmlinuz-{release}", f"usr/lib/modules/{release}/vmlinuz")
    for place in places:
        if (folder / place).is_file():
            return folder / place
    raise MachineError(f"the kernel {release} has neither {' nor '.join(places)}")


def source_package(release: str) -> str:
    """Return the name of the package with the source of a kernel of this release."""
    return f"linux-source-{'.'.join(release.split('.')[:2])}"
