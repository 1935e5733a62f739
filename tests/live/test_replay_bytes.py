"""A program and the replay of its recording write the same bytes of each type to a new filesystem
on a loop device, as the tracer sees both.
"""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from jojlab.foundation.places import agent_path
from tests.live.loop import Loop, mounted_loop
from tests.live.recordings import ENVIRONMENT, LONG_AGO, Recording, record_program
from tests.live.tracing import read

ROWS = "INSERT INTO t VALUES (zeroblob(400)); " * 20
SYNCS = "git -c core.fsync=all"
GIT = (
    f"{SYNCS} init -q here && cd here && seq 2000 >a && {LONG_AGO} a && git add a && "
    f"{SYNCS} commit -qm 1 && cd .. && {SYNCS} clone -q --no-hardlinks here there"
)
PROGRAMS = {
    **{
        mode: ("sqlite3", "app.db", f"PRAGMA journal_mode = {mode}; CREATE TABLE t(x); {ROWS}")
        for mode in ("delete", "truncate", "persist", "wal")
    },
    "git": ("sh", "-c", GIT),
    "vim": ("vim", "-es", "-u", "NONE", "-c", "set fsync|normal ihello", "-c", "wq", "note.txt"),
}
# What is there before, of the program that names it: a replay makes nothing else.
FILES = {"vim": {"note.txt": "".join(f"line {number}\n" for number in range(5000))}}
# A replay is below a directory of its own; the program gets one as long.
OWN = "joj-bench-0123456789abcdef"
# Whether a write finds the file with another time than its last depends on the kernel's clock,
# whose ticks are 1 to 10 ms: two runs of a program differ too.
TRIES = 4
# The journal commits by itself after so many seconds: not while a program runs, however long it
# takes.
OPTIONS = "remount,commit=3600"


def trace_command(loop: Loop, tables: Path, command: list[str], text: str = "") -> None:
    """Run a command under the tracer of the loop device."""
    tracer = [str(agent_path()), "trace", "--device", loop.device, "--output", str(tables), "--"]
    subprocess.run([*tracer, *command], env=ENVIRONMENT, check=True, input=text, text=True)


def written_bytes(tables: Path, begin_ns: int = 0, end_ns: int = 1 << 63) -> Counter[str]:
    """Bytes written by block type, of requests that were issued in this time."""
    found: Counter[str] = Counter()
    for row in read(tables).runs:
        if row["operation"] == "write" and begin_ns <= row["issue_ns"] <= end_ns:
            found[row["block_type"]] += row["length_bytes"]
    return found


def make_folder(directory: Path, name: str) -> Path:
    """Make a directory with what a program finds there."""
    directory.mkdir()
    for file, text in FILES.get(name, {}).items():
        (directory / file).write_text(text)
    return directory


def program_writes(folder: Path, name: str) -> Counter[str]:
    """Return what a program writes, with what a sync behind it writes."""
    folder.mkdir()
    with mounted_loop("ext4", folder) as loop:
        subprocess.run(["mount", "-o", OPTIONS, loop.directory], check=True)
        here = make_folder(loop.directory / OWN, name)
        subprocess.run(["sync", "-f", here], check=True)
        script = f'cd {here} && "$@" && sync -f .'
        trace_command(loop, folder / "tables", ["sh", "-c", script, "sh", *PROGRAMS[name]])
    return written_bytes(folder / "tables")


def replay_writes(folder: Path, recording: Recording, recorded_root: Path) -> Counter[str]:
    """Return what a replay writes between its preparation and the removal of its files."""
    (tables := folder / "of-replay").mkdir(parents=True)
    case = {"workload": "replay", "recording": str(recording.folder),
            "recorded_root": str(recorded_root), "timing": "recorded", "timing_percent": 100,
            "background": "none"}  # fmt: skip
    with mounted_loop("ext4", folder) as loop:
        subprocess.run(["mount", "-o", OPTIONS, loop.directory], check=True)
        command = [str(agent_path()), "bench", "--directory", str(loop.directory)]
        command += ["--output", str(tables)]
        trace_command(loop, folder / "tables", command, json.dumps({"seed": 1, "case": case}))
    rows = pq.read_table(tables / "manifest.parquet").to_pylist()
    [phases] = [json.loads(row["value"]) for row in rows if row["key"] == "phases"]
    return written_bytes(folder / "tables", phases[0]["begin_ns"], phases[-1]["end_ns"])


OFTEN = ("wal", "delete")


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=() if name in OFTEN else pytest.mark.full) for name in PROGRAMS],
)
def test_a_replay_writes_the_bytes_of_its_program(name: str, tmp_path: Path) -> None:
    here = make_folder(tmp_path / "recorded", name)
    recording = record_program(here, tmp_path / "recording", *PROGRAMS[name])
    assert recording.code == 0
    programs: list[Counter[str]] = []
    replays: list[Counter[str]] = []
    for number in range(TRIES):
        programs.append(program_writes(tmp_path / f"program{number}", name))
        replays.append(replay_writes(tmp_path / f"replay{number}", recording, here))
        assert min(programs[-1][kind] for kind in ("data", "fs-journal", "fs-metadata")) > 0
        if any(agree(program, replay) for program in programs for replay in replays):
            print(f"{name}: {dict(programs[-1])} {dict(replays[-1])}")
            return
    raise AssertionError((programs, replays))


def agree(program: Counter[str], replay: Counter[str]) -> bool:
    """Return whether each type's bytes are within 2 %."""
    return program.keys() == replay.keys() and all(
        abs(replay[block_type] - length) <= length / 50 for block_type, length in program.items()
    )
