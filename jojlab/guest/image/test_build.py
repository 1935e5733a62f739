"""The kernel's folder in the cache: used as it was made, or made again."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from jojlab.foundation.cache import Cache
from jojlab.guest.image.build import hashes, sound_entry


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
        (folder / "SHA256").write_text(json.dumps(hashes(folder)))

    own = Cache(tmp_path / "cache")
    folder = sound_entry(own, "key", build)
    before = hashes(folder)
    assert sorted(before) == ["modules/ext4.ko", "vmlinux"]
    assert sound_entry(own, "key", build) == folder and made == 1
    damage(folder)
    assert hashes(sound_entry(own, "key", build)) == before and made == 2
