"""Adds a workload and a system call in a copy of the checkout, by the files that CONTRIBUTING.md
names: of the workload a folder of the agent, two lines beside it, and one file of jojlab; of the
call one row of a table. Builds the agent once, runs the workload live, and records a program that
makes the call.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.command.conftest import CHECKOUT, FinishedRun
from tests.live.recordings import PYTHON, Recording
from tests.system_calls import call_rows
from tests.tidy.rust import Crate
from tests.tidy.test_tidy import circle

ADDED = Path(__file__).with_name("file_truncate")
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

TABLE = "agent/src/system_calls/table.txt"
# Its arguments are a descriptor of inotify(7), a path and a mask: roles that other calls have.
CALL = """\
inotify_add_watch 254 arm64=27 i386=292 arm=317 recorded=Descriptor,Path,Flags
"""
IN_CREATE, IN_MODIFY = 0x100, 0x2
WATCHER = f"""
import ctypes, os
libc = ctypes.CDLL(None)
os.mkdir("watched")
watcher = libc.inotify_init1(os.O_CLOEXEC)
assert libc.inotify_add_watch(watcher, b"watched", {IN_CREATE | IN_MODIFY}) == 1
assert libc.inotify_add_watch(watcher, b"none", {IN_CREATE}) == -1
"""


@dataclass(frozen=True)
class Addition:
    """The copy of the tree, and the files of the checkout that an addition changed in it."""

    tree: Path
    changed_for_workload: set[str]
    changed_for_call: set[str]


def replace(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert text.count(old) == 1, f"{path}: {old!r}"
    path.write_text(text.replace(old, new))


def contents(tree: Path) -> dict[str, bytes]:
    """Return the contents of each file of a tree, by its path there."""
    return {str(it.relative_to(tree)): it.read_bytes() for it in tree.rglob("*") if it.is_file()}


def changed_files(before: dict[str, bytes], after: dict[str, bytes]) -> set[str]:
    """Return the files that were there before, and are not what they were."""
    return {name for name, text in before.items() if after.get(name) != text}


def add_workload(tree: Path) -> None:
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


def add_call(tree: Path) -> None:
    with (tree / TABLE).open("a") as table:
        table.write(CALL)


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
def addition(tmp_path_factory: pytest.TempPathFactory) -> Addition:
    """One more workload and one more call, and the agent that has both where joj looks for it."""
    tree = tmp_path_factory.mktemp("copy")
    for name in COPIED:
        source = CHECKOUT / name
        if source.is_dir():
            shutil.copytree(source, tree / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, tree / name)
    first = contents(tree)
    add_workload(tree)
    second = contents(tree)
    add_call(tree)
    third = contents(tree)
    assert third.keys() == second.keys()  # a call needs no file of its own
    target = CHECKOUT / os.environ.get("CARGO_TARGET_DIR", "target")
    built = build(tree, target)
    place = tree / "target" / TRIPLE / "release"
    place.mkdir(parents=True)
    shutil.move(built, place / "joj-agent")
    return Addition(tree, changed_files(first, second), changed_files(second, third))


def joj(tree: Path, folder: Path, *arguments: str | Path) -> FinishedRun:
    """Run joj of the copy in a folder."""
    changes: Mapping[str, str] = {
        "PYTHONPATH": str(tree),
        "CARGO_TARGET_DIR": str(tree / "target"),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    return subprocess.run(
        [sys.executable, "-m", "jojlab", *map(str, arguments)],
        cwd=folder,
        env={**os.environ, **changes},
        capture_output=True,
        text=True,
        check=False,
    )


def bench(tree: Path, *arguments: str | Path) -> FinishedRun:
    return joj(tree, tree, "bench", "file", *arguments)


def test_an_addition_changes_no_other_file_than_the_guide_names(addition: Addition) -> None:
    assert addition.changed_for_workload == {"agent/src/workload/mod.rs"}
    assert addition.changed_for_call == {TABLE}
    guide = (CHECKOUT / "CONTRIBUTING.md").read_text()
    for name in addition.changed_for_workload | addition.changed_for_call:
        assert f"`{name}`" in guide, name


def test_an_added_workload_runs(addition: Addition, tmp_path: Path) -> None:
    arguments = ("--workload=file-truncate", "--transactions=20", "--threads=2", "--json")
    answer = bench(addition.tree, tmp_path, *arguments, "--truncated-bytes=700")
    assert answer.returncode == 0, answer.stderr
    (case,) = json.loads(answer.stdout)["cases"]
    assert case["figures"]["transactions"] == 20
    assert case["case"]["truncated_bytes"] == 700
    other = json.loads(bench(addition.tree, tmp_path, *arguments, "--truncated-bytes=0").stdout)
    assert other["cases"][0]["operation_hash"] != case["operation_hash"]
    assert list(tmp_path.iterdir()) == []


def test_an_added_workload_has_its_own_fields_alone(addition: Addition, tmp_path: Path) -> None:
    answer = bench(addition.tree, tmp_path, "--workload=file-truncate", "--sync-mode=fsync")
    assert answer.returncode == 2
    assert "file-truncate has no field sync_mode" in answer.stderr, answer.stderr


def test_an_added_workload_makes_no_circle(addition: Addition) -> None:
    assert not circle(Crate(addition.tree / "agent/src/main.rs").uses())


def test_an_added_system_call_is_recorded_with_its_arguments(
    addition: Addition, tmp_path: Path
) -> None:
    assert CALL.split()[0] not in call_rows()  # of the checkout
    arguments = ("record", "--by=ptrace", "--out=recording", "--", *PYTHON, WATCHER)
    answer = joj(addition.tree, tmp_path, *arguments)
    assert answer.returncode == 0, answer.stderr
    recording = Recording(tmp_path / "recording", answer.returncode)
    assert recording.manifest["incomplete"] is False
    (watcher,) = recording.calls("inotify_init1")
    found, failed = recording.calls("inotify_add_watch")
    columns = ("descriptor", "path", "flags", "result", "error")
    own = watcher["result"]
    assert [found[name] for name in columns] == [own, "watched", IN_CREATE | IN_MODIFY, 1, None]
    assert [failed[name] for name in columns] == [own, "none", IN_CREATE, -2, "ENOENT"]
    state = {row["path_id"]: row for row in recording.table("snapshot")}
    assert state[found["path_id"]]["path"] == str(tmp_path / "watched")
    for row in (found, failed):
        filled = {name for name, value in row.items() if value is not None} - {*columns}
        assert filled == {"call_id", "thread_id", "name", "begin_ns", "end_ns", "path_id"}
