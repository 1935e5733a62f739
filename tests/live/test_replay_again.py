"""joj replay makes the calls of a recording again: what the recorder sees of the replay is what it
saw of the program, call by call, but for the numbers of descriptors.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from jojlab.foundation.places import agent_path
from tests.live.recordings import LONG_AGO, PYTHON, Recording, Row, command_of, record_program
from tests.this_process import joj

# A program's sync() is one of its filesystem; a replay opens by openat and copies by fcntl.
_SAME = {"open": "openat", "creat": "openat", "openat2": "openat", "sync": "syncfs",
         "dup": "fcntl", "dup2": "fcntl", "dup3": "fcntl"}  # fmt: skip
# Results that are of the kernel's choosing.
_OWN_RESULTS = {"openat", "fcntl", "mmap", "getdents64", "readlink", "readlinkat"}
_NUMBERS = ("data", "offset_bytes", "offset2_bytes", "length_bytes", "vectors", "command", "lock")

ReplayedCall = tuple[object, ...]


def call_words(row: Row, inside: str) -> ReplayedCall:
    """A call without descriptors and addresses; paths from the root of the replay."""
    name = _SAME.get(row["name"], row["name"])
    numbers = [row[key] for key in _NUMBERS]
    if name == "fcntl" and not row["lock"]:
        numbers = []  # how a descriptor is copied, and whether an execve closes it
    if name == "syncfs" or name in ("mmap", "munmap"):
        numbers = [row["length_bytes"]] if name == "mmap" else []
    result = row["error"] or (None if name in _OWN_RESULTS else row["result"])
    return name, inside, *numbers, result


def replay_calls(
    folder: Path, tmp_path: Path, options: tuple[str, ...] = ()
) -> tuple[list[ReplayedCall], dict[str, Any]]:
    """Replay a recording under the recorder: its calls, and the manifest's `replay`."""
    (here := tmp_path / "again").mkdir()
    (tables := tmp_path / "tables").mkdir()
    text = replay_case(str(folder))
    command = [str(agent_path()), "bench", "--directory", str(here), "--output", str(tables)]
    again = Recording(tmp_path / "second", 0)
    recorder = command_of(again.folder, *options)
    subprocess.run([*recorder, "--", *command], input=text, text=True, check=True)
    return read_replay(again, tables, here)


def replay_case(folder: str) -> str:
    """Return what the agent is given to replay a recording as fast as it can."""
    case = {"workload": "replay", "recording": folder, "timing": "none",
            "timing_percent": 100, "recorded_root": "/", "background": "none"}  # fmt: skip
    return json.dumps({"seed": 1, "case": case})


def read_replay(
    again: Recording, tables: Path, here: Path
) -> tuple[list[ReplayedCall], dict[str, Any]]:
    """The calls of a replay in `here`, of a recording of it; and its manifest's `replay`."""
    manifest = {row["key"]: row["value"] for row in pq.read_table(
        tables / "manifest.parquet").to_pylist()}  # fmt: skip
    replay = json.loads(manifest["replay"])
    first, last = replay["replayed"]["begin_ns"], replay["replayed"]["end_ns"]
    tids = set(replay["replayed"]["tids"])
    threads = {row["thread_id"] for row in again.table("threads") if row["tid"] in tids}
    paths = {row["path_id"]: row["path"] for row in again.table("snapshot")}
    calls = [
        call_words(row, place(paths.get(row["path_id"]), here))
        for row in again.table("calls")
        if row["thread_id"] in threads and first <= row["begin_ns"] <= last
    ]
    return calls, {**replay, "reasons": json.loads(manifest["incomplete_reasons"])}


def place(path: str | None, here: Path) -> str:
    """A path from the root of the replay; empty for none."""
    if path is None:
        return ""
    below = path.removeprefix(f"{here}/")
    return f"/{below.partition('/')[2]}" if below != path else path


def file_calls(recording: Recording, replay: dict[str, Any]) -> list[ReplayedCall]:
    """The calls that a replay must make: all but those that it says it does not."""
    paths = {row["path_id"]: row["path"] for row in recording.table("snapshot")}
    elsewhere: set[int] = {
        row["descriptor"]
        for row in recording.table("descriptors")
        if not row["target"].startswith("/") or row["target"].startswith("/dev/")
    }
    calls = []
    for row in recording.table("calls"):
        path = paths.get(row["path_id"]) or ""
        numbers = [row[key] for key in ("descriptor", "directory") if row[key] is not None]
        is_elsewhere = path.startswith(("/proc/", "/dev/", "/sys/")) or (
            not path and any(number in elsewhere for number in numbers)
        )
        if row["name"] in ("socket", *_SAME, "openat") and row["result"] >= 0:
            is_elsewhere |= row["name"] == "socket"
            (elsewhere.add if is_elsewhere else elsewhere.discard)(row["result"])
        if row["name"] not in replay["carried"] and not is_elsewhere:
            calls.append(call_words(row, path))
    return calls


EDITOR = """
import os
def save(text):
    with open("note.new", "w") as file:
        file.write(text); file.flush(); os.fsync(file.fileno())
    os.rename("note.new", "note"); d = os.open(".", os.O_RDONLY); os.fsync(d); os.close(d)
save("one\\n" * 3000); save("two\\n" * 5000); print(len(open("note").read()))
"""
SQL = "create table t(x); insert into t values(1); insert into t select randomblob(9000) from t;"
SQLITE = {
    mode: ("sqlite3", "a.db", f"pragma journal_mode={mode}; {SQL} delete from t;")
    for mode in ("delete", "truncate", "persist", "wal")
}


@pytest.mark.parametrize("program", [*SQLITE.values(), (*PYTHON, EDITOR)])
def test_a_replay_makes_the_calls_of_the_program(program: tuple[str, ...], tmp_path: Path) -> None:
    (here := tmp_path / "here").mkdir()
    first = record_program(here, tmp_path / "first", *program)
    assert first.code == 0
    calls, replay = replay_calls(first.folder, tmp_path)
    wanted = file_calls(first, replay)
    assert [call for call in calls if call[0] != "munmap"] == [
        call for call in wanted if call[0] != "munmap"
    ]
    assert (replay["otherwise"], replay["left_out"], replay["reasons"]) == ({}, [], [])


VECTORS = """
import os
file = os.open("direct", os.O_WRONLY | os.O_CREAT | os.O_DIRECT)
import mmap
page = mmap.mmap(-1, 8192); page.write(os.urandom(8192)); os.write(file, page); os.fsync(file)
file = os.open("parts", os.O_RDWR | os.O_CREAT)
os.pwritev(file, [os.urandom(5), b"", os.urandom(7000)], 3); os.write(file, os.urandom(1 << 20))
"""


@pytest.mark.parametrize("program", [SQLITE["wal"], (*PYTHON, VECTORS)])
def test_kept_contents_are_written_again(program: tuple[str, ...], tmp_path: Path) -> None:
    (here := tmp_path / "here").mkdir()
    first = record_program(here, tmp_path / "first", *program, options=("--data", "keep"))
    calls, replay = replay_calls(first.folder, tmp_path, ("--data", "hash"))
    wanted = file_calls(first, replay)
    writes = [call for call in calls if "write" in str(call[0])]
    assert writes == [call for call in wanted if "write" in str(call[0])]
    assert (replay["kept_writes"], replay["seeded_writes"]) == (len(writes), 0)
    assert replay["reasons"] == []
    # Of contents that are damaged nothing is replayed.
    contents = first.folder / "contents.bin"
    contents.write_bytes(bytes(contents.stat().st_size))
    answer = joj("replay", first.folder, "--directory", here)
    assert (answer.returncode, "contents.bin: " in answer.stderr) == (2, True), answer.stderr


CLONE = f"""
git init -q src; cd src; for i in 1 2 3 4; do seq 1 $((i * 300)) > f$i; done
{LONG_AGO} f*; git add .; git commit -q -m x; cd ..; git clone -q --no-hardlinks src dst
"""


def test_every_call_of_several_processes_is_made_or_counted(tmp_path: Path) -> None:
    (here := tmp_path / "here").mkdir()
    (again := tmp_path / "again").mkdir()
    first = record_program(here, tmp_path / "first", "sh", "-c", CLONE)
    assert first.code == 0
    answer = joj("replay", first.folder, "--directory", again, "--timing", "none", "--json")
    assert answer.returncode == 0, answer.stderr
    found = json.loads(answer.stdout)
    assert (found["fidelity"], found["left_out"], found["incomplete_reasons"]) == (1, [], [])
    counted = [*found["elsewhere"].values(), *found["carried"].values()]
    assert found["calls"] + sum(counted) == first.manifest["calls"] == found["recorded_calls"]
    assert len(found["by_thread"]) > 3
    assert list(again.iterdir()) == []


HOSTILE = """
import os
os.symlink("/etc", "link"); os.symlink("../../../../../etc/passwd", "passwd")
for path in ("/etc/joj-was-here", "../../joj-was-here", "link/joj-was-here"):
    try: os.close(os.open(path, os.O_WRONLY | os.O_CREAT))
    except OSError: pass
file = os.open("sparse", os.O_WRONLY | os.O_CREAT)
try: os.pwrite(file, b"x", 2**62)
except OSError: pass
os.mkfifo("pipe")
"""


def test_a_hostile_recording_stays_in_its_directory(tmp_path: Path) -> None:
    (here := tmp_path / "here").mkdir()
    (again := tmp_path / "again").mkdir()
    first = record_program(here, tmp_path / "first", *PYTHON, HOSTILE)
    made = (Path("/etc/joj-was-here"), tmp_path.parent / "joj-was-here")
    for path in made:
        path.unlink(missing_ok=True)
    answer = joj("replay", first.folder, "--directory", again, "--timing", "none")
    assert answer.returncode == 4, answer.stderr
    assert "incomplete 1 call of pwrite64 left out: it reaches beyond 16 TiB" in answer.stdout
    assert "it makes a device, pipe or socket" in answer.stdout
    assert not any(path.exists() for path in made)
    assert list(again.iterdir()) == []


def test_replay_of_no_recording_is_refused(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "manifest.parquet").write_bytes(b"PAR1\0rubbish")
    for name, words in (("folder", "folder: no recording: "), ("none", "not there")):
        answer = joj("replay", tmp_path / name, "--directory", tmp_path)
        assert (answer.returncode, words in answer.stderr) == (2, True), answer.stderr
    answer = joj("replay", tmp_path / "folder", "--directory", tmp_path, "--timing", "soon")
    assert (answer.returncode, "--timing soon" in answer.stderr) == (2, True)
