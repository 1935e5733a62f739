"""Tests what the tracer says on this machine's own kernel, of every way to journal, pack and swap.

joj-agent exits with 4 when a byte has no owner, an event was lost or a flush was asked for by
nobody known; so every test here also says that none was.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.live.tracing import COMM, Bench, run, temporary_bench

EXT4 = "mkfs.ext4 -q -F -E lazy_itable_init=0,lazy_journal_init=0"

# 20000 bytes are five pages.
FSYNC = """
f = os.open("a", os.O_CREAT | os.O_RDWR); os.write(f, b"x" * 20000); os.fsync(f)
os.rename("a", "b"); os.fsync(f)
"""

CREATED = ["b: created, grew", "b: created, grew, allocated"]


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    with temporary_bench(tmp_path) as bench:
        yield bench


def filesystem_on(bench: Bench, command: str, options: str = "", log: str = "") -> Bench:
    bench.make(command, options, log)
    return bench


@pytest.mark.parametrize("mode", ["ordered", "journal", "writeback"])
def test_ext4_in_every_data_mode(bench: Bench, mode: str) -> None:
    traced = filesystem_on(bench, f"{EXT4} DISK", f"data={mode}").trace(FSYNC)
    copies = traced.bytes(block_type="fs-journal", file="/b")
    assert copies == (20480 if mode == "journal" else 0)
    assert traced.bytes(block_type="data", file="/b") == 20480
    assert traced.reasons(block_subtype="commit") == [CREATED[1], "b: renamed"]
    [asker] = {row["asker_call"] for row in traced.written_runs(block_subtype="commit")}
    assert asker == "fsync"


def test_ext4_with_a_journal_on_another_disk(bench: Bench) -> None:
    log = "mke2fs -q -F -b 4096 -O journal_dev LOG"
    traced = filesystem_on(bench, f"{EXT4} -b 4096 -J device=LOG DISK", log=log).trace(FSYNC)
    disk, other = (Path(name).name for name in (bench.disk, bench.log))
    assert {row["device"] for row in traced.written_runs(block_type="fs-journal")} == {other}
    assert {row["device"] for row in traced.written_runs(block_type="data")} == {disk}
    assert traced.reasons(block_subtype="commit") == [CREATED[1], "b: renamed"]
    assert {row["asker_file"] for row in traced.written_runs(block_subtype="commit")} == {"/b"}


def test_ext4_commits_fast(bench: Bench) -> None:
    traced = filesystem_on(bench, f"{EXT4} -O fast_commit DISK").trace(FSYNC)
    # The first commit of a mount is a full one.
    assert traced.reasons(block_subtype="commit") == [CREATED[1]]
    assert traced.reasons(block_subtype="fast-commit") == ["b: renamed"]


def test_xfs_with_a_log_on_another_disk(bench: Bench) -> None:
    command = "mkfs.xfs -q -f -l logdev=LOG DISK"
    traced = filesystem_on(bench, command, "logdev=LOG", "true").trace(
        # File times move with the kernel's tick: past one, the directory's are sure to change.
        FSYNC + "import time; time.sleep(0.05); os.unlink('b'); os.sync()"
    )
    other = Path(bench.log).name
    assert {row["device"] for row in traced.written_runs(block_type="fs-journal")} == {other}
    reasons = traced.reasons(block_subtype="log")
    assert reasons == [CREATED[0], "b: renamed", "/: times; b: unlinked"]


@pytest.mark.parametrize("profile", ["single", "dup"])
def test_btrfs_packs_the_files_it_is_told_to(bench: Bench, profile: str) -> None:
    filesystem_on(bench, f"mkfs.btrfs -q -f -d {profile} -m {profile} DISK", "compress=zstd")
    traced = bench.trace('f = open("z", "wb"); f.write(b"abc " * 65536); f.flush(); os.fsync(f)')
    packed = traced.written_runs(block_subtype="compressed")
    assert packed
    assert {row["file"] for row in packed} == {"/z"}
    assert {row["asker_call"] for row in packed} == {"fsync"}
    assert 0 < traced.bytes(block_type="data") < 65536
    log = traced.reasons(block_subtype="log-tree")
    assert log
    assert log[0].startswith("z: created, grew")


def test_btrfs_direct_io_has_its_file_and_place(bench: Bench) -> None:
    """Files with checksums are written through the page cache by newer kernels: these have none."""
    traced = filesystem_on(bench, "mkfs.btrfs -q -f DISK", "nodatacow").trace("""
        import mmap
        page = mmap.mmap(-1, 8192); page.write(b"o" * 8192)
        o = os.open("o", os.O_CREAT | os.O_RDWR | os.O_DIRECT)
        for at in (0, 16384): os.pwrite(o, page, at)
        os.fsync(o)
    """)
    rows = traced.written_runs(block_type="data")
    assert {(row["file"], row["block_subtype"]) for row in rows} == {("/o", "")}
    places = {row["file_offset_bytes"]: row["length_bytes"] for row in rows}
    assert places == {0: 8192, 16384: 8192}
    assert {row["asker_call"] for row in rows} == {"O_DIRECT write"}


def test_small_files_live_in_their_inode(bench: Bench) -> None:
    traced = filesystem_on(bench, f"{EXT4} -O inline_data DISK").trace(
        't = os.open("t", os.O_CREAT | os.O_RDWR); os.write(t, b"t" * 50); os.fsync(t)'
    )
    assert traced.bytes(block_type="data") == 0
    assert traced.reasons(block_subtype="commit") == ["t: created, grew"]


def test_every_way_to_wait_is_named(bench: Bench) -> None:
    traced = filesystem_on(bench, f"{EXT4} DISK").trace("""
        import mmap
        s = os.open("s", os.O_CREAT | os.O_RDWR | os.O_SYNC); os.write(s, b"x" * 4096)
        d = os.open("d", os.O_CREAT | os.O_RDWR | os.O_DSYNC); os.write(d, b"x" * 4096)
        r = os.open("r", os.O_CREAT | os.O_RDWR); os.pwritev(r, [b"r" * 4096], 0, os.RWF_DSYNC)
        page = mmap.mmap(-1, 4096)
        o = os.open("o", os.O_CREAT | os.O_RDWR | os.O_DIRECT); os.pwrite(o, page, 0)
        m = os.open("m", os.O_CREAT | os.O_RDWR); os.ftruncate(m, 4096)
        mapped = mmap.mmap(m, 4096); mapped[:4] = b"abcd"; mapped.flush()
        f = os.open("f", os.O_CREAT | os.O_RDWR); os.write(f, b"f" * 4096); os.fdatasync(f)
    """)
    calls = {row["file"]: row["asker_call"] for row in traced.written_runs(block_type="data")}
    assert calls == {
        "/s": "O_SYNC write",
        "/d": "O_DSYNC write",
        "/r": "O_DSYNC write",
        "/o": "O_DIRECT write",
        "/m": "msync",
        "/f": "fdatasync",
    }
    assert all(row["asker_file"] == row["file"] for row in traced.written_runs(block_type="data"))


@pytest.mark.parametrize("command", [f"{EXT4} DISK", "mkfs.xfs -q -f DISK"])
def test_writes_at_an_unmount_are_asked_by_umount(bench: Bench, command: str) -> None:
    traced = filesystem_on(bench, command).trace("""
        import subprocess
        f = os.open("a", os.O_CREAT | os.O_RDWR); os.write(f, b"x" * 20000); os.close(f)
        here = os.getcwd(); os.chdir("/"); subprocess.run(["umount", here], check=True)
    """)
    assert traced.bytes(block_type="data", file="/a", asker_call="umount") == 20480
    assert {row["asker_call"] for row in traced.written_runs()} == {"umount"}
    journal = traced.reasons(block_type="fs-journal")
    assert journal[0] in ("a: created, grew", "a: created, grew, allocated")


def test_a_swap_file_is_swap_and_not_the_file_s_data(bench: Bench) -> None:
    filesystem_on(bench, f"{EXT4} DISK")
    swap = bench.directory / "swap"
    swap.write_bytes(bytes(32 << 20))
    swap.chmod(0o600)
    run("mkswap", "-q", swap)
    run("swapon", swap)
    try:
        traced = bench.trace("""
            import mmap, re, time
            memory = mmap.mmap(-1, 8 << 20); memory.write(bytes([65]) * (8 << 20))
            # MADV_PAGEOUT passes over pages that are in use elsewhere just then (madvise(2)).
            for _ in range(1000):
                memory.madvise(21)
                time.sleep(0.05)
                if re.search(r"(?m)^Swap: +8192 kB$", open("/proc/self/smaps").read()):
                    break
        """)
    finally:
        run("swapoff", swap)
    # The kernel may swap other processes' memory out too.
    assert traced.bytes(block_type="swap", submitter_comm=COMM) == 8 << 20


@pytest.mark.parametrize("name", ["ext4", "xfs", "btrfs"])
def test_discards_are_metadata_and_no_files_data(bench: Bench, name: str) -> None:
    command = {"ext4": f"{EXT4} DISK", "btrfs": "mkfs.btrfs -q -f DISK"}
    option = "discard=sync" if name == "btrfs" else "discard"
    filesystem_on(bench, command.get(name, "mkfs.xfs -q -f DISK"), option)
    traced = bench.trace(FSYNC + "os.unlink('b'); os.close(f); os.sync()\nos.system('fstrim .')")
    discards = [row for row in traced.runs if row["operation"] == "discard"]
    assert discards
    assert {(row["block_type"], row["block_subtype"]) for row in discards} == {
        ("fs-metadata", "discard")
    }
    by_fstrim = [row for row in discards if row["submitter_comm"] == "fstrim"]
    assert by_fstrim
    assert {row["submitter_call"] for row in by_fstrim} == {"ioctl"}


@pytest.mark.parametrize("name", ["ext4", "xfs", "btrfs"])
def test_eight_writers_at_once_are_told_apart(bench: Bench, name: str) -> None:
    """A commit of ext4's journal serves several; of data, who asked is always certain."""
    command = {"ext4": f"{EXT4} DISK", "btrfs": "mkfs.btrfs -q -f DISK"}
    traced = filesystem_on(bench, command.get(name, "mkfs.xfs -q -f DISK"), "noatime").trace("""
        import threading
        def work(number):
            file = os.open(f"w{number}", os.O_CREAT | os.O_RDWR)
            for _ in range(20):
                os.write(file, b"x" * 4096); os.fsync(file)
        threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
    """)
    data = traced.written_runs(block_type="data")
    assert sum(row["length_bytes"] for row in data) == 8 * 20 * 4096
    assert all(row["asker_file"] == row["file"] for row in data)
    assert {row["asker_call"] for row in data} == {"fsync"}
    assert {row["asker_count"] for row in data} == {1}
    journal = traced.written_runs(block_type="fs-journal")
    assert journal
    assert {row["asker_call"] for row in journal} == {"fsync"}
    if name == "ext4":
        assert max(row["asker_count"] for row in journal) > 1
