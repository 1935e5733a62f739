"""Tests whose the bytes are, and who asked, where one filesystem is not all that there is: the
disk's node beside it, subvolumes of Btrfs, an overlay.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.live.loop import need_filesystem
from tests.live.tracing import Bench, TracedTables, run, temporary_bench

EXT4 = "mkfs.ext4 -q -F -E lazy_itable_init=0,lazy_journal_init=0 DISK"

# A program writes five files and syncs each; the first commit of a new journal writes its
# superblock too, which carries no change.
FIVE = """
import mmap
for n in range(5):
    f = os.open(f"f{n}", os.O_CREAT | os.O_RDWR); os.write(f, b"x" * 4096); os.fsync(f)
"""
# What others do on the node of the same disk, past the page cache: to memory of its own, to memory
# that is shared, and to a mapped file of the filesystem.
NODE = """
node = os.open({disk!r}, os.O_RDONLY | os.O_DIRECT)
shared = os.open("mapped", os.O_RDWR | os.O_CREAT); os.truncate(shared, 4096)
for memory in mmap.mmap(-1, 4096, mmap.MAP_PRIVATE), mmap.mmap(-1, 4096), mmap.mmap(shared, 4096):
    os.preadv(node, [memory], 0)
"""


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    with temporary_bench(tmp_path) as bench:
        yield bench


def journal(traced: TracedTables) -> set[tuple[object, bool]]:
    """The askers of what the journal was written for, and whether the reason is known."""
    rows = [row for row in traced.written_runs(block_type="fs-journal")]
    rows = [row for row in rows if row["block_subtype"] != "superblock"]
    return {(row["asker_call"], row["reason"] not in (None, "unknown")) for row in rows}


def test_reads_of_the_disk_s_node_take_no_asker_and_no_reason(bench: Bench) -> None:
    bench.make(EXT4)
    node = "import mmap\n" + NODE.format(disk=bench.disk)
    traced = bench.trace(node + FIVE)
    assert journal(traced) == {("fsync", True)}
    read = [row for row in traced.runs if row["operation"] == "read"]
    of_node = [row for row in read if row["block_subtype"] == "raw-device"]
    assert [(row["length_bytes"], row["file"]) for row in of_node] == [(4096, None)] * 3


def test_a_discard_of_the_disk_s_node_takes_no_asker_and_no_reason(bench: Bench) -> None:
    # Beyond the filesystem's end nobody minds.
    bench.make(EXT4 + " 500M")
    discard = f"""
import fcntl, struct
node = os.open({bench.disk!r}, os.O_RDWR)
fcntl.ioctl(node, 0x1277, struct.pack("QQ", 550 << 20, 1 << 20))
"""
    traced = bench.trace(discard + FIVE)
    assert [row["length_bytes"] for row in traced.requests if row["operation"] == "discard"]
    assert journal(traced) == {("fsync", True)}


def test_a_file_and_its_copy_in_a_snapshot_are_two(bench: Bench) -> None:
    bench.make("mkfs.btrfs -q -f DISK")
    for command in (
        "btrfs subvolume create a",
        "dd if=/dev/urandom of=a/f bs=4k count=1 conv=fsync status=none",
        "btrfs subvolume snapshot a b",
        "sync -f a",
    ):
        run("sh", "-c", f"cd {bench.directory} && {command}")
    traced = bench.trace(
        """
for name, pages in ("a", 10), ("b", 20), ("a", 10):
    f = os.open(name + "/f", os.O_RDWR)
    os.write(f, os.urandom(4096 * pages)); os.fsync(f); os.close(f)
"""
    )
    assert traced.bytes(block_type="data", file="/a/f") == 20 * 4096
    assert traced.bytes(block_type="data", file="/b/f") == 20 * 4096
    own = [row for row in traced.files if row["path"].endswith("/f")]
    assert [row["path_history"].count('"path"') for row in own] == [1, 1]
    assert {row["asker_file"] for row in traced.written_runs(file="/b/f")} == {"/b/f"}


@pytest.mark.parametrize("filesystem", ["ext4", "xfs", "btrfs"])
def test_syncs_on_an_overlay_have_their_asker(bench: Bench, filesystem: str) -> None:
    need_filesystem("overlay")
    bench.make(EXT4 if filesystem == "ext4" else f"mkfs.{filesystem} -q -f DISK")
    layers = {name: bench.directory / name for name in ("lower", "upper", "work")}
    for folder in layers.values():
        folder.mkdir()
    (layers["lower"] / "read").write_bytes(b"r" * 8192)
    over = bench.folder / "over"
    over.mkdir()
    words = ",".join(f"{name}dir={folder}" for name, folder in layers.items())
    run("mount", "-t", "overlay", "overlay", "-o", words, over)
    bench.undo.callback(run, "umount", over)
    traced = bench.trace(
        f"""
os.chdir({str(over)!r})
f = os.open("f", os.O_CREAT | os.O_RDWR); os.write(f, b"x" * 8192); os.fsync(f)
os.rename("f", {str(over / "g")!r})
os.pwrite(f, b"y" * 4096, 0); os.fdatasync(f)
d = os.open("d", os.O_CREAT | os.O_RDWR | os.O_SYNC); os.write(d, b"d" * 4096)
r = os.open("read", os.O_RDWR); os.pwrite(r, b"z" * 4096, 0); os.fsync(r)
"""
    )
    # The file was written twice, and has the name that the overlay's rename gave it.
    assert traced.bytes(block_type="data", file="/upper/g") == 12288
    askers = {row["asker_call"] for row in traced.written_runs(file="/upper/g")}
    assert askers == {"fsync", "fdatasync"}
    assert {row["asker_call"] for row in traced.written_runs(file="/upper/d")} == {"O_SYNC write"}
    read = traced.written_runs(file="/upper/read")
    assert {row["asker_call"] for row in read if row["submitter_call"] != "openat"} == {"fsync"}
    # Without shared extents the overlay copies the file when it is opened for writing.
    copied = [row for row in read if row["submitter_call"] == "openat"]
    assert sum(row["length_bytes"] for row in copied) == (8192 if filesystem == "ext4" else 0)
    logged = {row["asker_call"] for row in traced.written_runs(block_type="fs-journal")}
    assert {"fsync", "O_SYNC write"} <= logged <= {"fsync", "fdatasync", "O_SYNC write", None}
    named = [row for row in traced.runs if row["asker_file"]]
    assert {row["asker_file"] for row in named} <= {"/upper/g", "/upper/d", "/upper/read"}
