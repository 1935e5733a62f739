"""Adds a device, an experiment and an analysis in a copy of the checkout, by the files that
CONTRIBUTING.md names, and runs each.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from jojlab.foundation.cache import Cache
from tests.command.conftest import CHECKOUT, Lab

FOLDERS = ("jojlab", "tests", "devices", "experiments", "schema", "kernel", "setup")


@dataclass(frozen=True)
class Copy:
    """A copy of the checkout, whose own joj and tests are run."""

    root: Path
    lab: Lab

    def add(self, path: str, text: str) -> None:
        """Write a new file."""
        assert not (self.root / path).exists()
        (self.root / path).parent.mkdir(exist_ok=True)
        (self.root / path).write_text(text)

    def change(self, path: str, old: str, new: str) -> None:
        """Replace the one place in a file that reads `old`."""
        text = (self.root / path).read_text()
        assert text.count(old) == 1, f"{path}: {old}"
        (self.root / path).write_text(text.replace(old, new))

    def joj(self, *arguments: str) -> str:
        """Run the copy's joj, which must succeed; return what it prints."""
        answer = self.lab.joj(*arguments, PYTHONPATH=str(self.root))
        assert answer.returncode == 0, answer.stderr
        return answer.stdout

    def json(self, *arguments: str) -> Any:
        """Run the copy's joj and return the JSON that it prints."""
        return json.loads(self.joj(*arguments, "--json"))

    def tests(self, *arguments: str) -> str:
        """Run tests of the copy, which must pass; return what pytest says."""
        answer = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments],
            cwd=self.root,
            env=self.lab.environment({"PYTHONPATH": str(self.root)}),
            capture_output=True,
            text=True,
            check=False,
        )
        assert answer.returncode == 0, answer.stdout
        return answer.stdout


@pytest.fixture
def copy(cache: Cache, tmp_path: Path) -> Copy:
    """A copy of all that joj and its tests read, and an empty folder to run joj in."""
    root = tmp_path / "copy"
    for name in FOLDERS:
        shutil.copytree(CHECKOUT / name, root / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(CHECKOUT / "conftest.py", root)
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    return Copy(root, Lab(folder, cache.root))


@pytest.mark.full
def test_a_device_is_one_file(copy: Copy) -> None:
    text = (copy.root / "devices" / "emmc-5.1.toml").read_text()
    profile = text.replace('name = "emmc-5.1"', 'name = "mycard"')
    slow, count = re.subn(r"(?m)^flush_overhead_ns = \d+$", "flush_overhead_ns = 9000000", profile)
    assert count == 1
    copy.add("devices/mycard.toml", slow)
    assert "mycard" in [row["name"] for row in copy.json("list", "devices")]
    assert "9,000,000" in copy.joj("device", "show", "mycard")
    # Its stated figures are met within 10 %.
    assert re.search(r"[2-9] passed", copy.tests("jojlab/device", "-k", "mycard"))
    own, copied = (
        copy.json("bill", f"--device={device}", "--transactions=7", "--journal-mode=truncate")
        for device in ("mycard", "emmc-5.1")
    )
    assert own["per_commit"]["flushes"] == copied["per_commit"]["flushes"]
    assert own["per_commit"]["latency_ns_p50"] > copied["per_commit"]["latency_ns_p50"] + 9_000_000


@pytest.mark.full
def test_an_experiment_is_one_file(copy: Copy) -> None:
    copy.add(
        "experiments/mine/experiment.toml",
        """
        question = "Does WAL write less than TRUNCATE?"
        [case]
        filesystem = "ext4"
        transactions = 7
        [matrix]
        journal_mode = ["truncate", "wal"]
        """,
    )
    [listed] = [row for row in copy.json("list", "experiments") if row["name"] == "mine"]
    assert listed["cases"] == 2
    assert "truncate" in copy.joj("run", "mine")
    report = (copy.lab.folder / "runs" / "mine" / "report.html").read_text()
    assert "Does WAL write less than TRUNCATE?" in report


@pytest.mark.full
def test_a_figure_is_its_question_and_its_row(copy: Copy, finished_run: Path) -> None:
    copy.add(
        "jojlab/analysis/figures/largest_request.sql",
        """-- How large is the largest write of a commit? In bytes, by capture.
SELECT case_id, seed, max(length_bytes) AS largest_write_bytes
FROM requests
JOIN captures ON requests.capture = captures.capture
WHERE phase = 'commit' AND operation = 'write'
GROUP BY case_id, seed
""",
    )
    copy.add(
        "jojlab/analysis/figures/test_largest_request.py",
        """from pathlib import Path

from jojlab.analysis.figures.case_figures import case_figures
from jojlab.trace.dataset import Dataset
from tests.captures import CaptureBuilder, run_of


def test_the_largest_write_of_a_commit_counts(tmp_path: Path) -> None:
    builder = CaptureBuilder({"journal_mode": "wal"}, 1)
    for length_bytes in (4096, 12288):
        run = [("data", "", None, length_bytes)]
        builder.transaction(lambda: builder.request(run))
    builder.settle()
    (figures,) = case_figures(Dataset.from_runs(run_of(tmp_path, builder))).values()
    assert figures.median["largest_write_bytes"] == 12288
""",
    )
    copy.change(
        "jojlab/model/figures.py",
        ")  # fmt: skip\n\nFIGURES",
        '    Figure("largest_write_bytes", "the largest write of a commit", "bytes", "requests",\n'
        '           question="figures/largest_request"),\n'
        ")  # fmt: skip\n\nFIGURES",
    )
    said = copy.tests(
        "jojlab/analysis/figures/test_largest_request.py",
        "jojlab/analysis/rows/test_ask.py",
        "-k",
        "largest",
    )
    assert re.search(r"[2-9] passed", said)
    assert "largest_write_bytes" in [row["name"] for row in copy.json("list", "figures")]
    [case] = copy.json("show", str(finished_run))["cases"]
    assert case["figures"]["largest_write_bytes"] >= 4096


def test_a_filesystem_is_one_file(copy: Copy) -> None:
    copy.add(
        "jojlab/model/filesystems/myfs.py",
        '''"""MyFS: its options and tools."""

from jojlab.model.disk_map import DiskMap, Stretches
from jojlab.model.filesystem import MIB, Filesystem, Tool
from jojlab.model.hazards import Cause, Harm, Hazard

LOST_TREE = Cause("lost-tree", "MyFS: a power cut may lose its tree")
FILESYSTEM = Filesystem(
    name="myfs",
    rank=7,
    mount_options="quick",
    mkfs_options=r"-b \\d+",
    smallest_device_bytes=32 * MIB,
    read_disk_map=lambda _: DiskMap(("myfs",), Stretches(), Stretches()),
    mkfs=Tool("mkfs.myfs", "myfs-progs"),
    hazards=lambda _settings, _stakes: [Hazard(Harm.FILESYSTEM, LOST_TREE)],
)
''',
    )
    (listed,) = (row for row in copy.json("list", "fields") if row["name"] == "filesystem")
    assert "myfs" in listed["values"]
    copy.add(
        "jojlab/model/filesystems/test_myfs.py",
        """from jojlab.analysis.run.risks import hazards, unknowns
from jojlab.experiment.cases import complete, impossible
from jojlab.guest.image.build import MKFS_PACKAGES
from jojlab.report.hazards import hazard_sentences


def test_myfs_is_known_everywhere() -> None:
    case = complete({"filesystem": "myfs", "mount_options": "quick"})
    assert impossible(case) == ""
    assert "no mount option" in impossible({**case, "mount_options": "slow"})
    assert hazard_sentences(hazards(case)) == ("MyFS: a power cut may lose its tree",)
    assert not unknowns(case)
    assert MKFS_PACKAGES["mkfs.myfs"] == "myfs-progs"
""",
    )
    assert "1 passed" in copy.tests("jojlab/model/filesystems/test_myfs.py")


def test_a_copied_checkout_runs_its_own_joj(copy: Copy) -> None:
    copy.change("jojlab/commands/list_.py", "numbers measured for a case", "of the copy")
    assert "of the copy" in copy.joj("list")
