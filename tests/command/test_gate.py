"""joj gate with real captures: changes to an app that make its commit dearer are caught, each with
the line of the bill that grew, and what did not change passes again.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.command.conftest import CHECKOUT, Lab

EXPERIMENT = """
question = "Does our app commit as cheaply as it did?"
[case]
device       = "ufs-2.1"
journal_mode = "wal"
synchronous  = "SYNCHRONOUS"
transactions = 23
regime       = "steady"
"""
APP = 'workload = "sql"\nscripts = "app"\n'
BATCHES = 'workload = "sqlite-insert"\nstatements = 10\n'


def prepare(lab: Lab, name: str, workload: str, *limits: str, synchronous: str = "full") -> Path:
    """Write an experiment and its budgets into a folder of their own; return the budgets."""
    folder = lab.folder / name
    folder.mkdir()
    shutil.copytree(CHECKOUT / "experiments/own-app/app", folder / "app")
    (folder / "experiment.toml").write_text(
        EXPERIMENT.replace("SYNCHRONOUS", synchronous) + workload
    )
    budgets = folder / "budgets.toml"
    budgets.write_text(f'experiment = "."\n[[budget]]\nlimits = {json.dumps(limits)}\n')
    return budgets


def broken_verdict(lab: Lab, budgets: Path, *options: str) -> dict[str, Any]:
    """Run a gate that must find its one limit broken; return that verdict."""
    answer = lab.joj_here("gate", budgets, "--json", *options)
    assert answer.returncode == 1, answer.stderr
    (verdict,) = [each for each in json.loads(answer.stdout) if each["kept"] == "broken"]
    return dict(verdict)


def values(lab: Lab, budgets: Path) -> dict[str, float]:
    answer = lab.joj_here("gate", budgets, "--json")
    assert answer.returncode == 0, answer.stderr
    return {each["limit"].split()[0]: each["value"] for each in json.loads(answer.stdout)}


def limit(budgets: Path, *limits: str) -> None:
    budgets.write_text(f'experiment = "."\n[[budget]]\nlimits = {json.dumps(limits)}\n')


@pytest.mark.full
def test_an_added_fsync_and_a_journal_instead_of_the_wal_are_caught(lab: Lab) -> None:
    limits = ("bytes_per_commit <= 1 GiB", "flushes_per_commit <= 99")
    budgets = prepare(lab, "app", APP, *limits, synchronous="normal")
    accepted = lab.joj_here("gate", budgets, "--accept")
    assert accepted.returncode == 0, accepted.stderr
    measured = values(lab, budgets)
    size = f"bytes_per_commit <= {measured['bytes_per_commit']} B"
    flushes = f"flushes_per_commit <= {measured['flushes_per_commit']}"
    limit(budgets, size, flushes)
    # Another folder with another run of its guest: the limit leaves nothing over, and holds.
    again = lab.folder / "checkout"
    shutil.copytree(budgets.parent, again)
    assert lab.joj_here("gate", again / "budgets.toml", "--no-cache").returncode == 0

    limit(budgets, flushes)
    found = broken_verdict(lab, budgets, "--set", "synchronous=full")
    assert found["lines"][0].startswith("new line: flush, fsync of main.db-wal: ")
    assert found["changed"] == {"synchronous": {"old": "normal", "new": "full"}}

    limit(budgets, size)
    found = broken_verdict(lab, budgets, "--set", "journal_mode=truncate")
    assert found["lines"][0].startswith("new line: fs-journal, fsync of main.db-journal: ")


@pytest.mark.full
def test_larger_pages_and_an_added_index_are_caught(lab: Lab) -> None:
    budgets = prepare(lab, "pages", APP, "bytes_per_commit <= 1 GiB")
    assert lab.joj_here("gate", budgets, "--accept").returncode == 0
    limit(budgets, f"bytes_per_commit <= {values(lab, budgets)['bytes_per_commit']} B")
    found = broken_verdict(lab, budgets, "--set", "page_size_bytes=16384")
    assert "main.db-wal" in found["lines"][0]
    assert "data" in found["lines"][0]
    with (budgets.parent / "app/schema.sql").open("a") as schema:
        schema.write("\nCREATE INDEX task_by_title ON task (title, note);\n")
    found = broken_verdict(lab, budgets)
    assert "main.db-wal" in found["lines"][0]
    assert "data" in found["lines"][0]
    assert found["value"] > found["accepted"]


@pytest.mark.full
def test_half_the_batch_costs_each_row_more(lab: Lab) -> None:
    budgets = prepare(lab, "batches", BATCHES, "bytes_per_row <= 1 GiB")
    assert lab.joj_here("gate", budgets, "--accept").returncode == 0
    limit(budgets, f"bytes_per_row <= {values(lab, budgets)['bytes_per_row']} B")
    found = broken_verdict(lab, budgets, "--set", "statements=5")
    assert found["changed"] == {"statements": {"old": 10, "new": 5}}
    assert "main.db-wal" in found["lines"][0]


def test_wrong_use_is_named(lab: Lab, tmp_path: Path) -> None:
    budgets = tmp_path / "budgets.toml"
    budgets.write_text('[[budget]]\nlimits = ["flushes_per_commit <= 1"]\n')
    answer = lab.joj_here("gate", budgets)
    assert answer.returncode == 2
    assert "experiment is missing" in answer.stderr
