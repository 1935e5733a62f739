"""joj trace of programs that people run: Git, dpkg, an app in a container on an overlay, Chromium.

What it says of them is compared with what the disk counted, and with what the programs left.
"""

from __future__ import annotations

import json
import shutil
import struct
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from jojlab.trace.dataset import Dataset
from jojlab.trace.run_folder import RunFolder
from tests import this_process
from tests.hangs import HANG_S
from tests.live.conftest import CHECKOUT, joj
from tests.live.loop import Loop, mounted_loop

SECTOR_BYTES = 512
# Of a header of SQLite: its first bytes, and where the file change counter is (fileformat2.html).
SQLITE_FILE, CHANGE_COUNTER = b"SQLite format 3\0", slice(24, 28)


@pytest.fixture
def loop(tmp_path: Path) -> Iterator[Loop]:
    with mounted_loop("ext4", tmp_path) as loop:
        yield loop


def run(*command: str | Path) -> None:
    words = list(map(str, command))
    done = subprocess.run(words, capture_output=True, text=True, timeout=HANG_S, check=False)
    assert done.returncode == 0, f"{words}: {done.stderr}"


def written_bytes(loop: Loop) -> int:
    """Return what the disk counted (Documentation/block/stat.rst of Linux)."""
    counts = Path(f"/sys/block/{Path(loop.device).name}/stat").read_text().split()
    return int(counts[6]) * SECTOR_BYTES


@dataclass(frozen=True)
class TraceResult:
    """The answer of a trace, and what it found of the program."""

    answer: list[str]
    live: dict[str, Any]
    program: dict[str, Any]


def trace_command(loop: Loop, out: Path, *command: str | Path) -> TraceResult:
    """Trace a command on a disk that nobody else writes to; every byte is the command's."""
    run("sync", "-f", loop.directory)
    before = written_bytes(loop)
    done = joj("trace", "--device", loop.device, "-o", out, "--json", "--", *command)
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout.splitlines()[-1])
    live = seen["live"]
    counted = live["counted_write_bytes"]
    # What the command left in memory may be written between the trace's end and this.
    assert 0 < counted <= written_bytes(loop) - before
    assert (live["device_write_bytes"], live["other_write_bytes"]) == (counted, 0)
    shown = json.loads(this_process.joj("show", out, "--json").stdout)["cases"][0]
    return TraceResult(seen["in_short"], live, shown["program"]["0"])


def test_a_commit_of_git_is_the_programs_to_the_byte(loop: Loop, tmp_path: Path) -> None:
    repository = loop.directory / "repository"
    run("git", "init", "--quiet", repository)
    (repository / "file").write_bytes(bytes(range(256)) * 400)
    git: list[str | Path] = ["git", "-C", repository, "-c", "core.fsync=all", "-c", "user.name=a"]
    run(*git, "add", "--all")
    seen = trace_command(
        loop, tmp_path / "run", *git, "-c", "user.email=a@b", "commit", "-qm", "words"
    )
    # The tree, the commit, the log of references and the reference.
    syncs = seen.program["syncs"]
    assert (seen.program["commits"], syncs >= 2) == (0, True)
    assert seen.answer[0].startswith(f"git made {syncs} syncs in ")
    assert any(line.startswith("Safety not known: no SQLite") for line in seen.answer)


@pytest.mark.full
@pytest.mark.parametrize("unsafe_io", ["refuse", "force"])
def test_dpkg_syncs_what_it_unpacks(loop: Loop, tmp_path: Path, unsafe_io: str) -> None:
    """It begins to write each file by sync_file_range, which is no sync, and syncs it thereafter;
    with --force-unsafe-io it does not.
    """
    package, root = tmp_path / "package", loop.directory / "root"
    (package / "DEBIAN").mkdir(parents=True)
    (package / "DEBIAN/control").write_text(
        "Package: joj-test\nVersion: 1\nArchitecture: all\nMaintainer: a <a@b.c>\nDescription: a\n"
    )
    for number in range(20):
        (package / f"file-{number}").write_bytes(bytes([number]) * 20_000)
    run("dpkg-deb", "--build", package, tmp_path / "package.deb")
    state = root / "var/lib/dpkg"
    for name in ("info", "updates"):
        (state / name).mkdir(parents=True)
    for name in ("status", "available"):
        (state / name).touch()
    dpkg: list[str | Path] = [
        "dpkg",
        f"--{unsafe_io}-unsafe-io",
        f"--root={root}",
        "--log=/dev/null",
        "--install",
        tmp_path / "package.deb",
    ]
    seen = trace_command(loop, tmp_path / "run", *dpkg)
    data = Dataset.from_runs(RunFolder.open(tmp_path / "run"))
    [syncs] = data.rows("SELECT kind, count(*) AS number FROM transactions GROUP BY kind")
    assert syncs == {"kind": "fsync", "number": seen.program["syncs"]}
    begun = "SELECT transaction_id FROM requests WHERE asker_call = 'sync_file_range'"
    assert data.rows(begun) == [{"transaction_id": None}] * 20
    # Each file or none, and the lists of what is installed.
    assert seen.program["syncs"] > (5 if unsafe_io == "force" else 25)
    assert seen.answer[0].startswith(f"dpkg made {seen.program['syncs']} syncs in ")
    assert seen.live["device_write_bytes"] > seen.live["write_bytes"] > 20 * 20_000


def test_commits_in_a_container_on_an_overlay_are_counted(loop: Loop, tmp_path: Path) -> None:
    layers = [loop.directory / name for name in ("lower", "upper", "work")]
    for layer in layers:
        layer.mkdir()
    lower, upper, work = layers
    merged = tmp_path / "merged"
    merged.mkdir()
    options = f"lowerdir={lower},upperdir={upper},workdir={work}"
    run("mount", "-t", "overlay", "overlay", "-o", options, merged)
    app = CHECKOUT / "tests/live/commit_app.py"
    try:
        modes = ("truncate", "wal")
        words: list[str | Path] = [sys.executable, app, merged, "20", *modes]
        seen = trace_command(
            loop, tmp_path / "run", "unshare", "--mount", "--pid", "--fork", *words
        )
    finally:
        run("umount", merged)
    found = {Path(each["path"]).name: each["commits"] for each in seen.program["database_files"]}
    assert seen.program["commits"] == 20 * len(modes)
    assert set(found) == {f"{mode}.db{suffix}" for mode in modes for suffix in ("", "-second")}
    assert seen.answer[0].startswith(f"unshare made {20 * len(modes)} commits in ")


@pytest.mark.skipif(not shutil.which("chromium"), reason="no chromium here")
@pytest.mark.full
def test_every_database_of_chromium_is_found_with_its_commits(loop: Loop, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text("<title>words</title><script>localStorage.a = 'b'</script>")
    profile = loop.directory / "profile"
    words = ["--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=3000"]
    chromium = ["chromium", *words, f"--user-data-dir={profile}", "--dump-dom", f"file://{page}"]
    seen = trace_command(loop, tmp_path / "run", *chromium)
    commits = {each["path"]: each["commits"] for each in seen.program["database_files"]}
    headers = {
        str(path): header
        # Not the caches of the processor of graphics, whose locks are not SQLite's.
        for path in (profile / "Default").rglob("*")
        if path.is_file() and (header := path.read_bytes()[:100]).startswith(SQLITE_FILE)
    }
    assert len(headers) > 5
    # A connection that holds its lock for good (locking_mode = EXCLUSIVE) counts its first change
    # alone, so the counter is the least that there was.
    for path, header in headers.items():
        [changes] = struct.unpack(">I", header[CHANGE_COUNTER])
        assert commits.get(path, 0) >= changes > 0, path
