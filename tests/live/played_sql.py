"""Plays exported scripts of SQL by joj bench sql, and keeps the databases, which joj removes: each
has a second name before its first statement runs.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

JOJ = Path(sys.executable).with_name("joj")
# Before the first statement of each script; no other wait is kept.
_WAIT = "--! wait_us 1000000\n"


def _add_wait(script: Path) -> None:
    lines = script.read_bytes().decode().splitlines(keepends=True)
    head = [line for line in lines if line.startswith(("--! connection", "--! dat", "--! att"))]
    rest = [line for line in lines if line not in head and not line.startswith("--! wait_us")]
    script.write_bytes("".join([*head, _WAIT, *rest]).encode())


@contextlib.contextmanager
def _links(disk: Path, copies: Path) -> Iterator[None]:
    """Give what appears below `disk` a second name in `copies`, meanwhile."""
    end = threading.Event()

    def link() -> None:
        while not end.wait(0.05):
            for path in disk.glob("*/*"):
                if not path.name.endswith(("-journal", "-wal", "-shm")):
                    with contextlib.suppress(FileExistsError, FileNotFoundError):
                        os.link(path, copies / path.name)

    thread = threading.Thread(target=link)
    thread.start()
    try:
        yield
    finally:
        end.set()
        thread.join()


def play(scripts: Path, folder: Path) -> tuple[int, dict[str, Any]]:
    """Play scripts, whose waits are changed; the databases are then in `folder`. Return joj's exit
    code, and what it says.
    """
    for script in scripts.glob("transaction*.sql"):
        _add_wait(script)
    disk = folder.with_name(f"{folder.name}-disk")
    disk.mkdir()
    folder.mkdir()
    command = [
        str(JOJ), "bench", "sql", str(disk), "--workload", "sql-recorded", "--scripts",
        str(scripts), "--think-time", "recorded", "--synchronous", "off", "--json",
    ]  # fmt: skip
    with _links(disk, folder):
        done = subprocess.run(command, capture_output=True, text=True)
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout)
