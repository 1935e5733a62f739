"""Adds a workload in a copy of the checkout, by the files that CONTRIBUTING.md names: a folder of
the agent, two lines beside it, and one file of jojlab. Builds it, and runs it live.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.command.conftest import CHECKOUT, Ended
from tests.tidy.rust import Crate
from tests.tidy.test_tidy import circle

ADDED = Path(__file__).parent / "added" / "file_truncate"
COPIED = (".cargo", "Cargo.toml", "Cargo.lock", "agent", "kernel", "vfs", "jojlab", "schema")
NAME = "joj-agent-of-a-copy"  # cargo would put another joj-agent in the place of the checkout's
TRIPLE = "x86_64-unknown-linux-gnu"
FACTS = '''"""The workload that cuts files to a length."""

from jojlab.model.field import Field
from jojlab.model.hazards import Harm
from jojlab.model.workload import DRAWN, Workload
from jojlab.model.workloads.files import THREADS

RANK = 5
WORKLOADS = (
    Workload(name="file-truncate", harm=Harm.WRITES, groups=(DRAWN, THREADS), bench="file"),
)
FIELDS = (
    Field(
        "truncated_bytes",
        "length to which each operation cuts its file",
        512,
        limits=(0, 1 << 20),
        group="file-truncate",
    ),
)
'''


def replace(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert text.count(old) == 1, f"{path}: {old!r}"
    path.write_text(text.replace(old, new))


def add(tree: Path) -> list[str]:
    """Add the workload; return the files of the tree that had to change."""
    workloads = tree / "agent/src/workload"
    shutil.copytree(ADDED, workloads / ADDED.name)
    replace(workloads / "mod.rs", "mod file_write;\n", "mod file_truncate;\nmod file_write;\n")
    table = re.compile(r"(const KINDS: \[WorkloadKind; )(\d+)(\] =\s+\[)")
    code = (workloads / "mod.rs").read_text()
    longer, changes = table.subn(
        lambda found: f"{found[1]}{int(found[2]) + 1}{found[3]}file_truncate::KIND, ", code
    )
    assert changes == 1
    (workloads / "mod.rs").write_text(longer)
    (tree / "jojlab/model/workloads/file_truncate.py").write_text(FACTS)
    return ["agent/src/workload/mod.rs"]


def build(tree: Path, target: Path) -> Path:
    """Build the agent of a copy; return its path.

    With a test beside it, which is empty: cargo then takes the dependencies as `cargo test` has
    built them, whose features are not those of a program alone. Without what a debugger or the next
    build would need, which takes as long as the rest.
    """
    shutil.rmtree(tree / "agent/live")
    replace(tree / "Cargo.toml", ', "agent/live"]', "]")
    (tree / "agent/tests").mkdir()
    (tree / "agent/tests/nothing.rs").write_text("//! Tests nothing.\n")
    for file in ("agent/Cargo.toml", "Cargo.lock"):
        text = (tree / file).read_text()
        (tree / file).write_text(text.replace('name = "joj-agent"', f'name = "{NAME}"'))
    answer = subprocess.run(
        (
            *("cargo", "build", "--quiet", "--offline", f"--bin={NAME}", "--test=nothing"),
            f"--config=profile.dev.package.{NAME}.debug=false",
        ),
        cwd=tree,
        env={**os.environ, "CARGO_TARGET_DIR": str(target), "CARGO_INCREMENTAL": "0"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert answer.returncode == 0, answer.stderr
    return target / TRIPLE / "debug" / NAME


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the tree with one more workload, and its agent where joj looks for it."""
    tree = tmp_path_factory.mktemp("copy")
    for name in COPIED:
        source = CHECKOUT / name
        if source.is_dir():
            shutil.copytree(source, tree / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, tree / name)
    changed = add(tree)
    guide = (CHECKOUT / "CONTRIBUTING.md").read_text()
    assert all(f"`{name}`" in guide for name in changed), changed
    target = CHECKOUT / os.environ.get("CARGO_TARGET_DIR", "target")
    built = build(tree, target)
    place = tree / "target" / TRIPLE / "release"
    place.mkdir(parents=True)
    shutil.move(built, place / "joj-agent")
    return tree


def run(tree: Path, *arguments: str | Path) -> Ended:
    changes: Mapping[str, str] = {
        "PYTHONPATH": str(tree),
        "CARGO_TARGET_DIR": str(tree / "target"),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    return subprocess.run(
        [sys.executable, "-m", "jojlab", "bench", "file", *map(str, arguments)],
        cwd=tree,
        env={**os.environ, **changes},
        capture_output=True,
        text=True,
        check=False,
    )


def test_an_added_workload_runs(tree: Path, tmp_path: Path) -> None:
    arguments = ("--workload=file-truncate", "--transactions=20", "--threads=2", "--json")
    answer = run(tree, tmp_path, *arguments, "--truncated-bytes=700")
    assert answer.returncode == 0, answer.stderr
    (case,) = json.loads(answer.stdout)["cases"]
    assert case["figures"]["transactions"] == 20
    assert case["case"]["truncated_bytes"] == 700
    other = json.loads(run(tree, tmp_path, *arguments, "--truncated-bytes=0").stdout)
    assert other["cases"][0]["operation_hash"] != case["operation_hash"]
    assert list(tmp_path.iterdir()) == []


def test_an_added_workload_has_its_own_fields_alone(tree: Path, tmp_path: Path) -> None:
    answer = run(tree, tmp_path, "--workload=file-truncate", "--sync-mode=fsync")
    assert answer.returncode == 2
    assert "file-truncate has no field sync_mode" in answer.stderr, answer.stderr


def test_an_added_workload_makes_no_circle(tree: Path) -> None:
    assert not circle(Crate(tree / "agent/src/main.rs").uses())
