"""examples/gate, as its reader would run it: the good change passes, the bad one fails, and the
line of the bill that grew is named. So does a change that takes the app no instruction more.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.command.conftest import CHECKOUT, JOJ, FinishedRun, Lab

pytestmark = pytest.mark.full
EXAMPLE = CHECKOUT / "examples/gate"


def git(folder: Path, *arguments: str) -> None:
    subprocess.run(
        ["git", "-c", "user.name=a", "-c", "user.email=a@localhost", *arguments],
        cwd=folder,
        check=True,
        capture_output=True,
    )


def run_gate(lab: Lab, folder: Path) -> FinishedRun:
    """Run the step of a CI server in a checkout of the example."""
    return subprocess.run(
        [str(CHECKOUT / "gate/gate.sh")],
        cwd=folder,
        env=lab.environment({"JOJ": " ".join(JOJ)}),
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_bad_change_fails_with_the_line_that_grew(lab: Lab) -> None:
    folder = lab.folder / "phone-book"
    shutil.copytree(EXAMPLE, folder)
    git(folder, "init", "-q")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "base")
    accepted = lab.joj("gate", folder / "budgets.toml", "--accept")
    assert accepted.returncode == 0, accepted.stderr

    git(folder, "apply", "good.patch")
    git(folder, "commit", "-qam", "good")
    good = run_gate(lab, folder)
    assert good.returncode == 0, good.stderr
    assert "2 limits: 2 kept" in good.stdout

    git(folder, "apply", "bad.patch")
    git(folder, "commit", "-qam", "bad")
    bad = run_gate(lab, folder)
    assert bad.returncode == 1, bad.stderr
    assert "grown line: flush, fdatasync of phone-book.db-wal: 1 request" in bad.stdout
    assert "grown line: fs-journal, fdatasync of phone-book.db-wal" in bad.stdout
    summary = (folder / "gate.md").read_text()
    assert "2 limits: 2 broken" in summary
    head = subprocess.run(
        ["git", "rev-parse", "--short=12", "HEAD"], cwd=folder, check=True, capture_output=True
    )
    assert head.stdout.decode().strip() in summary
    assert len((folder / "gate-trend.jsonl").read_text().splitlines()) == 2
    assert "<failure" in (folder / "gate.xml").read_text()

    git(folder, "apply", "-R", "bad.patch")
    git(folder, "apply", "unseen.patch")
    unseen = run_gate(lab, folder)
    assert unseen.returncode == 1, unseen.stderr
    assert "broken case: flushes_per_commit <= 1.28: " in unseen.stdout
