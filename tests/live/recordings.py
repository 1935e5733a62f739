"""The parts that tests of joj record share: recordings of programs, and what strace says of the
same ones.
"""

from __future__ import annotations

import json
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
import pyarrow.parquet as pq

from jojlab.foundation.places import agent_path
from tests.hangs import HANG_S
from tests.system_calls import call_rows

ROOT = Path(__file__).resolve().parents[2]
Row = dict[str, Any]

# The same program makes the same calls only where nothing depends on its surroundings.
ENVIRONMENT = {
    "PATH": "/usr/bin:/bin",
    "HOME": "/nonexistent",
    "LC_ALL": "C",
    "PYTHONHASHSEED": "0",
    "GIT_CONFIG_NOSYSTEM": "1",
    **{f"GIT_{who}_NAME": "a" for who in ("AUTHOR", "COMMITTER")},
    **{f"GIT_{who}_EMAIL": "a@b" for who in ("AUTHOR", "COMMITTER")},
    **{f"GIT_{who}_DATE": "1700000000 +0000" for who in ("AUTHOR", "COMMITTER")},
}

# Without what depends on the user's Python.
PYTHON = ("python3", "-I", "-S", "-B", "-c")

# git commit reads a file again that is not older than its index, by whole seconds, as it may have
# changed since git add (Documentation/technical/racy-git.txt): so it depends on when a second ends.
# Files of long ago are never read again.
LONG_AGO = "touch -d @1700000000"

# A process to join: it says its number, and two threads write, each to the end of its own file,
# until there is a file "end".
JOINED = """
import os, time, threading
def work(name):
    while not os.path.exists("end"):
        file = os.open(name, os.O_CREAT | os.O_WRONLY | os.O_APPEND)
        os.write(file, b"x"); os.close(file)
        time.sleep(0.01)
print(os.getpid(), flush=True)
threading.Thread(target=work, args=("first",)).start()
work("second")
"""
_ROUNDS = 50


@dataclass(frozen=True)
class Recording:
    """A recording, its tables as rows."""

    folder: Path
    code: int

    def table(self, name: str) -> list[Row]:
        """Rows of a table; calls in the order in which they began."""
        whole, parts = self.folder / f"{name}.parquet", self.folder / name
        if whole.exists():
            rows: list[Row] = pq.read_table(whole).to_pylist()
        else:
            rows = ds.dataset(parts).to_table().to_pylist() if parts.exists() else []
        return sorted(rows, key=lambda row: row["call_id"]) if name == "calls" else rows

    @property
    def manifest(self) -> Row:
        """Return what it says of itself."""
        return {row["key"]: json.loads(row["value"]) for row in self.table("manifest")}

    def calls(self, *names: str) -> list[Row]:
        """The calls of these names."""
        return [row for row in self.table("calls") if not names or row["name"] in names]


def command_of(folder: Path, *options: str) -> list[str]:
    """The recorder's command line, up to the program; by ptrace, which may be used everywhere."""
    by = [] if {"--by", "--sql"} & {*options} else ["--by", "ptrace"]
    return [str(agent_path()), "record", "--output", str(folder), *by, *options]


def record_program(
    here: Path, folder: Path, *program: str, options: tuple[str, ...] = ()
) -> Recording:
    """Record a program that runs in `here`."""
    command = [*command_of(folder, *options), "--", *program]
    done = subprocess.run(
        command, cwd=here, env=ENVIRONMENT, stdin=subprocess.DEVNULL, capture_output=True
    )
    return Recording(folder, done.returncode)


def await_that(condition: Callable[[], bool], event: str) -> None:
    """Wait until something is so."""
    until = time.monotonic() + HANG_S
    while not condition():
        assert time.monotonic() < until, f"{event}: not within {HANG_S} s"
        time.sleep(0.02)


def signals_in(pid: int, field: str) -> set[int]:
    """The signals of a field of /proc/PID/status, such as SigCgt (proc_pid_status(5))."""
    status = Path(f"/proc/{pid}/status").read_text()
    [mask] = re.findall(rf"^{field}:\s+([0-9a-f]+)$", status, re.M)
    return {number for number in range(1, 65) if int(mask, 16) >> (number - 1) & 1}


def await_joined(recorder: subprocess.Popen[bytes], here: Path) -> None:
    """Wait until a recorder of JOINED answers signals, and both threads have then written on."""
    await_that(lambda: signal.SIGINT in signals_in(recorder.pid, "SigCgt"), "the recorder begins")
    files = (here / "first", here / "second")
    await_that(lambda: all(file.exists() for file in files), "both threads begin")
    sizes = [file.stat().st_size + _ROUNDS for file in files]
    await_that(
        lambda: all(file.stat().st_size > size for file, size in zip(files, sizes, strict=True)),
        "both threads write",
    )


def check_joined(recording: Recording, pid: int) -> None:
    """Check a recording that joined JOINED while it ran: both threads, and what they had open."""
    assert recording.manifest["incomplete"] is False
    assert [row["pid"] for row in recording.table("threads")] == [pid] * 2
    for number in (0, 1):
        own = [row for row in recording.calls("write") if row["thread_id"] == number]
        assert len(own) > 5
        assert all(row["result"] == 1 for row in own[:-1])
    assert recording.table("descriptors")


def recorded_names() -> list[str]:
    """The names of all calls that are recorded."""
    return [name for name, row in call_rows().items() if "recorded" in row]


# One call as both sides tell it: its name, its paths, its numbers, its result.
CallSummary = tuple[str, tuple[str, ...], tuple[object, ...], object]

# Calls whose result is an address or the number of a process.
_OF_ITS_OWN = {"mmap", "mremap", "clone", "clone3", "fork", "vfork"}
# What memory a program gives back depends on where it was. A thread that is joined in Python 3.11
# has let its lock go, and not yet made its exit: its process may end before it.
_LEFT_OUT = {"munmap", "mremap", "exit"}


def plain(text: str, here: Path) -> str:
    """A path without the test's directory and without random parts of temporary names."""
    # git's are tmp_obj_XXXXXX and, where it tries what a filesystem can, tXXXXXX.
    return re.sub(r"(tmp_\w+_|/t)\w{6}\b", r"\1", text.replace(str(here), "HERE"))


def recorded_calls(recording: Recording, here: Path) -> list[list[CallSummary]]:
    """The calls of each thread."""
    threads: dict[int, list[CallSummary]] = {}
    for row in recording.table("calls"):
        if row["name"] in _LEFT_OUT:
            continue
        strings = [row["text"], row["path"], row["path2"]]
        if row["name"].endswith("xattr"):
            strings = [row["path"], row["text"]]
        paths = tuple(plain(text, here) for text in strings if text is not None)
        result = row["error"] if row["error"] else row["result"]
        if row["name"] in _OF_ITS_OWN and not row["error"]:
            result = None
        said = (row["name"], paths, _numbers(row), result)
        threads.setdefault(row["thread_id"], []).append(said)
    return [_without_moments(threads[number]) for number in sorted(threads)]


def _without_moments(calls: Iterable[CallSummary]) -> list[CallSummary]:
    """The calls, without how much was read of a text that holds times: from 3.12 on Python counts
    its threads in /proc/self/stat when it forks (warn_about_fork_with_threads() in posixmodule.c).
    """
    found, texts = [], set[object]()
    for name, paths, numbers, result in calls:
        if name == "openat" and paths == ("/proc/self/stat",):
            texts.add(result)
        elif name == "close":
            texts.discard(numbers[0])
        timed = name == "read" and numbers[0] in texts
        found.append((name, paths, numbers, None if timed else result))
    return found


def _numbers(row: Row) -> tuple[object, ...]:
    match row["name"]:
        case "read" | "write" | "getdents64" | "ftruncate":
            return (row["descriptor"], row["length_bytes"])
        case "pread64" | "pwrite64":
            return (row["descriptor"], row["length_bytes"], row["offset_bytes"])
        case "lseek":
            return (row["descriptor"], row["offset_bytes"], row["command"])
        case "fcntl" if row["lock"]:
            # Of F_GETLK strace tells what was found, in the place of what was asked.
            kind = "" if row["command"] == "F_GETLK" else row["lock"]
            lock = (kind, row["offset_bytes"], row["length_bytes"])
            return (row["descriptor"], row["command"], *lock)
        case "fcntl":
            return (row["descriptor"], row["command"])
        case "close" | "fsync" | "fdatasync" | "dup":
            return (row["descriptor"],)
        case "dup2" | "dup3":
            return (row["descriptor"], row["descriptor2"])
        case "mmap":
            return (row["length_bytes"], row["descriptor"], row["offset_bytes"])
        case _:
            return ()


_LINE = re.compile(r"(\w+)\((.*)\)\s+= (\?|0x[0-9a-f]+|-?\d+)(?: (E\w+))?.*")
_STRING = re.compile(r'"((?:[^"\\]|\\.)*)"(?:\.\.\.)?')


STRACE = ("strace", "-ff", "-qq", "-s", "4096", "-e", "signal=none")


def strace_of(log: Path | str) -> list[str]:
    """The command line of strace, up to the program, that traces all calls that are recorded."""
    names = ",".join(f"?{name}" for name in recorded_names())
    return [*STRACE, "-e", f"trace={names}", "-o", str(log)]


def strace_calls(here: Path, log: Path, *program: str) -> tuple[list[list[CallSummary]], int]:
    """The calls of each thread, and the exit code, of the same program under strace."""
    done = subprocess.run(
        [*strace_of(log), *program],
        cwd=here, env=ENVIRONMENT, stdin=subprocess.DEVNULL, capture_output=True,
    )  # fmt: skip
    return read_strace(here, log), done.returncode


def read_strace(here: Path, log: Path) -> list[list[CallSummary]]:
    """The calls of each thread that strace wrote to files beginning with `log`."""
    logs = {int(path.suffix[1:]): path for path in log.parent.glob(f"{log.name}.*")}
    return [
        _without_moments(_strace_calls(logs[tid].read_text(), here))
        for tid in in_order_of_start(logs)
    ]


LAST_TID = int(Path("/proc/sys/kernel/pid_max").read_text())


def in_order_of_start(tids: Iterable[int]) -> list[int]:
    """Numbers of threads in the order in which the kernel gave them: after its last it begins anew.

    They are of one program, and close together: the widest gap is before the first.
    """
    ordered = sorted(tids)
    gaps = [tid - before for before, tid in pairwise([ordered[-1] - LAST_TID, *ordered])]
    first = gaps.index(max(gaps))
    return ordered[first:] + ordered[:first]


def _strace_calls(text: str, here: Path) -> Iterator[CallSummary]:
    for line in text.splitlines():
        found = _LINE.fullmatch(line)
        assert found, line
        name, arguments, number, error = found.groups()
        if name in _LEFT_OUT or "MAP_ANONYMOUS" in arguments:
            continue
        result: object = error or (None if number == "?" else int(number, 0))
        if name in _OF_ITS_OWN and not error:
            result = None
        yield name, _paths(name, arguments, here), _strace_numbers(name, arguments), result


def _paths(name: str, arguments: str, here: Path) -> tuple[str, ...]:
    contents = {"read", "write", "pread64", "pwrite64", "getcwd", "ioctl", "getdents64"}
    strings = _STRING.findall(arguments)
    if name in ("fgetxattr", "fsetxattr"):
        return tuple(strings[:1])
    is_of_descriptor = name.startswith(("f", "p")) and not name.removesuffix("2").endswith("at")
    if name in contents or is_of_descriptor:
        return ()
    if name in ("execve", "readlink", "readlinkat", "getxattr", "lgetxattr"):
        strings = strings[: 2 if "xattr" in name else 1]
    return tuple(plain(text, here) for text in strings)


def _strace_numbers(name: str, arguments: str) -> tuple[object, ...]:
    fields = _STRING.sub("S", arguments).split(", ")

    def descriptor() -> int:
        return int(fields[0])

    match name:
        case "read" | "write" | "getdents64" | "ftruncate":
            return (descriptor(), int(fields[-1]))
        case "pread64" | "pwrite64":
            return (descriptor(), int(fields[-2]), int(fields[-1]))
        case "lseek":
            return (descriptor(), int(fields[1]), fields[2])
        case "fcntl":
            lock = re.search(r"l_type=(\w+), .*l_start=(\d+), l_len=(\d+)", arguments)
            kind = "" if fields[1] == "F_GETLK" else lock and lock[1]
            more = (kind, int(lock[2]), int(lock[3])) if lock else ()
            return (descriptor(), fields[1], *more)
        case "close" | "fsync" | "fdatasync" | "dup":
            return (descriptor(),)
        case "dup2" | "dup3":
            return (descriptor(), int(fields[1]))
        case "mmap":
            return (int(fields[1]), int(fields[-2]), int(fields[-1], 0))
        case _:
            return ()
