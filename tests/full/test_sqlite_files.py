"""SQLite's own test files, recorded and replayed: the replay makes as many writes, of as many
bytes, as many syncs and truncations as strace counts of the same run, and nothing is left out.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from jojlab.foundation.places import agent_path
from tests.full.sqlite_source import build_testfixture, fetch
from tests.live.recordings import ROOT

pytestmark = [
    pytest.mark.full,
    pytest.mark.skipif(os.geteuid() != 0, reason="eBPF needs root"),
    pytest.mark.skipif(
        shutil.which("strace") is None, reason="strace is not installed: apt-get install strace"
    ),
]

# Of those that write files, the ones that take seconds. Not avtrans, savepoint4 and trans2: they
# make more calls than the four million of a replay. Not mmap1: with pages of 1 KiB, SQLite asks for
# the end of its memory map to be unmapped from the middle of a page, which fails, and then has a
# part of it moved.
FILES = (
    "attach", "attach2", "attach3", "autovacuum", "backup", "backup2", "bigfile2",
    "chunksize", "collate5", "conflict", "conflict2", "corrupt2", "crash8", "delete", "e_vacuum",
    "e_walhook", "exclusive", "exclusive2", "fallocate", "incrblob", "incrvacuum2", "index",
    "insert", "insert2", "io", "journal1", "journal2", "journal3", "jrnlmode", "jrnlmode2", "lock",
    "lock4", "mmap3", "nolock", "pager2", "pager3", "pageropt", "reindex", "rollback", "savepoint",
    "savepoint2", "sync", "trans", "trans3", "vacuum", "vacuum2", "wal", "wal2", "wal3",
    "wal6", "walbak", "walmode",
)  # fmt: skip

# What strace prints of a call on a file that it names (-y); the result comes last.
_CALL = re.compile(r"\d+ +(\w+)\(\d+<([^>]*)>.* = (-?\d+)(?: .*)?")
_COUNTED = {
    **dict.fromkeys(("write", "pwrite64", "writev", "pwritev"), "writes"),
    **dict.fromkeys(("fsync", "fdatasync"), "syncs"),
    "ftruncate": "truncations",
}


@pytest.fixture(scope="module")
def testfixture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """SQLite's test program, of the source package that this Debian has."""
    return build_testfixture(fetch(tmp_path_factory.mktemp("sqlite") / "package"))


def count_calls(log: Path, here: Path) -> Counter[str]:
    """Return what strace counts of the calls that succeeded on files of a directory."""
    counts: Counter[str] = Counter()
    with log.open(errors="replace") as lines:
        for match in filter(None, map(_CALL.fullmatch, map(str.rstrip, lines))):
            name, path, result = match.groups()
            if name in _COUNTED and Path(path).is_relative_to(here) and int(result) >= 0:
                counts[_COUNTED[name]] += 1
                counts["bytes"] += int(result) if _COUNTED[name] == "writes" else 0
    return counts


@pytest.mark.parametrize("name", FILES)
def test_a_replay_writes_what_a_test_file_wrote(
    name: str, testfixture: Path, tmp_path: Path
) -> None:
    here, log, recording = tmp_path / "here", tmp_path / "log", tmp_path / "recording"
    here.mkdir()
    # One run, which both watch: a second one may differ.
    calls = f"trace={','.join(_COUNTED)}"
    program = ["strace", "-f", "-y", "-s", "0", "-e", "signal=none", "-e", calls, "-o", str(log)]
    program += [str(testfixture), str(testfixture.parent / f"test/{name}.test")]
    record = [str(agent_path()), "record", "--by", "ebpf", "--ring-mib", "256"]
    record += ["--output", str(recording), "--", *program]
    done = subprocess.run(record, cwd=here, capture_output=True, text=True)
    assert done.returncode in (0, 1), done.stderr[-2000:] + done.stdout[-2000:]
    wanted = count_calls(log, here)
    assert wanted["writes"] > 0
    (tmp_path / "to").mkdir()
    replay = [sys.executable, "-m", "jojlab", "replay", str(recording), "--timing", "none"]
    replay += ["--directory", str(tmp_path / "to"), "--recorded-root", str(here), "--json"]
    replayed = subprocess.run(replay, cwd=ROOT, capture_output=True, text=True)
    assert replayed.returncode == 0, replayed.stdout + replayed.stderr
    found = json.loads(replayed.stdout)
    assert found["incomplete_reasons"] == []
    counts: Counter[str] = Counter({"bytes": found["written_bytes"]})
    for each in found["by_name"]:
        if each["name"] in _COUNTED:
            counts[_COUNTED[each["name"]]] += each["calls"]
    assert counts == wanted
