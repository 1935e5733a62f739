"""The build that lints the agent: what clippy warns of ends it, of programs and of tests."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from pathlib import Path

import pytest

from tests.tidy.test_tidy import ROOT

CRATE = '[package]\nname = "planted"\nversion = "0.1.0"\nedition = "2024"\n[workspace]\n'
EMPTY = "fn main() {}\n"
IN_PROGRAM = (
    "fn main() {\n    let all = std::env::args().count() == 0;\n    assert!(all == true);\n}\n"
)
IN_TEST = (
    f"{EMPTY}#[test]\nfn planted() {{\n    assert!((std::env::args().len() == 0) == true);\n}}\n"
)
UNUSED = f"{EMPTY}fn unused() {{}}\n#[test]\nfn uses() {{\n    unused();\n}}\n"


def build(folder: Path, source: str, command: str) -> subprocess.CompletedProcess[str]:
    """Run a command of cargo with the Makefile's settings on a crate of one file."""
    (folder / "src").mkdir()
    (folder / "Cargo.toml").write_text(CRATE)
    (folder / "src" / "main.rs").write_text(source)
    [settings] = re.findall(r"^LINTED := (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    changes = dict(word.split("=", 1) for word in shlex.split(settings))
    return subprocess.run(
        ["cargo", *shlex.split(command), "--offline"],
        cwd=folder,
        env={**os.environ, **changes, "CARGO_TARGET_DIR": str(folder / "target")},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    ("source", "command", "said"),
    [
        (IN_PROGRAM, "build --all-targets", "bool_comparison"),
        (IN_TEST, "build --all-targets", "bool_comparison"),
        (UNUSED, "build --all-targets", "dead-code"),
    ],
)
def test_a_fault_ends_the_build(tmp_path: Path, source: str, command: str, said: str) -> None:
    answer = build(tmp_path, source, command)
    assert answer.returncode != 0
    assert said.replace("-", "_") in answer.stderr.replace("-", "_")


def test_a_crate_without_fault_is_built(tmp_path: Path) -> None:
    answer = build(tmp_path, EMPTY, "build --all-targets")
    assert answer.returncode == 0, answer.stderr


def test_the_makefile_builds_all_targets_so() -> None:
    text = (ROOT / "Makefile").read_text()
    [rule] = re.findall(r"^lint-agent:.*\n((?:\t.*\n)+)", text, re.MULTILINE)
    assert "$(LINTED) cargo build --quiet --workspace --all-targets\n" in rule
