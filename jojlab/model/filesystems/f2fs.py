"""F2FS: its options, tools and hazards; and its disk, as dump.f2fs(8) reports it: the areas of the
superblock, the node address table, the types of segments, and the block addresses of every inode.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from pathlib import Path

from jojlab.model.disk_map import DiskMap, Fact, Stretches, read_number, tool_output
from jojlab.model.field import Settings
from jojlab.model.filesystem import MIB, Filesystem, Tool, mount_words
from jojlab.model.hazards import BATCH_COMMIT, Cause, Harm, Hazard, Stakes

_PACKAGE = "f2fs-tools"
_BLOCK_BYTES = 4096
_METADATA = ("fs-metadata",)
# Area, its neighbour, and what it holds.
_AREAS = (
    ("cp", "sit", Fact(("fs-journal",), ("checkpoint",))),
    ("sit", "nat", Fact(_METADATA, ("sit",))),
    ("nat", "ssa", Fact(_METADATA, ("nat",))),
    ("ssa", "main", Fact(_METADATA, ("ssa",))),
)
# seg_type of dump_sit: hot, warm and cold data, then nodes.
_FIRST_NODE_TYPE = 3
# i_inline: the inode holds the file's bytes, or the directory's entries, in place of addresses.
_INLINE = 0x02 | 0x04
_UNWRITTEN = 0xFFFFFFFF


def read_disk_map(disk: Path) -> DiskMap:
    """Return the map of a disk; ToolError where dump.f2fs cannot report it."""
    exact, areas = Stretches(), Stretches()
    with tempfile.TemporaryDirectory(prefix="joj-dump-f2fs-") as name:
        folder = Path(name)
        superblock = _dump(folder, disk, "-d", "1")
        begins = {
            area: read_number(rf"{area}_blkaddr\s+\[0x\s*\w+ : (\d+)\]", superblock)
            for area in ("cp", "sit", "nat", "ssa", "main")
        }
        exact.add_bytes(0, 2 * _BLOCK_BYTES, Fact(_METADATA, ("superblock",)))
        for area, after, fact in _AREAS:
            _add(exact, begins[area], begins[after] - begins[area], fact)
        _dump(folder, disk, "-n", "0~-1")
        inodes = _add_nodes((folder / "dump_nat").read_text(), exact)
        for inode in inodes:
            _add_inode(_dump(folder, disk, "-i", hex(inode)), inode, exact)
        _dump(folder, disk, "-s", "0~-1")
        segment_blocks = 1 << read_number(r"log_blocks_per_seg\s+\[0x\s*\w+ : (\d+)\]", superblock)
        _add_segments((folder / "dump_sit").read_text(), begins["main"], segment_blocks, areas)
    return DiskMap(("dump.f2fs",), exact, areas)


def _dump(folder: Path, disk: Path, *words: str) -> str:
    # It asks whether to write a file's contents down.
    command = ("dump.f2fs", *words, str(disk))
    return tool_output(*command, package=_PACKAGE, folder=folder, commands="n\n")


def _add(places: Stretches, block: int, blocks: int, fact: Fact) -> None:
    places.add_bytes(block * _BLOCK_BYTES, blocks * _BLOCK_BYTES, fact)


def _add_nodes(table: str, exact: Stretches) -> list[int]:
    """Node blocks by the node address table; gives the inodes."""
    inodes = []
    for nid, inode, block in re.findall(r"nid:\s*(\d+)\s+ino:\s*(\d+).*?blkaddr:\s*(\d+)", table):
        _add(exact, int(block), 1, Fact(_METADATA, ("node",), int(inode)))
        if nid == inode:
            inodes.append(int(nid))
    return inodes


def _add_inode(answer: str, inode: int, exact: Stretches) -> None:
    mode = read_number(r"i_mode\s+\[0x\s*\w+ : (\d+)\]", answer)
    if read_number(r"i_inline\s+\[0x\s*\w+ : (\d+)\]", answer) & _INLINE:
        return
    is_directory = mode & 0xF000 == 0x4000
    for index, block in re.findall(r"i_addr\[0x(\w+)\]\s+\[0x\s*\w+ : (\d+)\]", answer):
        offset = int(index, 16) * _BLOCK_BYTES
        fact = Fact(("data",), (), inode, offset)
        if is_directory:
            fact = Fact(_METADATA, ("directory",), inode)
        if int(block) != _UNWRITTEN:
            _add(exact, int(block), 1, fact)


def _add_segments(table: str, main: int, segment_blocks: int, areas: Stretches) -> None:
    """Return what kind of blocks a segment with valid ones takes: of older copies, that is all."""
    for segment, valid, kind in re.findall(
        r"segno:\s*(\d+)\s+vblocks:\s*(\d+)\s+seg_type:(\d)", table
    ):
        fact = Fact(("data", "fs-metadata"))
        if int(valid):
            nodes = int(kind) >= _FIRST_NODE_TYPE
            fact = Fact(_METADATA, ("node",)) if nodes else Fact(fact.block_types, ("directory",))
        _add(areas, main + int(segment) * segment_blocks, segment_blocks, fact)


ROLL_FORWARD = Cause(
    "roll-forward",
    "F2FS: a second power cut, in the milliseconds in which a mount recovers from the first, may "
    "undo the first syncs since the last checkpoint and leave later ones: recovery writes over the "
    "nodes that it reads before its checkpoint is durable; it can lose commits and corrupt the "
    "database; mount option active_logs=2 makes each sync a checkpoint",
    "F2FS: a second power cut, in the milliseconds in which a mount recovers from the first, may "
    "undo the first syncs since the last checkpoint and leave later ones: recovery writes over the "
    "nodes that it reads before its checkpoint is durable; mount option active_logs=2 makes each "
    "sync a checkpoint",
    page="docs/findings/f2fs-roll-forward.md",
)
_JOURNALS = ("delete", "truncate", "persist", "memory")


def _hazards(settings: Settings, stakes: Stakes) -> Iterator[Hazard]:
    """Yield the hazards of recovery by roll-forward, and of batch atomic writes.

    A second power cut, while a mount recovers from the first, can undo the first syncs since the
    last checkpoint and leave later ones, so that a database may lose its journal alone:
    recover_data() reads the synced nodes from where the last checkpoint says that the next node
    goes; the checkpoint that follows writes its own nodes to the same place, without their marks
    of fsync and before it is durable (fs/f2fs/recovery.c, f2fs_sync_node_pages() of node.c; found
    by power cuts on Linux 6.1, docs/findings/f2fs-roll-forward.md).

    The ioctl that commits a batch atomic write does not wait for the file's node, and the sync
    after it takes the node for synced (f2fs_do_sync_file(), fs/f2fs/file.c; found by power cuts on
    Linux 5.10, 6.12 and 7.3, docs/findings/f2fs-batch-atomic-writes.md). fsync's flush comes after
    the node, but a device without a volatile cache gets none.

    With two logs every sync is a checkpoint, which is waited for, and nothing is read by
    roll-forward (need_do_checkpoint(), fs/f2fs/file.c).
    """
    if "active_logs=2" in mount_words(settings):
        return
    is_off = settings.get("synchronous") == "off"
    # A sync of a directory makes a checkpoint too, so that names are safe from it.
    is_safe = stakes.last is Harm.NAMES or is_off or stakes.is_lazy or stakes.reads_only
    if not is_safe:
        yield Hazard(stakes.last, ROLL_FORWARD)
    if stakes.has_database and not is_off:
        yield Hazard(Harm.DATABASE, ROLL_FORWARD)
    batches = settings.get("batch_atomic_write") == "on" and not is_off
    if batches and settings.get("journal_mode") in _JOURNALS:
        yield Hazard(Harm.COMMITS, BATCH_COMMIT)


FILESYSTEM = Filesystem(
    name="f2fs",
    rank=5,
    mount_options=r"fsync_mode=(posix|strict|nobarrier)|mode=(adaptive|lfs)"
    r"|background_gc=(on|off|sync)|discard|nodiscard|nobarrier|inline_data|noinline_data"
    r"|inline_dentry|noinline_dentry|flush_merge|noflush_merge|alloc_mode=(reuse|default)"
    r"|checkpoint_merge|nocheckpoint_merge|active_logs=[246]|data_flush",
    mkfs_options=r"-O [,\w]+|-s \d+|-z \d+|-o \d+|-w \d+",
    smallest_device_bytes=64 * MIB,
    read_disk_map=read_disk_map,
    mkfs=Tool("mkfs.f2fs", _PACKAGE),
    checker=Tool("fsck.f2fs", _PACKAGE),
    modules=("f2fs",),
    is_out_of_place=True,
    # It takes less, but through the page cache (Linux 6.1, f2fs_should_use_dio()).
    direct_bytes=4096,
    has_batch_atomic_write=True,
    barrier_off=("nobarrier", "fsync_mode=nobarrier"),
    hazards=_hazards,
    constant_cause=ROLL_FORWARD,
    cheaper_mount_options=("fsync_mode=nobarrier",),
    cheaper_settings=frozenset({"journal_mode=wal", "sync_call=fdatasync"}),
    # Linux 3.8: updates in place for small syncs came later, and f2fs_sync_file() left early.
    study_fields={"mount_options": "noatime,mode=lfs"},
    study_fdatasync="fdatasync-of-size",
)
