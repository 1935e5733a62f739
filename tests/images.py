"""An image whose files are what its manifest says, but no kernel: QEMU refuses to start it."""

from __future__ import annotations

from pathlib import Path

from jojlab.foundation.cache import sha256_file
from jojlab.guest.image.build import Image


def unbootable_image(folder: Path, **manifest: object) -> Image:
    """Write the image into `folder`; its manifest has further keys."""
    folder.mkdir(parents=True, exist_ok=True)
    kernel, initramfs = folder / "vmlinux", folder / "initramfs"
    for file in (kernel, initramfs):
        file.write_bytes(file.name.encode())
    hashes = {"kernel_sha256": sha256_file(kernel), "initramfs_sha256": sha256_file(initramfs)}
    return Image("fingerprint", kernel, initramfs, manifest | hashes)
