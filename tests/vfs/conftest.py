"""The fixtures of all tests of vfs/: a folder on a disk, and the libraries with a log of calls."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.vfs.programs import SOURCE
from tests.vfs.transactions import build_all


@pytest.fixture
def disk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder on this machine's disk: a filesystem in memory has other rules."""
    return tmp_path_factory.mktemp("disk")


@pytest.fixture(scope="session")
def libraries(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All of vfs/, and the library that logs calls."""
    return build_all(SOURCE, tmp_path_factory.mktemp("vfs"))
