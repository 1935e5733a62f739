"""SQLite's speedtest1, recorded and played: the databases hold what those of the originals do."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from jojlab.foundation.places import agent_path
from jojlab.recording import sql_export
from jojlab.recording.folder import Recording
from tests.full.sqlite_source import build, fetch
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
    for file in ("test/speedtest1.c", "tool/dbhash.c"):
        build(source, file, folder / Path(file).stem)
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
