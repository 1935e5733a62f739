"""joj record by eBPF: the same recording as by ptrace, and what it loses is counted."""

from __future__ import annotations

import os
import platform
import shutil
import signal
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from tests.hangs import HANG_S
from tests.live.recordings import (
    ENVIRONMENT,
    JOINED,
    PYTHON,
    Recording,
    Row,
    await_joined,
    check_joined,
    command_of,
    plain,
    record_program,
)
from tests.live.test_record import EXECUTING, PROGRAMS

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0 or os.readlink("/proc/self/ns/pid") != "pid:[4026531836]",
    reason="loading a BPF program needs root, in the first namespace of process numbers",
)

# Of every run its own: times, numbers of threads and files, places in memory.
OWN = {"call_id", "thread_id", "begin_ns", "end_ns", "path_id", "path2_id", "device", "inode",
       "address"}  # fmt: skip
NUMBERED = {"clone", "clone3", "fork", "vfork", "mmap", "mremap"}
# What memory a program gives back depends on where it was; whether a thread comes to its exit, on
# when its process ends.
LEFT_OUT = {"munmap", "mremap", "exit"}
# They take no argument: what is told is what the register held.
WITHOUT = {"F_GETFL", "F_GETFD"}

FORKS = "for i in 1 2 3; do (echo x > f$i; (cat f$i > g$i; rm f$i); mv g$i h$i); done"


def comparable_calls(recording: Recording, here: Path) -> list[list[Row]]:
    """The calls of each thread, without what is of this run alone."""
    threads: dict[int, list[Row]] = {}
    for call in recording.table("calls"):
        if call["name"] in LEFT_OUT:
            continue
        row = {
            key: plain(value, here) if isinstance(value, str) else value
            for key, value in call.items()
            if key not in OWN
        }
        row["opened"] = call["inode"] is not None
        row["named"] = (call["path_id"] is not None, call["path2_id"] is not None)
        if call["name"] in NUMBERED and not call["error"]:
            row["result"] = None
        if call["command"] in WITHOUT:
            row["flags"] = None
        threads.setdefault(call["thread_id"], []).append(row)
    return [threads[number] for number in sorted(threads)]


def snapshots_of(recording: Recording, here: Path) -> dict[str, tuple[object, ...]]:
    """Return what was under each path."""
    return {
        plain(row["path"], here): (
            row["kind"],
            # Of directories it changes with their entries.
            row["size_bytes"] if row["kind"] == "file" else None,
            row["mode"],
            row["link_target"],
        )
        for row in recording.table("snapshot")
        if not row["path"].startswith("/proc/")
    }


def threads(recording: Recording, here: Path) -> list[tuple[object, ...]]:
    """Return which thread made which, and how it ended."""
    return [
        (row["creator_id"], row["created_by_call_id"] is not None, row["shares_descriptors"],
         row["shares_directory"], row["executable"], plain(row["directory"], here), row["umask"],
         row["end_ns"] is not None, row["exit_code"], row["exit_signal"])
        for row in recording.table("threads")
    ]  # fmt: skip


@pytest.mark.parametrize("name", [*PROGRAMS, "forks"])
def test_ptrace_and_ebpf_make_the_same_recording(name: str, tmp_path: Path) -> None:
    program = PROGRAMS.get(name, ("sh", "-c", FORKS))
    recordings, places = [], []
    for number, by in enumerate(("warm", "ptrace", "ebpf")):
        here = tmp_path / str(number)
        here.mkdir(parents=True)
        (here / "note.txt").write_text("old")
        if by == "warm":
            subprocess.run(program, cwd=here, env=ENVIRONMENT, check=True, capture_output=True)
            continue
        folder = tmp_path / f"recording-{number}"
        recordings.append(record_program(here, folder, *program, options=("--by", by)))
        places.append(here)
    ptrace, ebpf = recordings
    assert [it.manifest["recorder"] for it in recordings] == ["ptrace", "ebpf"]
    assert (ebpf.code, ebpf.manifest["incomplete"]) == (ptrace.code, False)
    one, other = (comparable_calls(*it) for it in zip(recordings, places, strict=True))
    assert [len(thread) for thread in one] == [len(thread) for thread in other]
    for ours, theirs in zip(one, other, strict=True):
        assert ours == theirs
    one_threads, other_threads = (threads(*it) for it in zip(recordings, places, strict=True))
    assert one_threads == other_threads
    one_before, other_before = (snapshots_of(*it) for it in zip(recordings, places, strict=True))
    assert one_before == other_before
    missed = [dict(it.manifest["missed"]) for it in recordings]
    assert missed[0] == missed[1]
    assert sum(map(len, other)) > 50


def test_a_thread_that_executes_takes_the_place_of_all(here: Path, tmp_path: Path) -> None:
    recording = record_program(here, tmp_path / "r", *PYTHON, EXECUTING, options=("--by", "ebpf"))
    assert recording.code == 6
    first, _, third = recording.table("threads")
    assert (first["exit_code"], third["exit_code"]) == (None, 6)
    assert all(row["end_ns"] for row in recording.table("threads"))
    executed = [row for row in recording.calls("execve") if row["result"] == 0]
    assert [row["thread_id"] for row in executed] == [0, 2]
    assert recording.calls()[-1]["thread_id"] == 2


CHANGES = """
import os
os.unlink("removed"); os.rename("moved", "over"); os.truncate("cut", 1)
os.close(os.open("emptied", os.O_WRONLY | os.O_TRUNC)); os.chmod("kept", 0o600)
os.close(os.open("made", os.O_WRONLY | os.O_CREAT)); os.mkdir("d"); os.rmdir("d")
"""


def test_the_snapshot_has_files_as_they_were_before_their_change(
    here: Path, tmp_path: Path
) -> None:
    """The calls are over when the recorder looks."""
    sizes = {"removed": 1, "moved": 2, "over": 3, "cut": 4, "emptied": 5, "kept": 6}
    for name, size in sizes.items():
        (here / name).write_bytes(b"x" * size)
    recording = record_program(here, tmp_path / "r", *PYTHON, CHANGES, options=("--by", "ebpf"))
    state = {Path(row["path"]).name: row for row in recording.table("snapshot")}
    assert {name: state[name]["size_bytes"] for name in sizes} == sizes
    assert {state[name]["kind"] for name in sizes} == {"file"}
    assert {state[name]["made_by_recording"] for name in sizes} == {False}
    assert (state["made"]["kind"], state["d"]["kind"]) == ("absent", "absent")


# The path lies in a page that nobody has touched, at a place where the next program has its
# environment. Without randomness a stack ends at one place (personality(2)).
ELSEWHERE = """
import ctypes, mmap, os
libc = ctypes.CDLL(None, use_errno=True)
place = 0x7FFFFFFFE000
with open("paths", "wb") as file:
    file.write(b"/bin/true\\0".ljust(0xF00, b"-") + b"/bin/true\\0".ljust(0x100, b"-"))
file = os.open("paths", os.O_RDONLY)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, *[ctypes.c_size_t] * 5]
FIXED_NOREPLACE = 0x100000
assert libc.mmap(place, 4096, 1, mmap.MAP_PRIVATE | FIXED_NOREPLACE, file, 0) == place
libc.personality(0x0040000)
words = ctypes.c_char_p * 2
libc.syscall.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, words, words, ctypes.c_long]
libc.syscall(322, -100, place + 0xF00, words(b"true"), words(b"X=" + b"x" * 8000), 0)
"""


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the place is that of x86_64's stacks")
def test_arguments_of_execveat_are_not_read_in_the_next_program(here: Path, tmp_path: Path) -> None:
    recording = record_program(here, tmp_path / "r", *PYTHON, ELSEWHERE, options=("--by", "ebpf"))
    assert (recording.code, recording.manifest["incomplete"]) == (0, False)
    [executed] = recording.calls("execveat")
    assert (executed["path"], executed["result"]) == ("/bin/true", 0)


BUSY = """
import os, sys
file = os.open("f", os.O_CREAT | os.O_RDWR)
for record in range(int(sys.argv[1])): os.pwrite(file, b"x", record)
"""


def test_calls_without_room_in_the_ring_are_counted(here: Path, tmp_path: Path) -> None:
    """The recorder stands still until the program, of 100,000 calls, has ended."""
    folder = tmp_path / "r"
    begin = [*command_of(folder, "--by", "ebpf", "--ring-mib", "1"), "--", "sh", "-c"]
    script = 'kill -STOP $PPID; "$@"; kill -CONT $PPID'
    command = [*begin, script, "sh", *PYTHON, BUSY, "100000"]
    done = subprocess.run(command, cwd=here, env=ENVIRONMENT, capture_output=True, text=True)
    assert done.returncode == 4, done.stderr
    manifest = Recording(folder, 4).manifest
    lost = manifest["missed"]["lost_calls"]
    writes = Counter(row["name"] for row in Recording(folder, 4).table("calls"))["pwrite64"]
    ends = sum(row["result"] is None for row in Recording(folder, 4).calls("pwrite64"))
    assert lost["pwrite64"] + writes - ends == 100_000
    assert writes > 1000 < lost["pwrite64"]
    assert manifest["incomplete_reasons"][0].endswith("calls lost: the ring was full (--ring-mib)")
    assert (manifest["calls"], manifest["missed"]["lost_threads"]) == (
        len(Recording(folder, 4).table("calls")),
        0,
    )


def test_a_process_is_joined_and_is_never_stopped(here: Path, tmp_path: Path) -> None:
    with subprocess.Popen(
        [*PYTHON, JOINED], cwd=here, stdout=subprocess.PIPE, text=True
    ) as program:
        assert program.stdout
        pid = program.stdout.readline().strip()
        folder = tmp_path / "r"
        recorder = subprocess.Popen([*command_of(folder, "--by", "ebpf"), "--pid", pid])
        await_joined(recorder, here)
        assert "TracerPid:\t0" in Path(f"/proc/{pid}/status").read_text()
        recorder.send_signal(signal.SIGINT)
        assert recorder.wait(HANG_S) == 128 + signal.SIGINT
        assert program.poll() is None
        (here / "end").touch()
        assert program.wait(HANG_S) == 0
    check_joined(Recording(folder, 0), int(pid))


def test_a_user_is_told_why_it_is_not_ebpf(here: Path, tmp_path: Path) -> None:
    for path in (here, *tmp_path.parents[:3], tmp_path):
        path.chmod(0o777)
    agent = here / "agent"
    shutil.copy(command_of(here)[0], agent)

    def run(*options: str) -> subprocess.CompletedProcess[str]:
        command = [str(agent), "record", "--output", "r", *options, "--", "true"]
        return subprocess.run(
            command, cwd=here, user=65534, group=65534, extra_groups=[], env=ENVIRONMENT,
            capture_output=True, text=True,
        )  # fmt: skip

    refused = run("--by", "ebpf")
    assert (refused.returncode, (here / "r").exists()) == (2, False)
    assert "needs root, or CAP_BPF and CAP_PERFMON; use --by ptrace" in refused.stderr
    done = run()
    assert done.returncode == 0
    assert "note: recorded by ptrace, not eBPF: it needs root" in done.stderr
    assert Recording(here / "r", 0).manifest["recorder"] == "ptrace"
