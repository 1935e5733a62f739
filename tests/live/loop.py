"""A new filesystem on a loop device, for tests of the tracer.

Without root, or on a kernel that lacks BTF or the filesystem, a test skips. Whatever else goes
wrong, of losetup, mkfs or mount, fails it: CI would not tell such a skip from a test.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

MAKE = {
    "ext4": ("mkfs.ext4", "-q", "-F", "-E", "lazy_itable_init=0,lazy_journal_init=0"),
    "xfs": ("mkfs.xfs", "-q", "-f"),
    "btrfs": ("mkfs.btrfs", "-q", "-f"),
}


@dataclass(frozen=True)
class Loop:
    """The device, and where its filesystem is mounted."""

    device: str
    directory: Path


def need_tracer() -> None:
    """Skip the test, saying why, where the kernel's tracer cannot be loaded."""
    if os.geteuid() != 0:
        pytest.skip("needs root")
    if not Path("/sys/kernel/btf/vmlinux").exists():
        pytest.skip("needs a kernel with BTF")


def need_filesystem(name: str) -> None:
    """Skip the test, saying why, where the kernel has no such filesystem."""
    subprocess.run(["modprobe", "--quiet", name], check=False)
    if name not in Path("/proc/filesystems").read_text().split():
        pytest.skip(f"this kernel has no {name}")


@contextlib.contextmanager
def mounted_loop(filesystem: str, folder: Path, *mkfs_options: str) -> Iterator[Loop]:
    """A filesystem of 600 MiB in the file `image`; all else is removed at the end."""
    need_tracer()
    need_filesystem(filesystem)
    image, directory = folder / "image", folder / "mounted"
    with image.open("wb") as file:
        file.truncate(600 << 20)
    directory.mkdir()
    with contextlib.ExitStack() as undo:
        device = _run("losetup", "--find", "--show", str(image)).strip()
        undo.callback(subprocess.run, ["losetup", "--detach", device], check=False)
        _run(*MAKE[filesystem], *mkfs_options, device)
        _run("mount", "-t", filesystem, device, str(directory))
        undo.callback(subprocess.run, ["umount", "--lazy", str(directory)], check=False)
        yield Loop(device, directory)


def _run(*command: str) -> str:
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    assert answer.returncode == 0, f"{' '.join(command)}: {answer.stderr.strip()}"
    return answer.stdout
