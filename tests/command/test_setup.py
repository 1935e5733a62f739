"""setup/packages.sh without root: the one line to run, and exit code 3. The README of a wheel."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.command.conftest import CHECKOUT

NOBODY = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")


@pytest.fixture
def setup() -> Iterator[Path]:
    """A copy of setup/ that everybody may read, as pytest's own folders may not be."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "setup"
        shutil.copytree(CHECKOUT / "setup", folder)
        folder.parent.chmod(0o755)
        yield folder


def packages(setup: Path, wanted: str, tools: Path = Path()) -> subprocess.CompletedProcess[str]:
    """Return what packages.sh says to a user who is not root when `wanted` is its list.

    Programs in the folder `tools` go before this machine's.
    """
    (setup / "packages.txt").write_text(wanted)
    command = [*(NOBODY if os.geteuid() == 0 else ()), str(setup / "packages.sh"), "packages.txt"]
    path = os.pathsep.join([*([str(tools)] if tools != Path() else ()), os.environ["PATH"]])
    environment = {**os.environ, "PATH": path}
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)


def test_missing_packages_are_one_line_to_run(setup: Path) -> None:
    answer = packages(setup, "dpkg # there\njojlab-no-such # a reason\njojlab-nor-this\n")
    assert answer.returncode == 3
    install = "apt-get install -y --no-install-recommends jojlab-no-such jojlab-nor-this"
    assert f"    sudo sh -c 'apt-get update && {install}'" in answer.stderr.splitlines()


def test_nothing_missing_is_nothing_to_do(setup: Path) -> None:
    answer = packages(setup, "dpkg # there\npython3\n")
    assert answer.returncode == 0
    assert "all there" in answer.stdout


def test_one_of_two_package_names_is_enough_and_the_archives_is_installed(setup: Path) -> None:
    assert packages(setup, "jojlab-no-such | dpkg # one is there\n").returncode == 0
    answer = packages(setup, "jojlab-no-such | jojlab-nor-this\n")
    assert "--no-install-recommends jojlab-no-such'" in answer.stderr
    apt_cache = setup.parent / "apt-cache"
    apt_cache.write_text('#!/bin/sh\n[ "$2" != jojlab-nor-this ] || echo "$2 | 1"\n')
    apt_cache.chmod(0o755)
    answer = packages(setup, "jojlab-no-such | jojlab-nor-this\n", setup.parent)
    assert "--no-install-recommends jojlab-nor-this'" in answer.stderr


def index_readme(folder: Path, urls: str) -> str:
    """Return the README that a package index shows, where pyproject.toml has these addresses."""
    (folder / "setup").mkdir()
    for name in ("README.md", "setup/wheel.py", "LICENSE"):
        shutil.copy(CHECKOUT / name, folder / name)
    project = (CHECKOUT / "pyproject.toml").read_text()
    project = project.replace("[project.scripts]", f"{urls}[project.scripts]")
    (folder / "pyproject.toml").write_text(project)
    shown = (sys.executable, "-m", "hatchling", "metadata", "readme")
    return subprocess.run(shown, cwd=folder, check=True, capture_output=True, text=True).stdout


def test_an_index_shows_no_link_that_leads_nowhere(tmp_path: Path) -> None:
    urls = '[project.urls]\nSource = "https://example.org/a/jojlab/"\n'
    at = "https://example.org/a/jojlab/{}/v0.1.0/"
    (tmp_path / "with").mkdir()
    shown = index_readme(tmp_path / "with", urls)
    assert f"![The report of first-look]({at.format('raw')}docs/first-look.png)" in shown
    links = re.findall(r"\]\(([^)]*)\)", shown)
    assert len(links) > 20
    own = [link.removeprefix(at.format("blob")) for link in links if "first-look.png" not in link]
    assert all((CHECKOUT / path).is_file() for path in own)
    (tmp_path / "without").mkdir()
    assert "](" not in index_readme(tmp_path / "without", "")
