"""Another SQLite than the agent's own: an older amalgamation is linked into an agent, runs the same
case, and is told apart; what power cuts leave of it is judged by the same SQLite.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from jojlab.foundation.places import agent_path
from jojlab.trace.capture import Capture
from jojlab.trace.run_folder import RunFolder
from tests.this_process import joj

# A crate that has an amalgamation in it, and what that says of itself.
CRATE = "0.22.0"
VERSION, MADE = "3.35.4", "2021-04-02"
MANIFEST = f"""[package]
name = "older"
version = "0.0.0"
[dependencies]
libsqlite3-sys = "={CRATE}"
"""
# SQLite begins with NORMAL then; the case sets FULL all the same.
OPTIONS = "# as an app has it\nSQLITE_DEFAULT_SYNCHRONOUS=1\n-DSQLITE_OMIT_DEPRECATED\n"
CASE = """
question = "What does another SQLite cost?"
[case]
transactions = 11
filesystem   = "ext4"
journal_mode = "truncate"
"""


@pytest.fixture(scope="module")
def older_sqlite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an older amalgamation, as cargo fetches it, and options."""
    place = tmp_path_factory.mktemp("older")
    (place / "src").mkdir()
    (place / "src" / "main.rs").write_text("fn main() {}\n")
    (place / "Cargo.toml").write_text(MANIFEST)
    vendor = ["cargo", "vendor", "--quiet", "crates"]
    subprocess.run(vendor, cwd=place, check=True, capture_output=True)
    folder = place / "sqlite"
    folder.mkdir()
    for name in ("sqlite3.c", "sqlite3.h"):
        shutil.copy(place / "crates" / "libsqlite3-sys" / "sqlite3" / name, folder)
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
    assert "DEFAULT_SYNCHRONOUS=1" in other["sqlite_compile_options"]
    assert "DEFAULT_SYNCHRONOUS=1" not in own["sqlite_compile_options"]
    # The same PRAGMAs are in force, and the same transactions were made.
    assert own["databases"]["main"]["synchronous"] == other["databases"]["main"]["synchronous"]
    again = joj("run", str(tmp_path / "experiment.toml"), *chosen, "--out", str(tmp_path / "again"))
    assert again.returncode == 0, again.stderr
    assert joj("diff", str(out), str(tmp_path / "again")).returncode == 0


def test_power_cuts_of_another_sqlite_are_judged(older_sqlite: Path, tmp_path: Path) -> None:
    (tmp_path / "experiment.toml").write_text(CASE)
    done = joj(
        *("verify", "durability", str(tmp_path / "experiment.toml"), "--states", "16", "--json"),
        *("--set", f"sqlite={older_sqlite}"),
    )
    (case,) = json.loads(done.stdout)["cases"]
    assert done.returncode == 0, done.stderr
    assert not case["proven_unsafe"], case
    bill = joj("bill", "--sqlite", str(older_sqlite), "--transactions", "11", "--json")
    assert bill.returncode == 0, bill.stderr
    assert json.loads(bill.stdout)["transactions"] == 11, bill.stdout
