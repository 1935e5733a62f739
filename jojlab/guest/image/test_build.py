"""The kernel's folder in the cache: used as it was made, or made again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from jojlab.foundation.cache import Cache, sha256_file
from jojlab.foundation.errors import MachineError
from jojlab.guest.image.build import Image, hashes, is_sound, write_hashes


def flip(folder: Path) -> None:
    content = bytearray((folder / "vmlinux").read_bytes())
    content[1] ^= 1
    (folder / "vmlinux").write_bytes(content)


@pytest.mark.parametrize(
    "damage",
    [
        flip,
        lambda folder: (folder / "modules" / "ext4.ko").unlink(),
        lambda folder: (folder / "modules" / "strange.ko").write_bytes(b""),
        lambda folder: (folder / "SHA256").unlink(),
        lambda folder: (folder / "SHA256").write_text("not JSON"),
    ],
)
def test_a_damaged_kernel_is_made_anew(tmp_path: Path, damage: Callable[[Path], object]) -> None:
    """A kernel that changes on the disk must not run under the hash of the one that was built."""
    made = 0

    def build(folder: Path) -> None:
        nonlocal made
        made += 1
        (folder / "vmlinux").write_bytes(b"kernel")
        (folder / "modules").mkdir()
        (folder / "modules" / "ext4.ko").write_bytes(b"module")
        write_hashes(folder)

    own = Cache(tmp_path / "cache")
    folder = own.entry("kernels", "key", build, is_sound)
    before = hashes(folder)
    assert sorted(before) == ["modules/ext4.ko", "vmlinux"]
    assert own.entry("kernels", "key", build, is_sound) == folder
    assert made == 1
    damage(folder)
    assert hashes(own.entry("kernels", "key", build, is_sound)) == before
    assert made == 2


@pytest.mark.parametrize("name", ["kernels", "images"])
def test_a_damaged_image_is_refused_and_removed(tmp_path: Path, name: str) -> None:
    """A remembered image is not read before a guest is to run."""
    own = Cache(tmp_path / "cache")
    folders = {kind: own.entry(kind, "key", lambda _: None) for kind in ("kernels", "images")}
    kernel, initramfs = folders["kernels"] / "vmlinux", folders["images"] / "initramfs"
    for file in (kernel, initramfs):
        file.write_bytes(b"content")
    manifest = {f"{part}_sha256": sha256_file(kernel) for part in ("kernel", "initramfs")}
    image = Image("fingerprint", kernel, initramfs, manifest)
    image.refuse_damaged(own)
    (kernel if name == "kernels" else initramfs).write_bytes(b"Content")
    with pytest.raises(MachineError, match="damaged"):
        image.refuse_damaged(own)
    assert [kind for kind in folders if not folders[kind].exists()] == [name]
