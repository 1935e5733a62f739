"""Another SQLite than the agent's own: an older amalgamation is linked into an agent, runs the same
case, and is told apart; what power cuts leave of it is judged by the same SQLite.
"""

from __future__ import annotations

import json
import subprocess
import tarfile
from collections.abc import Mapping
from pathlib import Path, PurePath
from typing import Any

import pytest

from jojlab.foundation.places import agent_path
from jojlab.guest.image.own_sqlite import SOURCES
from jojlab.trace.capture import Capture
from jojlab.trace.run_folder import RunFolder
from tests.this_process import joj

# A package of npm with the source of the oldest SQLite that joj links, and what that says of
# itself.
PACKAGE = "sqlite3@2.1.10"
SOURCE = "package/deps/sqlite-autoconf-3071700.tar.gz"
VERSION, MADE = "3.7.17", "2013-05-20"
# SQLite begins with overwriting what is deleted then; the case sets otherwise all the same.
OPTIONS = "# as an app has it\nSQLITE_SECURE_DELETE=1\n-DSQLITE_OMIT_DEPRECATED\n"
CASE = """
question = "What does another SQLite cost?"
[case]
transactions = 11
filesystem   = "ext4"
journal_mode = "truncate"
"""


@pytest.fixture(scope="module")
def older_sqlite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an older amalgamation, as npm fetches it, and options."""
    place = tmp_path_factory.mktemp("older")
    packed = subprocess.run(
        ["npm", "pack", "--silent", PACKAGE], cwd=place, check=True, capture_output=True, text=True
    )
    folder = place / "sqlite"
    folder.mkdir()
    with tarfile.open(place / packed.stdout.strip()) as package:
        source = package.extractfile(SOURCE)
        assert source is not None
        with tarfile.open(fileobj=source) as archive:
            for member in archive.getmembers():
                name = PurePath(member.name).name
                if name in SOURCES and (file := archive.extractfile(member)):
                    (folder / name).write_bytes(file.read())
    (folder / "compile-options.txt").write_text(OPTIONS)
    return folder


def configuration(run: Path, sqlite: str) -> Mapping[str, Any]:
    """Return what the manifest of a run's case says that was in force."""
    [each] = [each for each in RunFolder.open(run).cases if each.case["sqlite"] == sqlite]
    found = Capture.open(run / each.captures[0].folder).manifest["configuration"]
    assert isinstance(found, dict)
    return found


def test_two_sqlites_run_the_same_case_and_say_which_they_are(
    older_sqlite: Path, tmp_path: Path
) -> None:
    (tmp_path / "experiment.toml").write_text(CASE)
    before = agent_path().read_bytes()
    out = tmp_path / "run"
    chosen = ("--set", f"sqlite=bundled,{older_sqlite}")
    done = joj("run", str(tmp_path / "experiment.toml"), *chosen, "--out", str(out))
    assert done.returncode == 0, done.stderr
    assert agent_path().read_bytes() == before
    own, other = (configuration(out, name) for name in ("bundled", str(older_sqlite)))
    assert other["sqlite_version"] == VERSION != own["sqlite_version"]
    assert other["sqlite_source_id"].startswith(MADE) != own["sqlite_source_id"]
    assert "SECURE_DELETE" in other["sqlite_compile_options"]
    assert "SECURE_DELETE" not in own["sqlite_compile_options"]
    # The same PRAGMAs are in force, and the same transactions were made.
    for pragma in ("synchronous", "secure_delete"):
        assert own["databases"]["main"][pragma] == other["databases"]["main"][pragma], pragma
    again = joj("run", str(tmp_path / "experiment.toml"), *chosen, "--out", str(tmp_path / "again"))
    assert again.returncode == 0, again.stderr
    assert joj("diff", str(out), str(tmp_path / "again")).returncode == 0


def test_power_cuts_show_a_sync_that_an_older_sqlite_lacks(
    older_sqlite: Path, tmp_path: Path
) -> None:
    (tmp_path / "experiment.toml").write_text(CASE)
    done = joj(
        *("verify", "durability", str(tmp_path / "experiment.toml"), "--states", "24", "--json"),
        *("--set", f"sqlite={older_sqlite}", "--set", "journal_mode=truncate,wal"),
    )
    # The manuals, which are of today's SQLite, rule it out.
    assert done.returncode == 1, done.stderr
    cases = {case["case_id"]: case for case in json.loads(done.stdout)["cases"]}
    # Before 2014 SQLite did not sync a journal that it had truncated (pager_end_transaction()).
    assert cases["truncate"]["outcomes"]["lost"] > 0, cases
    assert cases["truncate"]["outcomes"].get("corrupt", 0) == 0, cases
    assert not cases["wal"]["proven_unsafe"], cases
    bill = joj("bill", "--sqlite", str(older_sqlite), "--transactions", "11", "--json")
    assert bill.returncode == 0, bill.stderr
    assert json.loads(bill.stdout)["transactions"] == 11, bill.stdout
