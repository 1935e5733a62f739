"""Programs that are not changed, with a VFS of vfs/ by LD_PRELOAD or with stock SQLite."""

from __future__ import annotations

import atexit
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

from tests.hangs import HANG_S

SOURCE = Path(__file__).parents[2] / "vfs"
# What a library is built with, and the sanitizer's own library, the first that a process loads.
SANITIZERS = {
    "sanitized": ("-fsanitize=address,undefined -fno-sanitize-recover=all", "libasan.so"),
    "threads": ("-fsanitize=thread", "libtsan.so"),
}

# Statements of one process: a line each, committed where it is no transaction of its own.
PLAYER = """
    import sqlite3, sys
    db = sqlite3.connect("a.db", isolation_level=None)
    for line in sys.stdin:
        rows = db.execute(line).fetchall()
        print(rows, flush=True)
"""
TOLERANT = """
    import sqlite3, sys
    db = sqlite3.connect("a.db", isolation_level=None)
    for line in sys.stdin:
        try:
            rows = db.execute(line).fetchall()
        except sqlite3.Error as error:
            rows = str(error)
        print(rows, flush=True)
"""


def build(source: Path, folder: Path, name: str, compiler: str = "gcc") -> Path:
    """Build a library of vfs/ into a folder, and return it."""
    library = folder / f"{name}.so"
    subprocess.run(
        ["make", "-s", "-C", source, f"BUILD={folder}", f"CC={compiler}", library], check=True
    )
    return library


def change_source(folder: Path, file: str, before: str, after: str) -> Path:
    """Return a copy of vfs/, in which one place of a file is another."""
    source = folder / "vfs"
    shutil.copytree(SOURCE, source, ignore=shutil.ignore_patterns("build"))
    text = (source / file).read_text()
    assert text.count(before) == 1
    (source / file).write_text(text.replace(before, after))
    return source


def compiler_of(kind: str, folder: Path) -> str:
    """Return the compiler of plain libraries, or of those with a sanitizer, which is linked into
    their folder.
    """
    if kind == "plain":
        return "gcc"
    flags, sanitizer = SANITIZERS[kind]
    runtime = subprocess.run(
        ["gcc", f"-print-file-name={sanitizer}"], check=True, capture_output=True, text=True
    ).stdout.strip()
    # It has to keep its name: it looks for itself among the libraries of the process.
    (folder / sanitizer).symlink_to(runtime)
    return f"gcc {flags}"


def preload_of(libraries: Path, *names: str) -> str:
    """Return libraries of a folder for LD_PRELOAD, behind the sanitizer that they have."""
    runtimes = [str(path) for path in libraries.glob("lib*san.so")]
    return ":".join([*runtimes, *(f"{libraries}/{name}.so" for name in names)])


def build_preload(name: str, kind: str, folder: Path) -> str:
    """Return the library for LD_PRELOAD, plain or with a sanitizer that is before it."""
    build(SOURCE, folder, f"{name}_preload", compiler_of(kind, folder))
    return preload_of(folder, f"{name}_preload")


def python(library: str | None, code: str, *arguments: object) -> list[str]:
    """Return a command that runs Python code, with the VFS if a library is given."""
    # Python itself leaks, and is not built to be looked at.
    preload = [] if library is None else [f"LD_PRELOAD={library}", "ASAN_OPTIONS=detect_leaks=0"]
    return ["env", *preload, sys.executable, "-c", textwrap.dedent(code), *map(str, arguments)]


def play(library: str | None, disk: Path, statements: Sequence[str]) -> list[str]:
    """Return what each statement gave, played in one process that closes the database."""
    answer = subprocess.run(
        python(library, PLAYER), input="\n".join(statements), cwd=disk,
        capture_output=True, text=True, check=False, timeout=HANG_S,
    )  # fmt: skip
    assert answer.returncode == 0, answer.stderr
    return answer.stdout.splitlines()


def answers(library: str | None, disk: Path, statements: Sequence[str]) -> list[str]:
    """Return what each statement gave, or its error, played in one process."""
    said = subprocess.run(
        python(library, TOLERANT), input="\n".join(statements), cwd=disk,
        capture_output=True, text=True, check=False, timeout=HANG_S,
    )  # fmt: skip
    assert said.returncode == 0, said.stderr
    return said.stdout.splitlines()


def leave(*paths: Path) -> subprocess.CompletedProcess[str]:
    """Run joj-redo-leave, built from this checkout."""
    program = _leave_program()
    return subprocess.run(
        [program, *paths], capture_output=True, text=True, check=False, timeout=HANG_S
    )


@cache
def _leave_program() -> Path:
    folder = Path(mkdtemp(prefix="joj-redo-leave-"))
    atexit.register(shutil.rmtree, folder)
    program = folder / "joj-redo-leave"
    subprocess.run(["make", "-s", "-C", SOURCE, f"BUILD={folder}", program], check=True)
    return program
