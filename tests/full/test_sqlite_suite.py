"""SQLite's own test files, with a VFS of vfs/ as the default one and without it: the same cases
fail, but for those whose reason is known.

One program runs all: it registers the VFS that its environment asks for.
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

from tests.full.sqlite_source import build_testfixture, fetch
from tests.hangs import HANG_S
from tests.live.recordings import ROOT

pytestmark = pytest.mark.full

VFS = ROOT / "vfs"
# What has to do with files, journals, locks and crashes.
SUBJECTS = (
    "8_3_names", "async", "atomic", "attach", "autovacuum", "avtrans", "backup", "bigfile", "busy",
    "cacheflush", "chunksize", "corrupt", "crash", "dbstatus",
    "delete_db", "diskfull", "e_vacuum", "e_wal", "exclusive", "fallocate", "filectrl",
    "filefmt", "incrvacuum",
    "io", "journal", "jrnlmode", "lock", "malloc3", "mallocD", "memjournal", "misuse", "mmap",
    "multiplex", "nolock",
    "notify", "oserror", "pager", "quota", "rdonly", "rollback", "savepoint",
    "shared", "shm", "snapshot", "statfault", "stmt", "subjournal", "superlock",
    "symlink", "sync", "syscall", "tempdb", "temptable", "thread", "tkt", "trans", "unixexcl",
    "uri", "vacuum", "wal", "zerodamage",
)  # fmt: skip
# Some take hours: nothing is known of those. Of a processor's time, which a busy machine does not
# change much; with the VFS six times as much, so that only one that never ends counts as crashed.
STOCK_CPU_SECONDS, VFS_CPU_SECONDS = 10, 60

# Reasons for which cases fail with a VFS alone; docs/cure.md says the same.
SIZE = "the case wants a WAL as long as its frames are"
KEPT = "the case wants no WAL when the database is closed"
COUNT = "the case counts SQLite's own syncs, of which the VFS makes those of the WAL itself"
PAGER = "the case counts the bytes of a pager, of which the VFS's open files are a part"
NAME = "the file leaves at once where the default VFS is not called unix"
WAL: dict[str, tuple[str, ...]] = {
    "dbstatus": (PAGER,),
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
# With joj_redo.
JOURNAL = "the case looks for a journal's file, copies it or writes to it"
CALLS = "the case counts SQLite's own syncs, reads or open files, or the bytes of a pager"
COPY = "the case opens a copy of a database that is open, which is refused without its log"
PAST = "the case opens the database, or its header, past the VFS, which has its mark there"
CHUNK = "the case wants a file that grows in chunks, which the size in a record is not"
APPLIED = "an error after the record is durable, which is none of the commit"
HOOK = "the case makes a write of SQLite's own VFS fail, by which no commit of joj_redo goes"
SPLIT = "a VFS above joj_redo splits the database into files, and is refused"
# How many cases more fail; None where the file ends at such a case.
REDO: dict[str, tuple[int | None, tuple[str, ...]]] = {
    "avtrans": (57, (CALLS,)),
    "backup5": (None, (COPY,)),
    "cacheflush": (23, (COPY,)),
    "chunksize": (2, (CHUNK,)),
    "corrupt2": (None, (COPY,)),
    "crash": (1, (JOURNAL,)),
    "crash8": (22, (JOURNAL,)),
    "dbstatus": (6, (CALLS,)),
    "delete_db": (3, (JOURNAL, SPLIT)),
    "diskfull": (2, (HOOK,)),
    "e_wal": (2, (PAST,)),
    "exclusive": (9, (JOURNAL, CALLS)),
    "fallocate": (14, (CHUNK,)),
    "incrvacuum3": (7, (COPY,)),
    "io": (8, (JOURNAL, CALLS)),
    "ioerr": (5, (JOURNAL,)),
    "journal1": (1, (JOURNAL,)),
    "journal2": (7, (JOURNAL, COPY)),
    "journal3": (8, (JOURNAL,)),
    "jrnlmode": (17, (JOURNAL,)),
    "jrnlmode2": (4, (JOURNAL,)),
    "lock4": (None, (JOURNAL,)),
    "mmap1": (8, (CALLS,)),
    "multiplex": (293, (SPLIT,)),
    "multiplex2": (None, (SPLIT,)),
    "multiplex4": (2, (SPLIT,)),
    "pager1": (None, (JOURNAL, COPY)),
    "pager3": (2, (JOURNAL,)),
    "rdonly": (1, (PAST,)),
    "rollback": (None, (JOURNAL,)),
    "stmt": (9, (CALLS,)),
    "symlink": (2, (JOURNAL,)),
    "sync": (3, (CALLS,)),
    "sync2": (3, (CALLS,)),
    "tempdb": (2, (CALLS,)),
    "tkt-fc62af4523": (2, (JOURNAL,)),
    "tkt3457": (2, (JOURNAL,)),
    "trans": (57, (CALLS,)),
    "unixexcl": (4, (PAST,)),
    "vacuum3": (1, (APPLIED,)),
    "wal2": (2, (JOURNAL,)),
    "walmode": (3, (JOURNAL, CALLS)),
    "zerodamage": (2, (JOURNAL,)),
}
# These wait without end for a journal's file, so they are ended after a minute.
ENDLESS, ENDLESS_S = {("lock4", "redo")}, 60
# Allocations that the test program itself does not free: hexio_read() of a journal that is no file.
UNFREED = {"fallocate": 1, "io": 1}

INIT = """
#include <stdlib.h>
#include <string.h>
#include "redo_vfs.h"
#include "wal_vfs.h"

int joj_test_init(const char *unused)
{
	const char *name = getenv("JOJ_VFS");

	(void)unused;
	if (name == NULL)
		return 0;
	return strcmp(name, "wal") == 0 ? joj_wal_register(1) : joj_redo_register(1);
}
"""


@dataclass(frozen=True)
class FileResult:
    """The end of a test file: whether it came to its end, or by a signal; its cases, and those
    that failed; allocations that nobody freed.
    """

    has_ended: bool
    has_crashed: bool = False
    cases: int = 0
    failures: frozenset[str] = frozenset()
    unfreed: int = 0


@pytest.fixture(scope="module")
def testfixture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """SQLite's test program with both VFSes linked to it."""
    folder = tmp_path_factory.mktemp("sqlite")
    source = fetch(folder / "package")
    (folder / "init.c").write_text(INIT)
    objects = []
    programs = {VFS / "preload.c", VFS / "redo_leave.c"}
    sources = [file for file in sorted(VFS.glob("*.c")) if file not in programs]
    for file in (*sources, folder / "init.c"):
        objects.append(folder / f"{file.stem}.o")
        # This machine's sqlite3.h is of the same release.
        compile_it = ["gcc", "-std=gnu11", "-O1", "-DSQLITE_CORE", f"-I{VFS}", "-c", str(file)]
        subprocess.run([*compile_it, "-o", str(objects[-1])], check=True)
    return build_testfixture(source, "-DSQLITE_EXTRA_INIT=joj_test_init", objects)


def run_file(testfixture: Path, name: str, vfs: str) -> FileResult:
    """Run a test file in a folder of its own, with this VFS or with none."""
    environment = {**os.environ, **({"JOJ_VFS": vfs} if vfs else {})}
    limit = f"--cpu={VFS_CPU_SECONDS if vfs else STOCK_CPU_SECONDS}"
    command = ["prlimit", limit, str(testfixture), f"{testfixture.parent}/test/{name}.test"]
    with TemporaryDirectory() as folder:
        try:
            ended = subprocess.run(
                command, cwd=folder, env=environment, capture_output=True, text=True,
                errors="replace", check=False,
                timeout=ENDLESS_S if (name, vfs) in ENDLESS else HANG_S,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return FileResult(has_ended=False)
    end = re.search(r"^\d+ errors out of (\d+) tests", ended.stdout, re.MULTILINE)
    failures = re.search(r"^!Failures on these tests: (.*)$", ended.stdout, re.MULTILINE)
    failed = frozenset(failures[1].split()) if failures else frozenset()
    cases = int(end[1]) if end else 0
    leak = re.search(r"^Unfreed memory: \d+ bytes in (\d+) allocations", ended.stdout, re.MULTILINE)
    unfreed = int(leak[1]) if leak else 0
    return FileResult(end is not None, ended.returncode < 0, cases, failed, unfreed)


def compare(
    testfixture: Path, subject: str, vfs: str
) -> tuple[dict[str, FileResult], dict[str, FileResult]]:
    """Return how the files of a subject ended without the VFS and with it, by name: those that end
    without it.
    """
    names = sorted(path.stem for path in (testfixture.parent / "test").glob(f"{subject}*.test"))

    def run_both(name: str) -> tuple[FileResult, FileResult]:
        stock = run_file(testfixture, name, "")
        return stock, run_file(testfixture, name, vfs) if stock.has_ended else stock

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        both = dict(zip(names, pool.map(run_both, names), strict=True))
    stock = {name: results[0] for name, results in both.items() if results[0].has_ended}
    assert any(result.cases for result in stock.values())
    return stock, {name: both[name][1] for name in stock}


def leaks(stock: dict[str, FileResult], results: dict[str, FileResult]) -> dict[str, int]:
    """Return how many allocations more were not freed, by file."""
    more = {name: result.unfreed - stock[name].unfreed for name, result in results.items()}
    return {name: count for name, count in more.items() if count > UNFREED.get(name, 0)}


@pytest.mark.parametrize("subject", SUBJECTS)
def test_the_same_cases_fail_with_joj_wal(testfixture: Path, subject: str) -> None:
    stock, ours = compare(testfixture, subject, "wal")
    assert not [name for name, result in ours.items() if not result.has_ended]
    assert not leaks(stock, ours)
    differences = {
        name: sorted(result.failures - stock[name].failures)
        or f"{result.cases} cases of {stock[name].cases}"
        for name, result in ours.items()
        if result.failures - stock[name].failures or result.cases * 2 < stock[name].cases
    }
    assert set(differences) == {name for name in WAL if name in stock}, differences


@pytest.mark.parametrize("subject", SUBJECTS)
def test_the_same_cases_fail_with_joj_redo(testfixture: Path, subject: str) -> None:
    stock, ours = compare(testfixture, subject, "redo")
    # It takes the name of a connection that was refused, db2, for an address; so it does alone.
    assert {name for name, result in ours.items() if result.has_crashed} <= {"backup5"}
    assert not leaks(stock, ours)
    differences = {
        name: len(result.failures - stock[name].failures) if result.has_ended else None
        for name, result in ours.items()
        if not result.has_ended or result.failures - stock[name].failures
    }
    assert differences == {name: REDO[name][0] for name in REDO if name in stock}
