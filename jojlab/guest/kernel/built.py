"""A kernel of one's own: a folder in which `make bzImage modules` was run; it is only read.

Its version is a hash of what was built, so that a result names the kernel by its contents, and one
that is built again is another kernel.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from jojlab.foundation.errors import MachineError, UseError
from jojlab.foundation.hashing import sha256, sha256_file
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
        told = (f"{path.relative_to(self.folder)} {sha256_file(path)}\n" for path in self.files)
        return f"build-{sha256(''.join(told).encode())[:16]}"

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

    @property
    def architecture(self) -> Architecture:
        """See Kernel."""
        return X86_64

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
