"""Chooses the kernel of a guest by its name; of arm64, the one of the same version.

A kernel of one's own is a folder in which `make bzImage modules` was run; it is only read. Its
version is a hash of what was built, so that a result names the kernel by its contents, and one that
is built again is another kernel.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from jojlab.foundation.cache import Cache, sha256, sha256_file
from jojlab.foundation.errors import MachineError, UseError
from jojlab.guest.kernel.archive import own_sources
from jojlab.guest.kernel.catalogue import (
    ArchiveKernel,
    fetch_kernel,
    kernel_of,
    named_kernel,
    read_named,
)
from jojlab.guest.kernel.installed import installed_kernel, installed_version
from jojlab.guest.kernel.kernel import Kernel
from jojlab.model.architecture import X86_64, Architecture

_IMAGE = "arch/x86/boot/bzImage"
_RELEASE = "include/generated/utsrelease.h"
_ORDER = "modules.order"
_CONFIG = ".config"
# The image, what it is configured by, what modules are built with, and the list of modules.
_NEEDED = (_IMAGE, _CONFIG, "Makefile", "Module.symvers", _RELEASE, _ORDER, "modules.builtin")
_BUILD = "make -j4 bzImage modules, for x86-64"

# Without these a guest does not boot, or nothing can be traced in it.
_OPTIONS = ("PVH", "BLK_DEV_INITRD", "MODULES", "HIGH_RES_TIMERS", "BPF_SYSCALL", "BPF_EVENTS",
            "DEBUG_INFO_BTF")  # fmt: skip


@dataclass(frozen=True)
class BuiltKernel:
    """The kernel that was built in `folder`, an absolute path."""

    folder: Path
    architecture: Architecture = X86_64

    @cached_property
    def release(self) -> str:
        """See Kernel."""
        found = re.search(r'#define UTS_RELEASE "([^"/\s]+)"', (self.folder / _RELEASE).read_text())
        if found is None:
            raise MachineError(f"{self.folder / _RELEASE} names no release", _BUILD)
        return found[1]

    @cached_property
    def version(self) -> str:
        """See Kernel: a hash of its files."""
        lines = (f"{path.relative_to(self.folder)} {sha256_file(path)}\n" for path in self.files)
        return f"build-{sha256(''.join(lines).encode())[:16]}"

    @cached_property
    def files(self) -> Sequence[Path]:
        """See Kernel."""
        return [*(self.folder / name for name in _NEEDED), *self._modules.values()]

    @cached_property
    def _modules(self) -> dict[str, Path]:
        """The modules, by their paths beneath lib/modules/RELEASE/kernel."""
        found = {}
        for line in (self.folder / _ORDER).read_text().split():
            # With kernel/ before Linux 5.3, and the name of the object from 6.3 on.
            name = re.sub(r"\.o$", ".ko", line)
            inside = name.removeprefix("kernel/")
            file = self.folder / (name if (self.folder / name).is_file() else inside)
            if ".." in Path(name).parts or not file.is_file():
                raise MachineError(f"{self.folder / _ORDER}: there is no {name}", _BUILD)
            found[inside] = file
        return found

    def unpack(self, folder: Path) -> None:
        """See Kernel."""
        (folder / "boot").mkdir()
        shutil.copyfile(self.folder / _IMAGE, folder / "boot" / f"vmlinuz-{self.release}")
        tree = folder / "lib" / "modules" / self.release
        for inside, file in self._modules.items():
            link = tree / "kernel" / inside
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(file)
        for name in (_ORDER, "modules.builtin"):
            shutil.copyfile(self.folder / name, tree / name)

    @cached_property
    def make_words(self) -> Sequence[str]:
        """See Kernel."""
        by_clang = "CONFIG_CC_IS_CLANG=y\n" in (self.folder / _CONFIG).read_text()
        # Types for BPF need pahole, and are stripped from the module anyway.
        return (*(["LLVM=1"] if by_clang else []), "CONFIG_DEBUG_INFO_BTF_MODULES=")

    def headers(self, folder: Path) -> Path:
        """See Kernel; `folder` stays empty."""
        return self.folder

    def download_source(self, folder: Path) -> None:
        """See Kernel: there is none to be had."""
        raise MachineError(
            f"what is asked for is built of the kernel's source, and {self.folder} is a build",
            "take kernel=installed, or a name of joj list kernels",
        )


def built_kernel(name: str) -> BuiltKernel:
    """Return the kernel that was built in a folder, of which `name` is the path.

    Raises UseError naming the file or the option that is missing.
    """
    folder = Path(name).resolve()
    if not folder.is_dir():
        raise UseError(f"kernel {name}: no such folder", f"a folder with {_BUILD}")
    for file in _NEEDED:
        if not (folder / file).is_file():
            raise UseError(f"kernel {name}: it has no {file}", f"there: {_BUILD}")
    config = (folder / _CONFIG).read_text()
    missing = [option for option in _OPTIONS if f"CONFIG_{option}=y\n" not in config]
    if missing:
        raise UseError(
            f"kernel {name}: {_CONFIG} lacks {', '.join(f'CONFIG_{it}=y' for it in missing)}",
            f"there: scripts/config -e {' -e '.join(missing)} && make olddefconfig && {_BUILD}",
        )
    return BuiltKernel(folder)


def counterpart_kernel(cache: Cache, architecture: Architecture) -> ArchiveKernel:
    """Return it, downloaded once; MachineError without headers, or without their version."""
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
