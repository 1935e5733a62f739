"""Tests who asks for a write that another thread sends: by transaction, by work, by what waits."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.live.test_attribution import EXT4, filesystem_on
from tests.live.tracing import COMM, Bench, temporary_bench

XFS = "mkfs.xfs -q -f DISK"


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    with temporary_bench(tmp_path) as bench:
        yield bench


EIGHT_WRITERS = """
import threading
def work(number):
    file = os.open(f"w{number}", os.O_CREAT | os.O_RDWR)
    for _ in range(50):
        os.write(file, b"x" * 4096); os.fsync(file)
threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
"""


def test_a_commit_of_ext4_is_asked_for_by_who_waits_for_it(bench: Bench) -> None:
    """An fsync waits for one transaction, whichever others are committed meanwhile."""
    traced = filesystem_on(bench, f"{EXT4} DISK", "noatime").trace(EIGHT_WRITERS)
    commits = traced.written_runs(block_subtype="commit")
    assert len(commits) > 8
    assert {row["asker_call"] for row in commits} == {"fsync"}
    assert len({(row["asker_tid"], row["asker_begin_ns"]) for row in commits}) == len(commits)
    # Each is counted where it waits, and seldom elsewhere: one that has just begun may be counted
    # with the transaction before its own.
    counted = sum(row["asker_count"] for row in commits)
    assert 8 * 50 <= counted < 8 * 50 * 1.1


def test_a_log_write_of_xfs_is_asked_for_by_who_sends_it(bench: Bench) -> None:
    log = (
        filesystem_on(bench, XFS, "noatime")
        .trace(EIGHT_WRITERS)
        .written_runs(block_type="fs-journal")
    )
    assert len({row["request_id"] for row in log}) > 8
    assert {row["asker_call"] for row in log} == {"fsync"}
    # A kernel thread may write a log buffer that is full.
    sent = [row for row in log if row["submitter_comm"] == COMM]
    assert sent
    assert all(row["asker_tid"] == row["submitter_tid"] for row in sent)


# Linux AIO by its numbers on x86_64: one operation, waited for.
AIO = """
import ctypes, mmap, struct
libc = ctypes.CDLL(None, use_errno=True)
context = ctypes.c_ulong()
assert libc.syscall(206, 1, ctypes.byref(context)) == 0
page = mmap.mmap(-1, 4096); page.write(b"a" * 4096)
place = ctypes.addressof(ctypes.c_char.from_buffer(page))
def submit(file, opcode, *rest):
    words = struct.pack("QIIHhIQQq16x", 0, 0, 0, opcode, 0, file, *rest or (0, 0, 0))
    request = ctypes.create_string_buffer(words, 64)
    requests = (ctypes.c_void_p * 1)(ctypes.addressof(request))
    assert libc.syscall(209, context, 1, requests) == 1
    event = ctypes.create_string_buffer(32)
    assert libc.syscall(208, context, 1, 1, event, None) == 1
    return struct.unpack("QQqq", event)[2]
def write(file, offset):
    assert submit(file, 1, place, 4096, offset) == 4096
"""


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="the numbers are x86_64's")
@pytest.mark.parametrize("command", [f"{EXT4} DISK", XFS])
def test_syncs_of_linux_aio_are_its_submitters(bench: Bench, command: str) -> None:
    traced = filesystem_on(bench, command).trace(
        AIO
        + """
b = os.open("b", os.O_CREAT | os.O_RDWR); os.write(b, b"x" * 8192); assert submit(b, 2) == 0
c = os.open("c", os.O_CREAT | os.O_RDWR); os.write(c, b"x" * 8192); assert submit(c, 3) == 0
d = os.open("d", os.O_CREAT | os.O_RDWR | os.O_DIRECT | os.O_DSYNC)
write(d, 0); write(d, 0)
e = os.open("e", os.O_CREAT | os.O_RDWR | os.O_DSYNC); write(e, 0)
"""
    )
    for name, call in [("b", "fsync"), ("c", "fdatasync"), ("d", None), ("e", "O_DSYNC write")]:
        rows = traced.written_runs(block_type="data", file=f"/{name}")
        calls = {row["asker_call"] for row in rows}
        assert calls == {call} if call else calls <= {"O_DSYNC write", "O_DIRECT write"}, name
        assert {(row["asker_comm"], row["asker_file"]) for row in rows} == {(COMM, f"/{name}")}
    log = traced.written_runs(block_type="fs-journal")
    assert {(row["asker_comm"], row["asker_count"]) for row in log} == {(COMM, 1)}
    assert {row["asker_file"] for row in log} >= {"/b", "/c", "/d", "/e"}


def test_a_write_of_less_than_a_block_has_its_place(bench: Bench) -> None:
    """XFS writes zeroes around it, which are at no negative offset."""
    traced = filesystem_on(bench, XFS).trace("""
        import mmap
        page = mmap.mmap(-1, 4096); page.write(b"o" * 4096)
        o = os.open("o", os.O_CREAT | os.O_RDWR | os.O_DIRECT)
        os.pwritev(o, [memoryview(page)[:512]], 0)
        os.pwritev(o, [memoryview(page)[:1024]], 8192 + 2048)
        os.pwritev(o, [memoryview(page)[:2048]], 16384)
        os.fsync(o)
    """)
    rows = traced.written_runs(block_type="data", file="/o", asker_call="O_DIRECT write")
    # Where the zeroes have a place they are one run with what they pad.
    known = {
        place
        for row in rows
        if row["file_offset_bytes"] is not None
        for place in range(row["file_offset_bytes"], row["file_offset_bytes"] + row["length_bytes"])
    }
    assert known >= {*range(512), *range(10240, 11264)}
    assert known <= {*range(4096), *range(8192, 12288), *range(16384, 20480)}
    # Of zeroes as long as what was written nobody can say which is which.
    halves = {(row["file_offset_bytes"], row["length_bytes"]) for row in rows}
    assert halves & {(16384, 2048), (None, 2048)}
    assert sum(row["length_bytes"] for row in rows) == 3 * 4096


BLKIO = Path("/sys/fs/cgroup/blkio")


@pytest.mark.skipif(not BLKIO.is_dir(), reason="no cgroups of version 1; guests have version 2")
def test_a_held_back_task_is_the_asker_of_its_write(bench: Bench) -> None:
    filesystem_on(bench, f"{EXT4} DISK")
    group = BLKIO / f"joj-test-{os.getpid()}"
    group.mkdir()
    try:
        number = Path(f"/sys/block/{Path(bench.disk).name}/dev").read_text().strip()
        (group / "blkio.throttle.write_bps_device").write_text(f"{number} {4 << 20}")
        traced = bench.trace(f"""
            import mmap
            open("{group}/tasks", "w").write("0")
            part = mmap.mmap(-1, 1 << 18); part.write(b"o" * (1 << 18))
            o = os.open("o", os.O_CREAT | os.O_RDWR | os.O_DIRECT)
            for at in range(8): os.pwrite(o, part, at << 18)
        """)
    finally:
        group.rmdir()
    rows = traced.written_runs(block_type="data", file="/o")
    assert sum(row["length_bytes"] for row in rows) == 2 << 20
    assert {row["asker_comm"] for row in rows} == {COMM}
    assert {row["submitter_comm"] for row in rows} == {COMM}
    assert {row["asker_call"] for row in rows} == {"O_DIRECT write"}
    # Or nothing was held back, and the test shows nothing.
    assert any(row["submitter_call"] is None for row in rows)
