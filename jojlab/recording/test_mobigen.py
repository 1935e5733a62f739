from __future__ import annotations

import io
import json
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jojlab.foundation.errors import UseError
from jojlab.recording import mobigen
from jojlab.recording.folder import Recording, path_bytes

Row = dict[str, Any]
COLUMNS = (
    "error", "descriptor", "descriptor2", "directory", "path", "path_id", "offset_bytes",
    "length_bytes", "flags", "command",
)  # fmt: skip


class HandMadeRecording:
    """A recording made by hand: one microsecond a call."""

    def __init__(self) -> None:
        self.calls: list[Row] = []
        self.threads: list[Row] = []
        self.paths: list[str] = []
        self.descriptors: list[Row] = []

    def thread(self, creator: int | None = None, call: int | None = None, pid: int = 1) -> None:
        self.threads.append(
            {
                "thread_id": len(self.threads),
                "pid": pid,
                "creator_id": creator,
                "created_by_call_id": call,
                "shares_descriptors": pid == 1,
            }
        )

    def call(self, thread_id: int, name: str, result: int | None, **fields: Any) -> int:
        number = len(self.calls)
        row = dict.fromkeys(COLUMNS) | {"call_id": number, "thread_id": thread_id, "name": name}
        row |= {"begin_ns": 5000 + number * 1000, "result": result}
        if result is not None and result < 0:
            row["error"] = "EIO"
        if "path" in fields:
            row["path_id"] = len(self.paths)
            self.paths.append(fields["path"])
        self.calls.append(row | fields)
        return number

    def write(self, folder: Path) -> Recording:
        manifest = {"recording_version": 1, "incomplete_reasons": []}
        tables = {
            "manifest": [{"key": k, "value": json.dumps(v)} for k, v in manifest.items()],
            "threads": self.threads,
            **({"descriptors": self.descriptors} if self.descriptors else {}),
        }
        for name, rows in tables.items():
            pq.write_table(pa.Table.from_pylist(rows), folder / f"{name}.parquet")
        segments = {
            "calls": self.calls,
            "snapshot": [{"path_id": n, "path": path} for n, path in enumerate(self.paths)],
        }
        for name, rows in segments.items():
            (folder / name).mkdir()
            if rows:
                pq.write_table(pa.Table.from_pylist(rows), folder / name / "000000.parquet")
        return Recording.open(folder)


def script(recording: HandMadeRecording, folder: Path) -> tuple[list[str], mobigen.ExportCounts]:
    stream = io.BytesIO()
    exported = mobigen.write(recording.write(folder), stream)
    return stream.getvalue().decode().splitlines(), exported


def test_reads_after_a_seek_are_at_their_offset(tmp_path: Path) -> None:
    recording = HandMadeRecording()
    recording.thread()
    recording.call(0, "openat", 3, path="/a b", flags=os.O_RDWR | os.O_CREAT)
    recording.call(0, "write", 10, descriptor=3)
    recording.call(0, "lseek", 0, descriptor=3)
    recording.call(0, "read", 4, descriptor=3)
    recording.call(0, "pwrite64", 5, descriptor=3, offset_bytes=100)
    recording.call(0, "read", 6, descriptor=3)
    recording.call(0, "fsync", -5, descriptor=3)
    recording.call(0, "close", 0, descriptor=3)
    recording.call(0, "write", 3, descriptor=1)
    lines, exported = script(recording, tmp_path)
    assert lines == [
        '1 0 open "/a b" O_RDWR|O_CREAT 3',
        "1 1 write 3 10",
        "1 3 pread 3 0 4",
        "1 4 pwrite 3 100 5",
        "1 5 pread 3 4 6",
        "1 6 fsync 3 -1",
        "1 7 close 3",
    ]
    assert (dict(exported.carried), dict(exported.left_out)) == ({"lseek": 1}, {"write": 1})


def test_processes_and_copies_have_files_of_their_own(tmp_path: Path) -> None:
    recording = HandMadeRecording()
    recording.thread()
    recording.call(0, "open", 3, path="/a", flags=os.O_WRONLY | os.O_CLOEXEC)
    recording.call(0, "dup", 4, descriptor=3)
    recording.thread(0, recording.call(0, "fork", 77), pid=77)
    recording.call(0, "close", 0, descriptor=3)
    recording.call(0, "close", 0, descriptor=4)  # the child still has it
    recording.call(0, "open", 3, path="/b", flags=os.O_RDONLY)
    recording.call(1, "write", 8, descriptor=4)
    recording.call(1, "execve", 0, path="/bin/x")
    recording.call(1, "fsync", 0, descriptor=3)  # closed by the execve
    recording.call(1, "write", 8, descriptor=4)
    recording.call(1, "exit_group", None)
    lines, exported = script(recording, tmp_path)
    assert [line.split(" ", 2)[2] for line in lines] == [
        'open "/a" O_WRONLY|O_CLOEXEC 3',
        'open "/b" O_RDONLY 4',
        "write 3 8",
        "write 3 8",
    ]
    assert exported.left_out == {"fork": 1, "execve": 1, "fsync": 1, "exit_group": 1}


def test_calls_that_mobigen_cannot_express_are_counted(tmp_path: Path) -> None:
    recording = HandMadeRecording()
    recording.thread()
    recording.call(0, "stat", 0, path='/a" b')
    recording.call(0, "openat", 3, path="/a\nb", flags=os.O_RDONLY)
    recording.call(0, "read", 5, descriptor=3)
    recording.call(0, "openat", 3, path="/tmp", flags=os.O_TMPFILE | os.O_RDWR)
    recording.call(0, "rename", 0, path="/x", path2="/y")
    recording.call(0, "unlinkat", 0, path="/d", flags=0x200)
    recording.call(0, "stat", -2, path="/none")
    lines, exported = script(recording, tmp_path)
    assert lines == ['1 6 stat "/none" -1']
    assert exported.left_out.total() == 6


CALLS = st.lists(
    st.tuples(
        st.integers(0, 2),
        st.sampled_from(
            ["open", "close", "dup", "read", "write", "pread64", "lseek", "fsync", "stat",
             "exit_group", "close_range", "execve", "newfstatat"]
        ),
        st.integers(-1, 6),
        st.integers(0, 6),
    ),
    max_size=40,
)  # fmt: skip


@settings(deadline=None)
@given(CALLS)
def test_every_call_is_a_line_or_counted(
    tmp_path_factory: pytest.TempPathFactory, calls: list[tuple[int, str, int, int]]
) -> None:
    recording = HandMadeRecording()
    recording.thread()
    recording.thread(0)
    recording.thread(0, pid=2)
    for thread_id, name, result, descriptor in calls:
        fields: Row = {"descriptor": descriptor, "offset_bytes": descriptor, "flags": 0}
        if name in ("open", "stat", "execve"):
            fields |= {"path": f"/{descriptor}"}
        if name == "close_range":
            fields |= {"descriptor2": -1}
        recording.call(thread_id, name, None if name == "exit_group" else result, **fields)
    lines, exported = script(recording, tmp_path_factory.mktemp("made"))
    # A close_range, an execve or an exit may close several files.
    told = {line.split(" ")[1] for line in lines}
    assert len(told) + exported.left_out.total() + exported.carried.total() == len(calls)
    assert len(lines) == exported.lines


def test_a_folder_that_is_no_recording_is_told(tmp_path: Path) -> None:
    with pytest.raises(UseError, match="no recording"):
        Recording.open(tmp_path)
    rows = [{"key": "recording_version", "value": "7"}]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "manifest.parquet")
    with pytest.raises(UseError, match="is 7"):
        Recording.open(tmp_path)


def test_text_is_bytes_again() -> None:
    assert path_bytes("a\\\\b\\xff\u00e9") == b"a\\b\xff\xc3\xa9"


def test_files_that_were_open_before_have_a_line_of_their_own(tmp_path: Path) -> None:
    recording = HandMadeRecording()
    recording.thread()
    before = {"thread_id": 0, "flags": os.O_RDWR, "position_bytes": 100}
    for number, target in enumerate(["/dev/null", "pipe:[7]", "/old file", ""]):
        recording.descriptors.append(before | {"descriptor": number, "target": target})
    for number in range(4):
        recording.call(0, "read", 5, descriptor=number, length_bytes=5)
    recording.call(0, "close", 0, descriptor=2)
    lines, exported = script(recording, tmp_path)
    assert [line.split(" ", 2)[2] for line in lines] == [
        "open /opened-before O_RDWR 3", "pread 3 100 5",
        "open /opened-before O_RDWR 4", "pread 4 100 5",
        "close 3",
    ]  # fmt: skip
    assert (exported.lines, exported.opened_before, exported.left_out) == (5, 2, {"read": 2})
