"""A skip that nothing lists fails the run, so that no suite passes by testing nothing."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.tidy.test_tidy import ROOT

SUITE = """
import pytest

def test_listed(): pytest.skip("no zram here")
def test_other(): pytest.skip("losetup: failed")
@pytest.fixture
def disk(): pytest.skip("mkfs: failed")
def test_of_a_fixture(disk): pass
@pytest.mark.skipif(True, reason="no fio here")
def test_of_a_program(): pass
@pytest.mark.xfail(strict=True)
def test_known_fault(): raise AssertionError
"""
LIST = '[[skip]]\ntest = "*::test_*"\nsays = "no zram"\nwhy = "a module"\n'


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    """Tests that skip, with this checkout's rules and a list of their own."""
    shutil.copy(ROOT / "conftest.py", tmp_path)
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "skips.toml").write_text(LIST)
    (tmp_path / "test_some.py").write_text(SUITE)
    return tmp_path


def run(suite: Path, **changes: str) -> subprocess.CompletedProcess[str]:
    environment = {key: os.environ[key] for key in os.environ if key not in ("CI", "JOJ_SKIPS")}
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", str(suite)]
    return subprocess.run(
        command,
        cwd=suite,
        env={**environment, "PYTHONPATH": str(ROOT), **changes},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("changes", [{"CI": "true"}, {"JOJ_SKIPS": "listed"}], ids=str)
def test_skips_that_are_not_listed_fail(suite: Path, changes: dict[str, str]) -> None:
    answer = run(suite, **changes)
    assert answer.returncode == 1
    for reason in ("losetup: failed", "mkfs: failed", "no fio here"):
        assert f"{reason}\ntests/skips.toml does not list that test_some.py::" in answer.stdout
    assert "1 failed, 1 skipped, 1 xfailed, 2 errors" in answer.stdout.splitlines()[-1]


def test_elsewhere_a_skip_is_a_skip(suite: Path) -> None:
    answer = run(suite)
    assert answer.returncode == 0
    assert "4 skipped, 1 xfailed" in answer.stdout.splitlines()[-1]


def test_a_suite_that_cannot_be_collected_fails(suite: Path) -> None:
    (suite / "test_some.py").write_text('import pytest\npytest.importorskip("no_such_module")\n')
    assert run(suite, CI="true").returncode != 0
