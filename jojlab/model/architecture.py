"""The architectures of guests: by each, the programs of this machine that a guest of it needs.

A case names one in its field `machine`. x86-64 is that of jojlab's own agent and of this machine;
what is said of another is needed only where it is asked for (docs/arm64.md).
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Architecture:
    """One of them; `debian` is Debian's name for it, `cross` begins the names of its tools.

    `qemu_package` and `cross_package` are packages of this machine, with QEMU and the compiler;
    `make_words` are what the kernel's build is told.
    """

    name: str
    debian: str
    qemu: str
    qemu_package: str
    cross: str = ""
    cross_package: str = "gcc"
    make_words: tuple[str, ...] = ()

    @property
    def gcc(self) -> str:
        """The compiler of its modules."""
        return f"{self.cross}gcc"

    @property
    def strip(self) -> str:
        """The program that drops debug data of its modules."""
        return f"{self.cross}strip"


X86_64 = Architecture("x86-64", "amd64", "qemu-system-x86_64", "qemu-system-x86")
_CROSS = "aarch64-linux-gnu-"
ARM64 = Architecture(
    "arm64", "arm64", "qemu-system-aarch64", "qemu-system-arm", _CROSS,
    "gcc-aarch64-linux-gnu", ("ARCH=arm64", f"CROSS_COMPILE={_CROSS}"),
)  # fmt: skip
ARCHITECTURES = {each.name: each for each in (X86_64, ARM64)}
