"""A filesystem on a loop device, and copies of its image: what a power cut leaves that loses
nothing. For the scripts beside this file; they need root, and tools of the distribution alone.
"""

from __future__ import annotations

import contextlib
import platform
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

SECTOR_BYTES = 512
_IMAGE_BYTES = 600 << 20


def run(*command: object, may_fail: bool = False) -> subprocess.CompletedProcess[str]:
    """Return what a command printed, and how it ended; a failure ends the script with 2."""
    words = [str(word) for word in command]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode and not may_fail:
        print(f"{' '.join(words)}: {done.stderr.strip()}", file=sys.stderr)
        sys.exit(2)
    return done


@contextlib.contextmanager
def folder() -> Iterator[Path]:
    """Yield a folder for images, which is removed at the end."""
    with tempfile.TemporaryDirectory(prefix="finding-") as name:
        yield Path(name)


@contextlib.contextmanager
def loop_device(image: Path) -> Iterator[str]:
    """Yield the device of a new image of 600 MiB."""
    with image.open("wb") as file:
        file.truncate(_IMAGE_BYTES)
    device = run("losetup", "--find", "--show", image).stdout.strip()
    try:
        yield device
    finally:
        run("losetup", "--detach", device)


@contextlib.contextmanager
def new_filesystem(image: Path, filesystem: str, *mkfs_options: str) -> Iterator[tuple[str, Path]]:
    """Yield the device of a new filesystem, and where it is mounted."""
    with loop_device(image) as device:
        run(f"mkfs.{filesystem}", "-q", *mkfs_options, device)
        with mount(device, filesystem) as at:
            yield device, at


@contextlib.contextmanager
def mount(device: str, filesystem: str) -> Iterator[Path]:
    """Yield where a filesystem is mounted."""
    with tempfile.TemporaryDirectory(prefix="mounted-") as name:
        run("mount", "-t", filesystem, device, name)
        try:
            yield Path(name)
        finally:
            run("umount", name)


@contextlib.contextmanager
def mounted_copy(image: Path) -> Iterator[Path | None]:
    """Yield where an image is mounted, or None where the kernel refuses it."""
    with tempfile.TemporaryDirectory(prefix="mounted-") as name:
        if run("mount", "-o", "loop", image, name, may_fail=True).returncode:
            yield None
            return
        try:
            yield Path(name)
        finally:
            run("umount", name)


def copy(image: Path, name: str) -> Path:
    """Return a copy of an image, as it is at this moment."""
    path = image.with_name(name)
    run("cp", "--sparse=always", image, path)
    return path


def need_filesystem(name: str) -> None:
    """End the script with 0 where this kernel has no such filesystem."""
    run("modprobe", "--quiet", name, may_fail=True)
    if name not in Path("/proc/filesystems").read_text().split():
        print(f"Linux {platform.release()}: not tried: this kernel has no {name}")
        sys.exit(0)


def verdict(is_faulty: bool, words: str) -> None:
    """Print the verdict and end: 1 where the fault is here, 0 where it is not."""
    print(f"Linux {platform.release()}: {'FAULT' if is_faulty else 'no fault'}: {words}")
    sys.exit(is_faulty)
