"""Names of files while they change: a tracing follows them, on this machine's own kernel."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.live.tracing import Bench, TracedTables, temporary_bench

MAKE = {
    "ext4": "mkfs.ext4 -q -F -E lazy_itable_init=0,lazy_journal_init=0 DISK",
    "xfs": "mkfs.xfs -q -f DISK",
    "btrfs": "mkfs.btrfs -q -f DISK",
}

WRITE = """
def write(path, pages):
    file = os.open(path, os.O_CREAT | os.O_RDWR)
    os.write(file, b"x" * 4096 * pages); os.fsync(file); os.close(file)
"""


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    with temporary_bench(tmp_path) as bench:
        yield bench


def histories(traced: TracedTables) -> dict[str, list[str]]:
    """Every name that a file had, by its last."""
    found: dict[str, list[str]] = {}
    for row in traced.files:
        names = [named["path"] for named in json.loads(row["path_history"])]
        found.setdefault(row["path"], []).extend(names)
    return found


@pytest.mark.parametrize("filesystem", MAKE)
def test_a_file_renamed_over_another_has_its_name_and_not_its_bytes(
    bench: Bench, filesystem: str
) -> None:
    bench.make(MAKE[filesystem])
    traced = bench.trace(
        WRITE
        + """
write("old", 3); write("new", 5)
held = os.open("old", os.O_RDWR)
os.rename("new", "old")
again = os.open("old", os.O_RDWR)
os.pwrite(again, b"y" * 4096 * 7, 0); os.fsync(again)
os.pwrite(held, b"z" * 4096, 0); os.fsync(held)
"""
    )
    over, under = sorted(
        (row for row in traced.files if row["path"] == "/old"), key=lambda row: row["unlinked"]
    )
    assert (over["unlinked"], under["unlinked"]) == (False, True)
    names = [named["path"] for named in json.loads(over["path_history"])]
    assert names == ["/new", "/old"]
    pages = {over["file_id"]: 5 + 7, under["file_id"]: 3 + 1}
    for file_id, count in pages.items():
        assert traced.bytes(block_type="data", file_id=file_id) == count * 4096


def test_renames_are_followed_through_links_below_directories_and_in_exchanges(
    bench: Bench,
) -> None:
    bench.make(MAKE["ext4"])
    traced = bench.trace(
        WRITE
        + """
import ctypes
os.makedirs("real/deep"); os.symlink("real/deep", "link"); os.makedirs("before/deep")
for name in ("real/deep/a", "real/deep/b", "before/deep/c", "one", "other"):
    write(name, 1)
os.rename("link/a", "link/a2")                        # relative
os.rename(os.path.abspath("link/b"), "link/../b2")    # absolute; up from where the link leads
os.rename("before", "after")                          # what is below moves too
assert not ctypes.CDLL(None).renameat2(-100, b"one", -100, b"other", 2)    # RENAME_EXCHANGE
"""
    )
    found = histories(traced)
    assert found["/real/deep/a2"] == ["/real/deep/a", "/real/deep/a2"]
    assert found["/real/b2"] == ["/real/deep/b", "/real/b2"]
    assert found["/after/deep/c"] == ["/before/deep/c", "/after/deep/c"]
    assert (found["/one"], found["/other"]) == (["/other", "/one"], ["/one", "/other"])


def test_names_that_are_no_utf_8_are_as_in_a_recording(bench: Bench) -> None:
    bench.make(MAKE["ext4"])
    traced = bench.trace("""
import ctypes, threading
libc = ctypes.CDLL(None)
def save(name, path):
    libc.prctl(15, name, 0, 0, 0)                         # PR_SET_NAME
    file = os.open(path, os.O_CREAT | os.O_RDWR)
    os.write(file, b"x" * 4096); os.fsync(file)
for name in (b"caf\\xe9", b"caf\\xe8", "базаданных".encode(), b"a\\\\b", b"tab\\tnew\\nline"):
    thread = threading.Thread(target=save, args=(name, b"of-" + name))
    thread.start(); thread.join()
os.rename(b"of-caf\\xe9", b"now-caf\\xe9")
""")
    askers = {row["file"]: row["asker_comm"] for row in traced.written_runs(block_type="data")}
    assert askers == {
        "/now-caf\\xe9": "caf\\xe9",
        "/of-caf\\xe8": "caf\\xe8",
        # Cut after 15 bytes, in the middle of a letter (TASK_COMM_LEN).
        "/of-базаданных": "базадан\\xd0",
        # In a path a backslash stays one.
        "/of-a\\b": "a\\\\b",
        "/of-tab\tnew\nline": "tab\tnew\nline",
    }
