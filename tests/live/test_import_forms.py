"""Whole traces in the forms that strace prints in the field: who is a thread, what a call is, and
what of it a replay does.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest

from jojlab.foundation.places import agent_path
from tests.live.recordings import ROOT, Recording


@dataclass(frozen=True)
class Form:
    """A trace; the exit code of its import, the calls of each thread, and what a replay does."""

    text: str
    calls: tuple[str, ...]
    code: int = 0
    written_bytes: int = 0
    syncs: int = 0


FORMS = {
    "a first process without a number": Form(
        'openat(AT_FDCWD, "/d/log", O_WRONLY|O_CREAT|O_APPEND, 0600) = 5\n'
        "fork() = 71\n"
        "strace: Process 71 attached\n"
        '[pid    70] write(5, "from the first\\n", 15) = 15\n'
        '[pid    71] write(5, "second\\n", 7) = 7\n'
        "[pid    70] wait4(71,  <unfinished ...>\n"
        "[pid    71] +++ exited with 0 +++\n"
        "<... wait4 resumed>NULL, 0, NULL) = 71\n"
        'write(5, "end\\n", 4) = 4\n'
        "fdatasync(5) = 0\n"
        "+++ exited with 0 +++\n",
        ("openat fork write write fdatasync", "write"),
        written_bytes=26,
        syncs=1,
    ),
    "a child whose number is of another namespace": Form(
        '900 50.000001 openat(AT_FDCWD, "/d/a.db", O_RDWR|O_CREAT, 0600) = 4 <0.000040>\n'
        "900 50.000100 vfork() = 12 /* 931 in strace's PID NS */ <0.000300>\n"
        '931 50.000500 pwrite64(4, "0123456789", 10, 512) = 10 <0.000020>\n'
        "931 50.000600 fsync(4) = 0 <0.003000>\n"
        "931 50.004000 +++ exited with 0 +++\n"
        "900 50.004100 wait4(12 /* 931 in strace's PID NS */, NULL, 0, NULL) = "
        "12 /* 931 in strace's PID NS */ <0.000010>\n"
        "900 50.004300 close(4) = 0 <0.000005>\n",
        ("openat vfork close", "pwrite64 fsync"),
        written_bytes=10,
        syncs=1,
    ),
    "messages in the middle of lines": Form(
        'creat("/d/a", 0600) = 3\n'
        "clone(Process 61 attached\n"
        "child_stack=0, flags=SIGCHLD) = 61\n"
        '[pid    61] write(3, "ab", 2) = 2\n'
        "Process 61 detached\n"
        "clone(child_stack=0, flags=SIGCHLDstrace: Process 62 attached) = 62\n"
        '[pid    62] write(3, "cde", 3) = 3\n'
        "[pid    62] +++ exited with 0 +++\n"
        "fsync(3) = 0\n",
        ("creat clone clone fsync", "write", "write"),
        written_bytes=5,
        syncs=1,
    ),
    "messages before the first call": Form(
        "./strace: Process 80 attached with 2 threads\n"
        "[pid    81] 60.000010 restart_syscall(<... resuming interrupted read ...> "
        "<unfinished ...>\n"
        '[pid    80] 60.000020 openat(AT_FDCWD, "/d/a", O_RDWR|O_CREAT, 0600) = 4 <0.00001>\n'
        '[pid    80] 60.000300 write(4, "abc", 3) = 3 <0.00001>\n'
        "[pid    80] 60.000400 fdatasync(4) = 0 <0.001>\n"
        "./strace: Process 80 detached\n"
        "./strace: Process 81 detached\n"
        " <detached ...>\n",
        ("", "openat write fdatasync"),
        written_bytes=3,
        syncs=1,
    ),
    "words with their numbers": Form(
        '7 1.1 openat(-100 /* AT_FDCWD */, "/d/a", 0x42 /* O_RDWR|O_CREAT */, 0600) = 3 <0.1>\n'
        "7 1.2 fcntl(3, 0x7 /* F_SETLKW */, {l_type=0x1 /* F_WRLCK */, "
        "l_whence=0 /* SEEK_SET */, l_start=8, l_len=1}) = 0 <0.1>\n"
        "7 1.3 write(0x3, 0x55aa, 0x20) = 0x20 <0.1>\n"
        "7 1.4 lseek(3, 0, 0x2 /* SEEK_END */) = 32 <0.1>\n"
        "7 1.5 fsync(0x3) = 0 <0.1>\n",
        ("openat fcntl write lseek fsync",),
        written_bytes=32,
        syncs=1,
    ),
    "calls of a 32-bit program": Form(
        "strace: [ Process PID=7 runs in 32 bit mode. ]\n"
        'openat(AT_FDCWD, "/d/a", O_RDWR|O_CREAT|O_LARGEFILE, 0600) = 3\n'
        "fcntl64(3, F_SETLK64, {l_type=F_WRLCK, l_whence=SEEK_SET, l_start=4, l_len=2}) = 0\n"
        "_llseek(3, 4096, [4096], SEEK_SET) = 0\n"
        'write(3, "abcd", 4) = 4\n'
        "sync_file_range2(3, SYNC_FILE_RANGE_WRITE, 0, 4096) = 0\n"
        "ftruncate64(3, 4098) = 0\n"
        "fdatasync(3) = 0\n",
        ("openat fcntl lseek write sync_file_range ftruncate fdatasync",),
        written_bytes=4,
        syncs=1,
    ),
    "threads killed in their calls": Form(
        '7 1.1 openat(AT_FDCWD, "/d/a", O_RDWR|O_CREAT, 0600) = 3\n'
        '7 1.2 write(3, "ab", 2) = 2\n'
        "8 1.3 fsync(3 <unfinished ...>\n"
        '7 1.4 write(3, "c", 1 <unfinished ...>\n'
        "8 1.5 <... fsync resumed> <unfinished ...>) = ?\n"
        "7 1.6 <... write resumed> <unfinished ...>) = ?\n"
        "7 1.7 +++ killed by SIGKILL +++\n"
        "8 1.8 +++ killed by SIGKILL +++\n",
        ("openat write write", "fsync"),
        written_bytes=3,
        syncs=1,
    ),
    "an interrupt, and the table of -C": Form(
        'openat(AT_FDCWD, "/d/a", O_RDWR|O_CREAT, 0600) = 3 <0.000031>\n'
        'pwrite64(3, "abcd", 4, 0) = 4 <0.000011>\n'
        "fsync(3) = 0 <0.003100>\n"
        "read(3, ^Cstrace: Process 7 detached\n"
        " <detached ...>\n"
        "% time     seconds  usecs/call     calls    errors syscall\n"
        "------ ----------- ----------- --------- --------- ----------------\n"
        " 98.00    0.003100        3100         1           fsync\n"
        "------ ----------- ----------- --------- --------- ----------------\n"
        "100.00    0.003142        1047         3           total\n",
        ("openat pwrite64 fsync read",),
        written_bytes=4,
        syncs=1,
    ),
    "security contexts": Form(
        '7 [u:r:app_t:s0] 1.1 openat(AT_FDCWD [u:o:var_t], "/d/a" [a_t], O_RDWR|O_CREAT, 0600) = '
        "3</d/a> [a_t] <0.1>\n"
        '7 [app_t] 1.2 write(3</d/a> [a_t], "abc", 3) = 3 <0.1>\n'
        "7 [app_t] 1.3 fsync(3</d/a> [a_t]) = 0 <0.1>\n"
        '7 [app_t] 1.4 rename("/d/a" [a_t!!b_t], "/d/b") = 0 <0.1>\n',
        ("openat write fsync rename",),
        written_bytes=3,
        syncs=1,
    ),
    "calls that strace has no name for": Form(
        '7 1.1 openat(AT_FDCWD, "/d/a", O_RDWR|O_CREAT, 0600) = 3\n'
        "7 1.2 syscall_437(0xffffff9c, 0x7ffd0000aa40, 0x7ffd0000aa80, 0x18, 0, 0) = 4\n"
        '7 1.3 pwrite64(4, "unseen", 6, 0) = 6\n'
        '7 1.4 pwrite64#64(3, "xyz", 3, 0) = 3\n'
        "7 1.5 fsync(3) = 0\n",
        ("openat pwrite64 pwrite64 fsync",),
        code=4,
        written_bytes=3,
        syncs=1,
    ),
    "a byte order mark and carriage returns": Form(
        '\ufeffopenat(AT_FDCWD, "/d/a", O_RDWR|O_CREAT, 0600) = 3\r\nwrite(3, "ab", 2) = 2\r\n'
        "fsync(3) = 0\r\n",
        ("openat write fsync",),
        written_bytes=2,
        syncs=1,
    ),
    "a prompt before the trace": Form(
        '$ strace -ttt app\n1700000000.1 openat(AT_FDCWD, "/d/a", O_RDWR|O_CREAT, 0600) = 3 <0.1>\n'
        '1700000000.3 write(3, "ab", 2) = 2 <0.1>\n',
        ("openat write",),
        code=4,
        written_bytes=2,
    ),
}


@pytest.mark.parametrize("name", FORMS)
def test_a_form_is_read_as_it_is_meant_and_replayed(name: str, tmp_path: Path) -> None:
    form = FORMS[name]
    (tmp_path / "trace").write_bytes(form.text.encode())
    command = [str(agent_path()), "import", "-o", str(tmp_path / "r"), "strace"]
    done = subprocess.run([*command, str(tmp_path / "trace")], capture_output=True, text=True)
    assert done.returncode == form.code, done.stdout + done.stderr
    recording = Recording(tmp_path / "r", done.returncode)
    calls: dict[int, list[str]] = {row["thread_id"]: [] for row in recording.table("threads")}
    for row in recording.table("calls"):
        calls[row["thread_id"]].append(row["name"])
    assert tuple(" ".join(calls[thread]) for thread in sorted(calls)) == form.calls
    (tmp_path / "to").mkdir()
    replay = [sys.executable, "-m", "jojlab", "replay", str(tmp_path / "r"), "--timing", "none"]
    replayed = subprocess.run(
        [*replay, "--directory", str(tmp_path / "to"), "--json"],
        cwd=ROOT, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert replayed.returncode == form.code, replayed.stdout + replayed.stderr
    found = json.loads(replayed.stdout)
    made = Counter({each["name"]: each["calls"] for each in found["by_name"]})
    assert found["written_bytes"] == form.written_bytes
    assert made["fsync"] + made["fdatasync"] == form.syncs
