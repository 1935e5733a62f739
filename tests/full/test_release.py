"""A release is the same to the byte wherever it is packed: twice from one commit and one build of
the agents, in folders of other names, in another time zone and with another umask. The cure and the
uploader are built twice too; each agent takes too long for that.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import tarfile
from pathlib import Path

from tests.command.conftest import CHECKOUT

TARGET = Path(os.environ.get("CARGO_TARGET_DIR") or CHECKOUT / "target")
UPLOADER = Path("x86_64-unknown-linux-gnu", "release", "joj-uploader")
# As `make release` does, but for what cargo builds.
STEPS = """
umask {umask}
make -s -C vfs
make -s -C vfs CC=aarch64-linux-gnu-gcc BUILD=build/arm64
.venv/bin/python setup/linked.py
.venv/bin/hatchling build -t wheel
.venv/bin/sphinx-build -q -b man -d target/docs docs target/man
setup/deb.sh
setup/collector-deb.sh
setup/release.sh
"""


def pack_release(clone: Path, umask: str, **environment: str) -> Path:
    """Return the folder of a release that is packed in a new clone of this checkout's commit."""
    subprocess.run(["git", "clone", "-q", CHECKOUT, clone], check=True)
    (clone / ".venv").symlink_to(CHECKOUT / ".venv")
    (clone / "target").mkdir()
    (clone / "target" / "arm64").symlink_to(TARGET / "arm64")
    stamp = ("git", "log", "-1", "--format=%ct")
    seconds = subprocess.run(stamp, cwd=clone, check=True, capture_output=True, text=True).stdout
    words = {"CARGO_TARGET_DIR": str(TARGET), "SOURCE_DATE_EPOCH": seconds.strip()}
    own = {**os.environ, **words, **environment, "PYTHONPATH": str(clone)}
    command = ["sh", "-eu", "-c", STEPS.format(umask=umask)]
    ended = subprocess.run(command, cwd=clone, env=own, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return clone / "dist"


def build_uploader(clone: Path) -> bytes:
    """Return the uploader that a clone builds in a folder of its own; its agent is left out."""
    own = {name: value for name, value in os.environ.items() if name != "CARGO_TARGET_DIR"}
    subprocess.run(["make", "-s", "-o", "agent", "collector"], cwd=clone, env=own, check=True)
    return (clone / "target" / UPLOADER).read_bytes()


def test_two_releases_of_one_commit_are_equal(tmp_path: Path) -> None:
    first = pack_release(tmp_path / "a" / "jojlab", "022", TZ="UTC")
    second = pack_release(tmp_path / "of-another-name" / "deeper" / "copy", "077", TZ="Asia/Tokyo")
    sums = (first / "SHA256SUMS").read_text()
    assert sums == (second / "SHA256SUMS").read_text()
    by_name = {name: digest for digest, name in (line.split("  ") for line in sums.splitlines())}
    assert sorted(by_name) == sorted({path.name for path in first.iterdir()} - {"SHA256SUMS"})
    for name, digest in by_name.items():
        assert hashlib.sha256((first / name).read_bytes()).hexdigest() == digest
    assert build_uploader(second.parent) == (TARGET / UPLOADER).read_bytes()
    [tar] = first.glob("joj-agent-*-x86_64.tar.gz")
    with tarfile.open(tar) as archive:
        archive.extractall(tmp_path / "device", filter="data")
    [agent] = (tmp_path / "device").glob("*/joj-agent")
    assert subprocess.run([agent, "--version"], check=True, capture_output=True).stdout
    [sbom] = first.glob("*.cdx.json")
    purls = {part["purl"].partition("@")[0] for part in json.loads(sbom.read_text())["components"]}
    assert {"pkg:generic/sqlite", "pkg:deb/debian/libelf-dev", "pkg:pypi/duckdb"} <= purls
