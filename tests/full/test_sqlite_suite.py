"""SQLite's own test files, with the VFS of vfs/ as the default one and without it: the same cases
fail, but for those that look at the WAL's own file.

One program runs both: it registers the VFS where its environment asks for that.
"""

from __future__ import annotations

import os
import re
import subprocess
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.ended import HANG_S
from tests.full.sqlite_source import build_testfixture, fetch
from tests.live.recordings import ROOT

pytestmark = pytest.mark.full

VFS = ROOT / "vfs"
# What has to do with files, journals, locks and crashes.
SUBJECTS = (
    "8_3_names", "async", "atomic", "attach", "autovacuum", "avtrans", "backup", "bigfile", "busy",
    "cacheflush", "chunksize", "corrupt", "crash", "dbstatus",
    "delete_db", "e_vacuum", "e_wal", "exclusive", "fallocate", "filectrl", "filefmt", "incrvacuum",
    "io", "journal", "jrnlmode", "lock", "memjournal", "misuse", "mmap", "multiplex", "nolock",
    "notify", "oserror", "pager", "quota", "rdonly", "rollback", "savepoint",
    "shared", "shm", "snapshot", "statfault", "stmt", "subjournal", "superlock",
    "symlink", "sync", "syscall", "tempdb", "temptable", "thread", "tkt", "trans", "unixexcl",
    "uri", "vacuum", "wal", "zerodamage",
)  # fmt: skip
# Some take hours: nothing is known of those. Of a processor's time, which a busy machine does not
# change much; with the VFS six times as much, so that only one that never ends counts as crashed.
STOCK_CPU_SECONDS, VFS_CPU_SECONDS = 10, 60

# Reasons for which cases fail with the VFS alone; docs/cure.md says the same.
SIZE = "the case wants a WAL as long as its frames are"
KEPT = "the case wants no WAL when the database is closed"
COUNT = "the case counts SQLite's own syncs, of which the VFS makes those of the WAL itself"
NAME = "the file leaves at once where the default VFS is not called unix"
DIFFERENCES: dict[str, tuple[str, ...]] = {
    "e_walckpt": (SIZE,),
    "e_walhook": (SIZE,),
    "incrvacuum2": (SIZE,),
    "mmap2": (NAME,),
    "pager1": (SIZE,),
    "sync2": (COUNT,),
    "syscall": (NAME,),
    "wal": (SIZE, KEPT),
    "wal2": (KEPT, COUNT),
    "wal3": (SIZE,),
    "wal5": (SIZE,),
    "wal6": (SIZE,),
    "wal7": (SIZE,),
    "walbak": (SIZE, KEPT),
    "walcksum": (SIZE,),
    "walcrash2": (SIZE,),
    "walhook": (SIZE,),
    "walmode": (SIZE, KEPT),
    "waloverwrite": (SIZE,),
    "walpersist": (KEPT,),
    "walro": (SIZE,),
    "walro2": (SIZE, KEPT),
    "walslow": (SIZE, KEPT),
    "zerodamage": (SIZE,),
}

INIT = """
#include <stdlib.h>
#include "wal_vfs.h"

int joj_test_init(const char *unused)
{
	(void)unused;
	return getenv("JOJ_WAL") != NULL ? joj_wal_register(1) : 0;
}
"""


@dataclass(frozen=True)
class FileResult:
    """The end of a test file: whether it came to its end, its cases, and those that failed."""

    has_ended: bool
    cases: int
    failures: frozenset[str]


@pytest.fixture(scope="module")
def testfixture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """SQLite's test program with the VFS linked to it."""
    folder = tmp_path_factory.mktemp("sqlite")
    source = fetch(folder / "package")
    (folder / "init.c").write_text(INIT)
    objects = []
    sources = [VFS / f"{name}.c" for name in ("lower_file", "lower_vfs", "wal_file", "wal_vfs")]
    for file in (*sources, folder / "init.c"):
        objects.append(folder / f"{file.stem}.o")
        # This machine's sqlite3.h is of the same release.
        compile_it = ["gcc", "-std=gnu11", "-O1", "-DSQLITE_CORE", f"-I{VFS}", "-c", str(file)]
        subprocess.run([*compile_it, "-o", str(objects[-1])], check=True)
    return build_testfixture(source, "-DSQLITE_EXTRA_INIT=joj_test_init", objects)


def run_file(testfixture: Path, name: str, *, with_vfs: bool) -> FileResult:
    """Run a test file in a folder of its own."""
    environment = {**os.environ, **({"JOJ_WAL": "1"} if with_vfs else {})}
    limit = f"--cpu={VFS_CPU_SECONDS if with_vfs else STOCK_CPU_SECONDS}"
    command = ["prlimit", limit, str(testfixture), f"{testfixture.parent}/test/{name}.test"]
    with TemporaryDirectory() as folder:
        try:
            ended = subprocess.run(
                command, cwd=folder, env=environment, capture_output=True, text=True,
                errors="replace", check=False, timeout=HANG_S,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return FileResult(has_ended=False, cases=0, failures=frozenset())
    end = re.search(r"^\d+ errors out of (\d+) tests", ended.stdout, re.MULTILINE)
    failures = re.search(r"^!Failures on these tests: (.*)$", ended.stdout, re.MULTILINE)
    failed = frozenset(failures[1].split()) if failures else frozenset()
    return FileResult(end is not None, int(end[1]) if end else 0, failed)


@pytest.mark.parametrize("subject", SUBJECTS)
def test_the_same_cases_fail_with_the_vfs(testfixture: Path, subject: str) -> None:
    names = sorted(path.stem for path in (testfixture.parent / "test").glob(f"{subject}*.test"))

    def run_both(name: str) -> tuple[FileResult, FileResult]:
        stock = run_file(testfixture, name, with_vfs=False)
        return stock, run_file(testfixture, name, with_vfs=True) if stock.has_ended else stock

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        both = dict(zip(names, pool.map(run_both, names), strict=True))
    results = {name: both[name] for name in names if both[name][0].has_ended}
    assert any(stock.cases for stock, _ in results.values())
    crashed = [name for name, (_, ours) in results.items() if not ours.has_ended]
    assert not crashed
    differences = {
        name: sorted(ours.failures - stock.failures) or f"{ours.cases} cases of {stock.cases}"
        for name, (stock, ours) in results.items()
        if ours.failures - stock.failures or ours.cases * 2 < stock.cases
    }
    assert set(differences) == {name for name in DIFFERENCES if name in results}, differences
