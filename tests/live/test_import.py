"""joj import: the same program, recorded by joj record and imported from strace, makes the same
calls; and what strace leaves out of its lines is found again.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from jojlab.foundation.places import agent_path
from jojlab.recording import folder as recordings
from jojlab.recording import mobigen
from tests.live.recordings import ENVIRONMENT, Recording, by_recording, recorded
from tests.live.test_record import PROGRAMS

pytestmark = pytest.mark.skipif(
    shutil.which("strace") is None, reason="strace is not installed: apt-get install strace"
)


def imported(here: Path, folder: Path, *program: str, flags: tuple[str, ...]) -> Recording:
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
            recordings_of_both.append(recorded(here, tmp_path / "recorded", *program))
        else:
            both = imported(here, tmp_path / "imported", *program, flags=FORMS[form])
            recordings_of_both.append(both)
    ours, theirs = recordings_of_both
    assert (theirs.code, theirs.manifest["bad_lines"]) == (0, 0)
    said, told = by_recording(ours, here), by_recording(theirs, here)
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
    """What was at each path below `here`: absent, file ..."""
    rows = recording.table("snapshot")
    return {row["path"]: row["kind"] for row in rows if Path(row["path"]).is_relative_to(here)}


def test_a_recording_of_strace_is_exported_again(tmp_path: Path) -> None:
    here = tmp_path / "here"
    here.mkdir()
    program = PROGRAMS["editor"]
    imported(here, tmp_path / "r", *program, flags=FORMS["all"])
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
    recording = imported(here, tmp_path / "r", *command, flags=FORMS["all"])
    assert recording.manifest["command"] == list(command)
    assert recording.manifest["times"] == {"begin": "told", "end": "told"}
    old = {row["path"]: row for row in recording.table("snapshot")}[str(here / "old")]
    assert (old["size_bytes"], old["kind"], old["basis"]) == (5000, "file", "told")
    for row in recording.calls("read"):
        assert row["begin_ns"] > 1_700_000_000_000_000_000 and row["end_ns"] >= row["begin_ns"]
    opened = next(row for row in recording.calls("openat") if row["path"] == "old")
    assert (opened["device"], opened["inode"]) == (old["device"], old["inode"])
