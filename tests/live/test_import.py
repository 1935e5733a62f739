"""joj import: the same program, recorded by joj record and imported from strace, makes the same
calls; and what strace leaves out of its lines is found again.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from jojlab.foundation.places import agent_path
from jojlab.recording import folder as recordings
from jojlab.recording import mobigen
from tests.live.recordings import ENVIRONMENT, ROOT, Recording, record_program, recorded_calls
from tests.live.test_record import PROGRAMS

pytestmark = pytest.mark.skipif(
    shutil.which("strace") is None, reason="strace is not installed: apt-get install strace"
)


def import_strace(here: Path, folder: Path, *program: str, flags: tuple[str, ...]) -> Recording:
    """Run a program in `here` under strace, and import what it printed."""
    log = folder.with_suffix(".log")
    subprocess.run(
        ["strace", *flags, "-o", str(log), *program],
        cwd=here, env=ENVIRONMENT, stdin=subprocess.DEVNULL, capture_output=True,
    )  # fmt: skip
    logs = sorted(map(str, log.parent.glob(f"{log.name}*")))
    command = [str(agent_path()), "import", "-o", str(folder), "--strict"]
    command += ["--directory", str(here), "--", "strace", *logs]
    done = subprocess.run(command, capture_output=True, text=True)
    assert not done.stderr
    return Recording(folder, done.returncode)


FORMS = {
    "all": ("-f", "-ttt", "-T", "-y"),
    "no paths": ("-f", "-tt"),
    "hexadecimal": ("-f", "-r", "-xx", "-Y", "-yy"),
    "files": ("-ff", "-ttt", "-T"),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", ["cp", "sqlite3-wal", "threads", "descriptors"])
def test_an_import_has_the_calls_of_a_recording(name: str, form: str, tmp_path: Path) -> None:
    program = PROGRAMS[name]
    here = tmp_path / "here"
    recordings_of_both = []
    for number in range(3):  # the first run fills the caches of Python and the libraries
        shutil.rmtree(here, ignore_errors=True)
        here.mkdir()
        if number == 0:
            subprocess.run(program, cwd=here, env=ENVIRONMENT, check=True, capture_output=True)
        elif number == 1:
            recordings_of_both.append(record_program(here, tmp_path / "recorded", *program))
        else:
            both = import_strace(here, tmp_path / "imported", *program, flags=FORMS[form])
            recordings_of_both.append(both)
    ours, theirs = recordings_of_both
    assert (theirs.code, theirs.manifest["bad_lines"]) == (0, 0)
    said, told = recorded_calls(ours, here), recorded_calls(theirs, here)
    assert [len(thread) for thread in told] == [len(thread) for thread in said]
    for one, other in zip(told, said, strict=True):
        assert one == other
    relations = [
        [
            (row["creator_id"], row["shares_descriptors"], row["shares_directory"])
            for row in each.table("threads")
        ]
        for each in recordings_of_both
    ]
    assert relations[0] == relations[1]
    if form == "all":
        assert snapshot_of(theirs, here) == snapshot_of(ours, here)


def snapshot_of(recording: Recording, here: Path) -> dict[str, str]:
    """Return what was at each path below `here`: absent, file ..."""
    rows = recording.table("snapshot")
    return {row["path"]: row["kind"] for row in rows if Path(row["path"]).is_relative_to(here)}


def test_a_recording_of_strace_is_exported_again(tmp_path: Path) -> None:
    here = tmp_path / "here"
    here.mkdir()
    program = PROGRAMS["editor"]
    import_strace(here, tmp_path / "r", *program, flags=FORMS["all"])
    with (tmp_path / "script").open("wb") as stream:
        exported = mobigen.write(recordings.Recording.open(tmp_path / "r"), stream)
    script = (tmp_path / "script").read_text()
    assert exported.lines == len(script.splitlines())
    assert f'open "{here}/.note.txt.swp" O_WRONLY|O_CREAT|O_EXCL' in script
    command = [str(agent_path()), "import", "-o", str(tmp_path / "again")]
    command += ["mobigen", str(tmp_path / "script")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert Recording(tmp_path / "again", 0).manifest["calls"] == exported.lines


def test_times_and_sizes_are_those_of_the_trace(tmp_path: Path) -> None:
    here = tmp_path / "here"
    here.mkdir()
    (here / "old").write_text("x" * 5000)
    command = ("cat", "old")
    recording = import_strace(here, tmp_path / "r", *command, flags=FORMS["all"])
    assert recording.manifest["command"] == list(command)
    assert recording.manifest["times"] == {"begin": "told", "end": "told"}
    old = {row["path"]: row for row in recording.table("snapshot")}[str(here / "old")]
    assert (old["size_bytes"], old["kind"], old["basis"]) == (5000, "file", "told")
    for row in recording.calls("read"):
        assert row["begin_ns"] > 1_700_000_000_000_000_000
        assert row["end_ns"] >= row["begin_ns"]
    opened = next(row for row in recording.calls("openat") if row["path"] == "old")
    assert (opened["device"], opened["inode"]) == (old["device"], old["inode"])


def joj(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run joj import in a folder."""
    command = [sys.executable, "-m", "jojlab", "import", *arguments]
    target = ROOT / os.environ.get("CARGO_TARGET_DIR", "target")
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "CARGO_TARGET_DIR": str(target)}
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, env=environment)


OLD = """\
12 open("/data/app.db", O_RDWR|O_CREAT|O_LARGEFILE, 0660) = 36
12 fcntl64(36, F_SETLK, {type=F_RDLCK, whence=SEEK_SET, start=1073741826, len=510}) = 0
12 pread(36, "SQLite format 3\\0\\20\\0\\1\\1\\0@  "..., 100, 0) = 100
13 _llseek(36, 0, [0], SEEK_SET) = 0
12 brk(0) = 0x9000
hello, I am the program
12 close(36) = 0
"""


def test_an_old_trace_is_read_and_what_is_no_line_is_told(tmp_path: Path) -> None:
    (tmp_path / "old.strace").write_text(OLD)
    answer = joj(tmp_path, "strace", "old.strace")
    assert answer.returncode == 4
    told = answer.stdout.splitlines()
    assert told[0] == "7 lines: 5 calls of 2 threads"
    assert "left out: 1 brk" in told
    assert "old.strace: line 6, column 6: no call" in answer.stdout
    assert "incomplete: 1 line could not be read" in told
    recording = Recording(tmp_path / "runs/old", 4)
    names = ["open", "fcntl", "pread64", "lseek", "close"]
    assert [row["name"] for row in recording.calls()] == names
    _, second = recording.table("threads")
    assert second["shares_descriptors"]
    assert second["creator_id"] == 0
    database = recording.table("snapshot")[0]
    assert (database["kind"], database["size_bytes"], database["basis"]) == (
        "file", 100, "inferred",
    )  # fmt: skip
    answer = joj(tmp_path, "strace", "old.strace", "--strict", "-o", "none")
    assert answer.returncode == 2
    assert "line 6, column 6" in answer.stderr
    assert not (tmp_path / "none").exists()


FAR = """\
1 openat(AT_FDCWD, "../../../etc/passwd", O_RDWR) = 3
1 pwrite64(3, "x", 18446744073709551615, 9223372036854775807) = 9223372036854775807
1 write(3, "x", 9223372036854775807) = 9223372036854775807
1 write(3, "x", 9223372036854775807) = 9223372036854775807
1 lseek(3, -9223372036854775808, SEEK_END) = 9223372036854775807
1 read(99999999999, "x", 1) = 1
1 close_range(-5, -1, 0) = 0
"""
HOSTILE = {
    "nothing": (b"", 2, "no file system call"),
    "rubbish": (bytes(range(256)) * 2000, 2, "line 1, column 1"),
    "endless": (b"x" * (17 << 20), 2, "longer than a line can be"),
    "far": (FAR.encode(), 0, ""),
    "descriptors": (
        b"1 open(\"/a\", O_RDWR) = 3\n"
        + b"".join(b"1 dup(3) = %d\n" % number for number in range(4, 300_000))
        + b"".join(b"1 fork() = %d\n%d close(3) = 0\n" % (n, n) for n in range(2, 60)),
        2,
        "more than four million descriptors",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_a_strangers_trace_ends_clearly_and_harms_nothing(name: str, tmp_path: Path) -> None:
    content, code, says = HOSTILE[name]
    (tmp_path / "trace").write_bytes(content)
    agent = [str(agent_path()), "import", "-o", str(tmp_path / "r")]
    # A limit, and no look at what it used: the largest size that Linux tells of a child is at least
    # that of the process that started it (exec_mmap() keeps that of the memory before it).
    limited = ["prlimit", f"--data={1 << 30}", *agent, "strace", str(tmp_path / "trace")]
    done = subprocess.run(limited, capture_output=True, text=True)
    assert (done.returncode, says in done.stderr) == (code, True), done.stderr
    assert len(done.stderr) < 1000
    assert sorted(path.name for path in tmp_path.iterdir()) == (["r"] if code == 0 else []) + [
        "trace"
    ]
    if name == "far":
        paths = [row["path"] for row in Recording(tmp_path / "r", 0).table("snapshot")]
        assert paths == ["/etc/passwd"]


def test_every_line_of_a_real_script_is_accounted_for(tmp_path: Path) -> None:
    script = Path(os.environ.get("JOJ_SHARED_DATA", "/nonexistent")) / "mobigen.out.facebook"
    if not script.is_file():
        pytest.skip("JOJ_SHARED_DATA names no folder with mobigen.out.facebook")
    answer = joj(tmp_path, "mobigen", str(script), "-o", "r", "--json")
    assert answer.returncode == 0, answer.stderr
    told = json.loads(answer.stdout)
    assert told["lines"] == told["calls"] == 30_819
    assert told["left_out"] == {}
