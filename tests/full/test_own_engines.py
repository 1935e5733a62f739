"""Engines of others under power cuts: what their authors document holds, and each planted fault, or
setting that promises less, is found.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from jojlab.foundation.cache import Cache
from jojlab.foundation.places import EXPERIMENTS
from jojlab.foundation.tools import need_tool, run_tool
from jojlab.lab.lab import Lab
from tests.guest.test_own_check import answers
from tests.this_process import joj

FOLDER = EXPERIMENTS / "own-engine"
# A cut can tear ext4's superblock in every case (docs/findings).
EVERY_CASE = {"kept", "unmountable"}


def test_lmdb_keeps_what_it_syncs_and_loses_what_it_does_not(cache: Cache) -> None:
    found = answers(Lab(cache), str(FOLDER / "lmdb.toml"))
    outcomes = {name: set(answer["outcomes"]) for name, answer in found.items()}
    assert outcomes["synced-ext4"] <= EVERY_CASE, outcomes
    # As with MDB_NOSYNC, and with MDB_NOMETASYNC.
    assert "corrupt" in outcomes["without-data-sync-ext4"], outcomes
    assert "lost" in outcomes["without-meta-sync-ext4"], outcomes
    assert "corrupt" not in outcomes["without-meta-sync-ext4"], outcomes


def test_leveldb_keeps_what_it_syncs_and_loses_what_it_does_not(
    cache: Cache, tmp_path: Path
) -> None:
    for name in ("leveldb.c", "leveldb.toml"):
        shutil.copy(FOLDER / name, tmp_path)
    source, program = str(tmp_path / "leveldb.c"), str(tmp_path / "leveldb")
    run_tool([str(need_tool("cc", "gcc")), "-o", program, source, "-lleveldb"], "compile it")
    found = answers(Lab(cache), str(tmp_path / "leveldb.toml"))
    outcomes = {name: set(answer["outcomes"]) for name, answer in found.items()}
    assert outcomes["synchronous-ext4"] <= EVERY_CASE, outcomes
    # "A crash of the machine may cause the last few updates to be lost": doc/index.md of LevelDB.
    for name in ("asynchronous-ext4", "without-log-sync-ext4"):
        assert "lost" in outcomes[name], outcomes
        assert outcomes[name] <= {*EVERY_CASE, "lost"}, outcomes
    assert outcomes["without-table-sync-ext4"] & {"lost", "corrupt"}, outcomes


def test_git_loses_commits_and_is_damaged_where_its_beginning_was_not_synced(cache: Cache) -> None:
    found = answers(Lab(cache), str(FOLDER / "git.toml"))
    outcomes = {name: set(answer["outcomes"]) for name, answer in found.items()}
    # Git syncs no directory: even with core.fsync = all the last reference may be an older one.
    assert outcomes["all-ext4"] <= {*EVERY_CASE, "lost"}, outcomes
    for name in ("by-default-ext4", "none-ext4"):
        assert outcomes[name] & {"lost", "corrupt"}, outcomes
    assert "corrupt" in outcomes["new-repository-ext4"], outcomes


@pytest.mark.parametrize(
    ("mode", "needed"),
    [
        ("delete", {"journal", "database"}),
        ("truncate", {"journal", "database", "truncated-journal"}),
        ("persist", {"journal", "database"}),
        ("wal", {"wal"}),
    ],
)
def test_each_sync_that_sqlite_documents_is_seen_to_protect(mode: str, needed: set[str]) -> None:
    done = joj(
        *("verify", "durability", "power-cut", "--without-sync", "--json", "--states", "60"),
        *("--set", "synchronous=full", "--set", "filesystem=ext4", "--set", f"journal_mode={mode}"),
    )
    answer = json.loads(done.stdout)
    protects = {row["site"] for row in answer["syncs"] if row["verdict"] == "protects"}
    assert needed <= protects, [row["sentence"] for row in answer["syncs"]]
    absent = {row["site"] for row in answer["syncs"] if row["verdict"] == "no-such-call"}
    assert absent == {
        "wal": {"journal", "directory", "truncated-journal"},
        "truncate": {"wal"},
    }.get(mode, {"wal", "truncated-journal"})
