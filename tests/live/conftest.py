"""A directory to bench in, joj bench as a process, and a directory for recorded programs."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests import this_process
from tests.hangs import SHOWS_STACKS

CHECKOUT = Path(__file__).parents[2]


def joj(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Run joj of this checkout to its end, in a process whose output its programs' is too."""
    target = os.environ.get("CARGO_TARGET_DIR", "target")
    changes = {"PYTHONPATH": str(CHECKOUT), "CARGO_TARGET_DIR": str(CHECKOUT / target)}
    return subprocess.run(
        [sys.executable, "-m", "jojlab", *map(str, arguments)],
        env={**os.environ, **SHOWS_STACKS, **changes},
        capture_output=True,
        text=True,
    )


@dataclass(frozen=True)
class Bench:
    """joj bench of this checkout, and the directory it is run on."""

    directory: Path

    def start(self, *arguments: str | Path) -> subprocess.Popen[str]:
        """Start it in a process group of its own, as a shell does."""
        target = os.environ.get("CARGO_TARGET_DIR", "target")
        changes = {"PYTHONPATH": str(CHECKOUT), "CARGO_TARGET_DIR": str(CHECKOUT / target)}
        return subprocess.Popen(
            [sys.executable, "-m", "jojlab", "bench", *map(str, arguments)],
            env={**os.environ, **SHOWS_STACKS, **changes},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            process_group=0,
        )

    def run(self, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
        """Run it to its end, in this process."""
        return this_process.joj("bench", *arguments)

    def names(self) -> list[str]:
        """The names that are in the directory."""
        return sorted(path.name for path in self.directory.iterdir())


@pytest.fixture
def here(tmp_path: Path) -> Path:
    """An empty directory, where a program is recorded."""
    folder = tmp_path / "here"
    folder.mkdir()
    return folder


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    """An empty directory."""
    directory = tmp_path / "here"
    directory.mkdir()
    return Bench(directory)


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Bench]:
    """A filesystem of 4 MiB, in memory; making one needs root."""
    directory = tmp_path / "small"
    directory.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=4m,nr_inodes=100", "tmpfs", str(directory)]
    if os.geteuid() != 0:
        pytest.skip("only root can mount a small filesystem")
    subprocess.run(command, check=True)
    try:
        yield Bench(directory)
    finally:
        subprocess.run(["umount", str(directory)], check=True)
