"""Tests what the tools say of filesystems that mkfs itself has filled: the bytes at the told places
must be the files' own.
"""

from __future__ import annotations

import random
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from jojlab.model.disk_map import DiskMap, Fact, Stretches, ToolError
from jojlab.model.filesystems import btrfs, ext4, f2fs, nilfs2, xfs

CONTENTS = {
    name: random.Random(name).randbytes(size) for name, size in (("a", 20000), ("b", 300001))
}
_PROTOTYPE = "boot\n0 0\nd--755 0 0\na ---644 0 0 {0}/a\nb ---644 0 0 {0}/b\n$\n$\n"


def make_filesystem(folder: Path, *commands: str) -> Path:
    """Make a filled filesystem; DISK, ROOT and PROTO in the commands stand for the paths."""
    root, proto, disk = folder / "root", folder / "proto", folder / "disk"
    root.mkdir()
    for name, content in CONTENTS.items():
        (root / name).write_bytes(content)
    proto.write_text(_PROTOTYPE.format(root))
    with disk.open("wb") as file:
        file.truncate(320 << 20)
    paths = {"DISK": str(disk), "ROOT": str(root), "PROTO": str(proto)}
    for command in commands:
        words = [paths.get(word, word) for word in command.split()]
        if not shutil.which(words[0], path="/usr/sbin:/usr/bin:/sbin:/bin"):
            pytest.skip(f"{words[0]} is not installed")
        subprocess.run(words, check=True, capture_output=True)
    return disk


MADE = {
    "ext4": (ext4.read_disk_map, ["mkfs.ext4 -q -F -d ROOT DISK"]),
    "ext4-1k": (ext4.read_disk_map, ["mkfs.ext4 -q -F -b 1024 -d ROOT DISK"]),
    "ext4-orphans": (ext4.read_disk_map, ["mkfs.ext4 -q -F -O orphan_file -d ROOT DISK"]),
    "xfs": (xfs.read_disk_map, ["mkfs.xfs -q -f -p PROTO DISK"]),
    "xfs-4k": (xfs.read_disk_map, ["mkfs.xfs -q -f -s size=4096 -p PROTO DISK"]),
    "btrfs": (btrfs.read_disk_map, ["mkfs.btrfs -q -f --rootdir ROOT DISK"]),
    "f2fs": (f2fs.read_disk_map, ["mkfs.f2fs -q -f DISK", "sload.f2fs -f ROOT DISK"]),
}


@pytest.mark.parametrize("name", MADE)
def test_the_files_bytes_are_where_they_are_told_to_be(name: str, tmp_path: Path) -> None:
    tell, commands = MADE[name]
    disk = make_filesystem(tmp_path, *commands)
    told = tell(disk)
    content = disk.read_bytes()
    files: dict[int, dict[int, bytes]] = {}
    for begin, (length, fact) in told.exact.facts.items():
        if fact.block_types == ("data",) and fact.inode is not None:
            assert fact.offset_bytes is not None
            stretch = content[begin : begin + length]
            files.setdefault(fact.inode, {})[fact.offset_bytes] = stretch
    found = [b"".join(parts[at] for at in sorted(parts)) for parts in files.values()]
    for wanted in CONTENTS.values():
        assert any(part.rstrip(b"\0") == wanted for part in found)
    assert "fs-metadata" in {
        kind for _, fact in told.exact.facts.values() for kind in fact.block_types
    }


def test_a_disk_without_the_filesystem_is_told_as_such(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.write_bytes(bytes(64 << 20))
    tools: list[Callable[[Path], DiskMap]] = [
        ext4.read_disk_map,
        xfs.read_disk_map,
        btrfs.read_disk_map,
        f2fs.read_disk_map,
        nilfs2.read_disk_map,
    ]
    for tell in tools:
        with pytest.raises(ToolError):
            tell(disk)


def test_the_orphan_file_of_ext4_is_metadata(tmp_path: Path) -> None:
    disk = make_filesystem(tmp_path, "mkfs.ext4 -q -F -O orphan_file DISK")
    facts = [fact for _, fact in ext4.read_disk_map(disk).exact.facts.values()]
    assert Fact(("fs-metadata",), ("orphan-file",)) in facts
    assert not [fact for fact in facts if fact.block_types == ("data",)]


LOG = """\
blocknr = 30, nblocks = 8
    creation time = 2020-01-01 00:00:05
    nfinfo = 2
    finfo
      ino = 12, cno = 3, nblocks = 3, ndatblk = 2
        vblocknr = 16389, blkoff = 2, blocknr = 31
        vblocknr = 16390, blkoff = 7, blocknr = 32
        vblocknr = 16391, blocknr = 33
    finfo
      ino = 3, cno = 0, nblocks = 3, ndatblk = 2
        blkoff = 0, blocknr = 34
        blkoff = 130, blocknr = 35
        blkoff = 0, level = 1, blocknr = 36
"""


def test_every_block_of_a_nilfs2_log_has_its_kind() -> None:
    exact = Stretches()
    nilfs2._add_log(LOG, 4096, exact)
    kinds = [exact.find(block * 4096) for block in range(29, 39)]
    assert kinds == [
        None,
        Fact(("fs-journal",), ("segment-summary",)),
        Fact(("data", "fs-metadata"), ("directory",), 12, 2 * 4096),
        Fact(("data", "fs-metadata"), ("directory",), 12, 7 * 4096),
        Fact(("fs-metadata",), ("btree-node",), 12),
        Fact(("fs-metadata",), ("dat",)),
        Fact(("fs-metadata",), ("dat",)),
        Fact(("fs-metadata",), ("btree-node", "dat")),
        Fact(("fs-journal",), ("super-root",)),
        None,
    ]
