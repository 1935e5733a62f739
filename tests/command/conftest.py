"""A lab to run the real joj in: a folder, a cache of its own, and the kernel from the user's."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from jojlab.foundation.cache import Cache
from tests import this_process
from tests.hangs import SHOWS_STACKS

CHECKOUT = Path(__file__).parents[2]
JOJ = (sys.executable, "-m", "jojlab")
# The smallest run of first-look: one case, one seed, of a second or two.
SMALL = tuple(
    f"--set={setting}"
    for setting in (
        "transactions=7",
        "seeds=1",
        "filesystem=ext4",
        "journal_mode=wal",
        "regime=fresh",
        "sync_call=fsync",
    )
)

FinishedRun = subprocess.CompletedProcess[str]


@dataclass(frozen=True)
class Lab:
    """A folder in which joj is run, and its cache."""

    folder: Path
    cache: Path

    def environment(self, changes: Mapping[str, str]) -> dict[str, str]:
        """The environment of joj: this checkout and this cache, whatever folder it runs in."""
        target = os.environ.get("CARGO_TARGET_DIR", "target")
        own = {
            "JOJ_CACHE": str(self.cache),
            "PYTHONPATH": str(CHECKOUT),
            "CARGO_TARGET_DIR": str(CHECKOUT / target),
        }
        return {**os.environ, **SHOWS_STACKS, **own, **changes}

    def joj(
        self, *arguments: str | Path, before: tuple[str, ...] = (), **changes: str
    ) -> FinishedRun:
        """Run joj to its end; `before` is a command that runs it, `changes` the environment."""
        command = [*before, *JOJ, *map(str, arguments)]
        return subprocess.run(
            command,
            cwd=self.folder,
            env=self.environment(changes),
            capture_output=True,
            text=True,
            check=False,
        )

    def joj_here(self, *arguments: str | Path) -> FinishedRun:
        """Run joj to its end in this process, whose default cache the lab's is (conftest.py)."""
        assert Cache.default().root == self.cache
        return this_process.joj(*arguments, folder=self.folder)

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """Start joj in a process group of its own, as a shell does."""
        return subprocess.Popen(
            [*JOJ, *arguments],
            cwd=self.folder,
            env=self.environment({}),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            process_group=0,
        )

    def guests(self) -> list[str]:
        """The command lines of this cache's QEMUs and their children."""
        lines = []
        for process in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                line = process.read_bytes().replace(b"\0", b" ").decode(errors="replace")
            except OSError:  # it ended meanwhile
                continue
            if str(self.cache) in line and "qemu" in line:
                lines.append(line)
        return lines


def read_until(words: str, joj: subprocess.Popen[str]) -> str:
    """Read what a started joj says on stderr up to the line with `words`; return it."""
    assert joj.stderr
    said = ""
    while words not in said:
        line = joj.stderr.readline()
        assert line, said
        said += line
    return said


@pytest.fixture
def lab(cache: Cache, tmp_path: Path) -> Lab:
    """An empty folder and the tests' cache."""
    return Lab(tmp_path, cache.root)


@pytest.fixture(scope="session")
def finished_run(cache: Cache, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run of SMALL; not to be changed."""
    lab = Lab(tmp_path_factory.mktemp("finished"), cache.root)
    answer = lab.joj("run", "first-look", *SMALL)
    assert answer.returncode == 0, answer.stderr
    return lab.folder / "runs" / "first-look"
