"""Filesystems on loop devices, and what joj-agent trace says of work done on them."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from jojlab.foundation.places import agent_path
from tests.live.loop import need_filesystem, need_tracer

Row = dict[str, Any]

# What the kernel calls a Python that a test starts (TASK_COMM_LEN).
COMM = Path(sys.executable).name[:15]


def run(*command: str | Path) -> str:
    """Run a program, and return what it prints; fails the test with its words when it fails."""
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{' '.join(map(str, command))}: {done.stderr.strip()}"
    return done.stdout.strip()


@dataclass
class TracedTables:
    """The tables of one tracing, with names in place of numbers."""

    requests: list[Row]
    runs: list[Row]
    files: list[Row]

    def written_runs(self, **wanted: object) -> list[Row]:
        """The page runs of writes that have these values."""
        runs = [row for row in self.runs if row["operation"] == "write"]
        return [row for row in runs if all(row[name] == value for name, value in wanted.items())]

    def bytes(self, **wanted: object) -> int:
        """Add up the bytes of `written`."""
        return sum(row["length_bytes"] for row in self.written_runs(**wanted))

    def reasons(self, **wanted: object) -> list[str]:
        """The reasons of `written`, each once, in order."""
        found = [row["reason"] for row in self.written_runs(**wanted) if row["reason"]]
        return list(dict.fromkeys(found))


@dataclass
class Bench:
    """A filesystem on loop devices of its own; `log` is a second disk for its journal.

    A `disk` that is set before `make` is used instead of a loop device.
    """

    folder: Path
    agent: Path
    disk: str = ""
    log: str = ""
    mounted: bool = False
    undo: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)

    @property
    def directory(self) -> Path:
        """Return where it is mounted."""
        return self.folder / "mounted"

    def loop(self, size_mib: int, *options: str) -> str:
        """Make an empty disk; `options` are further ones for losetup."""
        image = self.folder / f"{len(list(self.folder.iterdir()))}.img"
        with image.open("wb") as file:
            file.truncate(size_mib << 20)
        return self.attach(image, *options)

    def attach(self, image: Path, *options: str) -> str:
        """Make a disk of what is in a file."""
        loop = run("losetup", *options, "-f", "--show", image)
        self.undo.callback(run, "losetup", "-d", loop)
        return loop

    def make(self, command: str, options: str = "", log: str = "") -> None:
        """Make and mount it; DISK and LOG in the words stand for the disks.

        Skips the test where the kernel lacks the filesystem.
        """
        need_filesystem(command.split()[0].removeprefix("mkfs."))
        self.disk = self.disk or self.loop(600)
        if log:
            self.log = self.loop(100)
        for line in filter(None, (log, command)):
            run(*line.replace("DISK", self.disk).replace("LOG", self.log).split())
        self.directory.mkdir()
        options = options.replace("LOG", self.log) or "defaults"
        run("mount", "-o", options, self.disk, self.directory)
        self.mounted = True
        run("sync")

    def trace(self, work: str) -> TracedTables:
        """Trace a Python program that runs in the directory; every byte must have an owner."""
        tables = self.folder / "tables"
        disks = [
            word for disk in filter(None, (self.disk, self.log)) for word in ("--device", disk)
        ]
        command = [str(self.agent), "trace", *disks, "--output", str(tables), "--"]
        # The program alone is in the directory, so that it can unmount it.
        start = f"import os; os.chdir({str(self.directory)!r})\n"
        program = [sys.executable, "-c", start + textwrap.dedent(work)]
        done = subprocess.run([*command, *program], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return read(tables)

    def close(self) -> None:
        """Take everything down that was set up."""
        if self.mounted and os.path.ismount(self.directory):
            run("umount", self.directory)
        self.undo.close()


@contextlib.contextmanager
def temporary_bench(folder: Path) -> Iterator[Bench]:
    """A bench that is taken down at the end; skips the test where this machine has no tracer."""
    need_tracer()
    bench = Bench(folder, agent_path())
    try:
        yield bench
    finally:
        bench.close()


def read(tables: Path) -> TracedTables:
    """Read a tracing's tables: page runs with what their request and files are."""
    files = {row["file_id"]: row["path"] for row in rows(tables, "files")}
    requests = {row["request_id"]: row for row in rows(tables, "requests")}
    for request in requests.values():
        request["asker_file"] = files.get(request["asker_file_id"])
    runs = []
    for row in rows(tables, "page_runs"):
        runs.append(requests[row["request_id"]] | row | {"file": files.get(row["file_id"])})
    return TracedTables(list(requests.values()), runs, rows(tables, "files"))


def rows(tables: Path, table: str) -> list[Row]:
    """Read one table, whole or in segments."""
    parts = sorted((tables / table).glob("*.parquet")) or [tables / f"{table}.parquet"]
    return [row for part in parts for row in pq.read_table(part).to_pylist()]
