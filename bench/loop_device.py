"""A block device over memory, for loads that no real disk shall slow down; and ext4 on it."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

MEMORY = Path("/dev/shm")


@contextlib.contextmanager
def loop_device(size_bytes: int) -> Iterator[str]:
    """A loop device of so many bytes, which are there."""
    with TemporaryDirectory(prefix="joj-", dir=MEMORY) as folder:
        image = Path(folder) / "image"
        with image.open("wb") as file:
            os.posix_fallocate(file.fileno(), 0, size_bytes)
        command = ["losetup", "--find", "--show", str(image)]
        device = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
        try:
            yield device
        finally:
            subprocess.run(["losetup", "--detach", device], check=False)


@contextlib.contextmanager
def new_ext4(device: str, *options: str) -> Iterator[Path]:
    """A new ext4 on a device, made with these options; nothing of it is written later."""
    lazy = "lazy_itable_init=0,lazy_journal_init=0"
    subprocess.run(["mkfs.ext4", "-q", "-F", "-E", lazy, *options, device], check=True)
    with TemporaryDirectory(prefix="joj-", dir=MEMORY) as folder:
        subprocess.run(["mount", "-t", "ext4", device, folder], check=True)
        try:
            yield Path(folder)
        finally:
            subprocess.run(["umount", folder], check=True)
