"""strace of a replay equals strace of the program, call by call, on all that is below the program's
directory, but for descriptors.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import time
from collections import Counter
from math import inf
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from jojlab.foundation.places import agent_path
from tests.live.recordings import ENVIRONMENT, PYTHON, plain, record_program
from tests.live.test_replay_again import CLONE, EDITOR, SQLITE

pytestmark = pytest.mark.skipif(
    shutil.which("strace") is None, reason="strace is not installed: apt-get install strace"
)

# A name, its files from the directory of the program, its numbers, and how it ended.
CountedCall = tuple[str, tuple[str, ...], tuple[str, ...], str]

# Descriptors: a fork copies them and an execve closes them, which a replay does by calls. What sets
# the current directory, and execve, are in other steps.
_LEFT_OUT = {"close", "close_range", "dup", "dup2", "dup3", "fcntl", "chdir", "fchdir", "getcwd",
             "execve"}  # fmt: skip
# The umask is part of the mode that a replay asks for, and so is what the owner needs.
_MODES = {"mkdir", "chmod"}
_SAME = {"open": "openat", "creat": "openat"}
# Results that are of the kernel's choosing: a descriptor, an address, bytes of names.
_OWN_RESULTS = {"openat", "mmap", "getdents64"}
_LINE = re.compile(r"([\d.]+) (\w+)\((.*)\)\s+= (\?|-?\w+).*")
_TEXT = re.compile(r'"((?:[^"\\]|\\.)*)"')
_PLACE = re.compile(r"(?:AT_FDCWD|\b\d+)<(/[^>]*)>")
_FLAGS = re.compile(r"O_(?:RDWR|WRONLY|CREAT|EXCL|TRUNC|APPEND|DIRECTORY|DIRECT|D?SYNC)\b")


def run_under_strace(log: Path, command: list[str], here: Path, text: str = "") -> None:
    """Write what strace says of each thread; names are whole, contents are not shown."""
    strace = ["strace", "-ff", "-y", "-qq", "-s", "0", "-e", "signal=none", "-ttt"]
    strace += ["-o", str(log), "-e", "trace=file,desc,sync,syncfs"]
    subprocess.run(
        [*strace, *command], cwd=here, env=ENVIRONMENT, input=text, text=True, check=True
    )


def count_calls(
    logs: list[Path], root: Path, begin_s: float = 0, end_s: float = inf
) -> Counter[CountedCall]:
    """The calls on what is below a directory, that began in this time."""
    found: Counter[CountedCall] = Counter()
    lines = [line for log in logs for line in log.read_text().splitlines()]
    for match in filter(None, map(_LINE.fullmatch, lines)):
        time_s, name, arguments, result = match.groups()
        places = _PLACE.findall(arguments)
        texts = [os.path.normpath(text) for text in _TEXT.findall(arguments) if text]
        # A name is from the directory of the descriptor before it. Where there is none strace does
        # not tell the current directory, which is below the root: the last part stands for all.
        at = places[0] if texts and places else root
        paths = [Path(at, text) for text in texts or places]
        below = [path.relative_to(root) for path in paths if path.is_relative_to(root)]
        if name in _LEFT_OUT or not below or not begin_s <= float(time_s) <= end_s:
            continue
        name = _SAME.get(name, name)
        bare = re.sub(r'\d*<[^>]*>|"(?:[^"\\]|\\.)*"|\{.*?\}', "", arguments)
        numbers = _FLAGS.findall(bare) if name == "openat" else re.findall(r"\b\d+\b", bare)
        if name in _MODES:
            numbers = []
        ended = "" if name in _OWN_RESULTS and not result.startswith("-") else result
        inside = tuple(plain(f"/{path if places else path.name}", root) for path in below)
        found[name, inside, tuple(numbers), ended] += 1
    return found


def later_s() -> float:
    """Return how much later the time of day is, which strace tells, than the clock of a recording.

    Both are read at about the same time where this process is not interrupted meanwhile.
    """
    readings = [(time.monotonic(), time.time(), time.monotonic()) for _ in range(1000)]
    before_s, now_s, after_s = min(readings, key=lambda reading: reading[2] - reading[0])
    return now_s - (before_s + after_s) / 2


PROGRAMS = {"wal": SQLITE["wal"], "git": ("sh", "-c", CLONE), "editor": (*PYTHON, EDITOR)}


@pytest.mark.parametrize("name", PROGRAMS)
def test_strace_of_the_replay_equals_that_of_the_program(name: str, tmp_path: Path) -> None:
    # Of one length: git writes the path into a file.
    folders = [tmp_path / name for name in ("by-strace", "by-record", "by-replay", "tables")]
    for folder in folders:
        folder.mkdir()
    by_strace, by_record, by_replay, tables = folders
    run_under_strace(tmp_path / "program", [*PROGRAMS[name]], by_strace)
    first = record_program(by_record, tmp_path / "recording", *PROGRAMS[name])
    case = {"workload": "replay", "recording": str(first.folder)}
    case |= {"recorded_root": str(by_record), "timing": "none", "background": "none"}
    command = [str(agent_path()), "bench", "--directory", str(by_replay), "--output", str(tables)]
    run_under_strace(
        tmp_path / "replay",
        command,
        tmp_path,
        json.dumps({"seed": 1, "case": {**case, "timing_percent": 100}}),
    )
    rows = pq.read_table(tables / "manifest.parquet").to_pylist()
    [replay] = [json.loads(row["value"]) for row in rows if row["key"] == "replay"]
    logs = [tmp_path / f"replay.{tid}" for tid in replay["replayed"]["tids"]]
    texts = "".join(log.read_text() for log in logs)
    [root] = set(re.findall(rf"{by_replay}/joj-bench-\w+", texts))
    program = count_calls(sorted(tmp_path.glob("program.*")), by_strace)
    begin_s, end_s = (replay["replayed"][end] / 1e9 + later_s() for end in ("begin_ns", "end_ns"))
    # strace cuts its times off behind the microsecond.
    again = count_calls(logs, Path(root), begin_s - 1e-6, end_s)
    assert (sorted((program - again).items()), sorted((again - program).items())) == ([], [])
    assert program.total() > 20
