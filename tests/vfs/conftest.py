"""The folder on a disk and the libraries, with a log of calls, that the tests of vfs/ share."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.vfs.programs import SOURCE, build, compiler_of


def build_libraries(source: Path, folder: Path, kind: str = "plain") -> Path:
    """Build the VFSes of a source for LD_PRELOAD, and the library that logs calls."""
    compiler = compiler_of(kind, folder)
    # A small log is emptied often, and has to grow for some records.
    build(source, folder, "joj_redo_preload", f"{compiler} -DLOG_BYTES=131072")
    build(source, folder, "joj_wal_preload", compiler)
    file = Path(__file__).with_name("call_log.c")
    compile_it = ["gcc", "-shared", "-fPIC", "-O2", "-Wall", "-Wextra", "-Werror", str(file), "-o"]
    subprocess.run([*compile_it, str(folder / "call_log.so")], check=True)
    return folder


@pytest.fixture
def disk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder on this machine's disk: a filesystem in memory has other rules."""
    return tmp_path_factory.mktemp("disk")


@pytest.fixture(scope="session")
def libraries(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Both VFSes, and the library that logs calls."""
    return build_libraries(SOURCE, tmp_path_factory.mktemp("vfs"))


@pytest.fixture(
    scope="session", params=["plain", pytest.param("sanitized", marks=pytest.mark.full)]
)
def checked_libraries(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """The same, also with the sanitizers, for tests that have time for both."""
    return build_libraries(SOURCE, tmp_path_factory.mktemp("vfs"), request.param)
