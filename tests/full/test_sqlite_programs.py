"""SQLite's speedtest1 and mptest, recorded and played: the databases hold what those of the
originals do; of several processes that write at once, no statement fails that had not failed.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from jojlab.foundation.places import agent_path
from jojlab.recording import sql_export
from jojlab.recording.folder import Recording
from tests.full.sqlite_source import build, fetch
from tests.hangs import HANG_S
from tests.live.played_sql import play

pytestmark = pytest.mark.full

# Its encodings, kinds of tables and most sets. Not the set fp, whose values are reals as texts:
# SQLite 3.40 reads '-73652512.3e171' as -7.365251229999999e+178, the release that joj has does not.
SPEEDTESTS = (
    ("main",), ("cte",), ("orm",), ("main", "--utf16le"), ("main", "--utf16be"),
    ("main", "--without-rowid"), ("main", "--temp", "3"), ("main", "--primarykey"),
    ("main", "--nosync"), ("main", "--strict"),
)  # fmt: skip


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sqlite")
    source = fetch(folder / "package")
    # It gives up after so many naps of its own, 10 or 30 s together, and says that there was an
    # error: on a busy machine that is too early.
    mptest = source / "mptest/mptest.c"
    mptest.write_text(re.sub(r"\b[13]0000\b", f"{HANG_S}000", mptest.read_text()))
    for file in ("test/speedtest1.c", "tool/dbhash.c", "mptest/mptest.c"):
        build(source, file, folder / Path(file).stem)
    shutil.copytree(source / "mptest", folder / "tasks")
    return folder


def record(here: Path, *program: str | Path) -> Recording:
    here.mkdir()
    folder = here.with_name(f"{here.name}-recording")
    command = [agent_path(), "record", "--sql", "-o", folder, "--", *program]
    done = subprocess.run(command, cwd=here, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr
    return Recording.open(folder)


def digests(programs: Path, folder: Path) -> dict[str, str]:
    files = sorted(path for path in folder.glob("*.db*") if path.suffix in (".db", ".db2"))
    found = {}
    for path in files:
        command = [programs / "dbhash", path]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        found[path.name] = done.stdout.split()[0]
    return found


def check(programs: Path, folder: Path, *program: str | Path) -> None:
    recording = record(folder / "here", *program)
    counts = sql_export.write(recording, folder / "scripts")
    assert counts.is_whole, list(counts.lines())
    code, said = play(folder / "scripts", folder / "played")
    assert code == 0, said
    wanted = digests(programs, folder / "here")
    assert wanted
    assert digests(programs, folder / "played") == wanted


@pytest.mark.parametrize("options", SPEEDTESTS, ids="-".join)
def test_speedtest_leaves_the_same_contents(
    programs: Path, tmp_path: Path, options: tuple[str, ...]
) -> None:
    testset, *others = options
    own = ["--size", "5", "--testset", testset, *others]
    check(programs, tmp_path, programs / "speedtest1", *own, "speed.db")


# Files of mptest, and whether clients of theirs are killed within a transaction.
TASKS = {"config01": False, "config02": True, "crash01": True, "multiwrite01": False}
# Functions that mptest has of its own: no script can call them.
OWN_FUNCTIONS = re.compile(
    r"\d+ statements? failed: no such function: (eval|vfsname), which the app"
)


@pytest.mark.parametrize("task", TASKS)
def test_processes_that_write_at_once_are_played_without_failures(
    programs: Path, tmp_path: Path, task: str
) -> None:
    recording = record(
        tmp_path / "here", programs / "mptest", "task.db", programs / f"tasks/{task}.test"
    )
    assert len({row["pid"] for row in recording.rows("connections")}) > 4
    counts = sql_export.write(recording, tmp_path / "scripts")
    assert counts.is_whole, list(counts.lines())
    _, said = play(tmp_path / "scripts", tmp_path / "played")
    [case] = said["cases"]
    reasons = [reason for reason in case["incomplete_reasons"] if not OWN_FUNCTIONS.match(reason)]
    assert reasons == []
    # Each has random contents, and is rolled back as it was when it was recorded.
    assert any("without an end in the scripts" in note for note in case["notes"]) == TASKS[task]
