"""A fresh machine of another release (setup/host.sh), with a clean clone of HEAD: `make run` and
`make test` pass, a run repeats to the byte, the tracer is right about what its mkfs makes, and
`joj diff` with a run of this machine names the parts that moved a figure. And fresh ones with the
wheel alone, without Rust: from nothing to first-look's answer.

Some two hours of two cores, 6 GB of disk, and the network.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from jojlab.model.filesystems import FILESYSTEMS
from tests.command.conftest import CHECKOUT, Lab

JOJ = ".venv/bin/joj"
# What docs/install.md tells of the wheel, as root of a machine with nothing installed. host.sh
# lends its toolchain of Rust, which is not in this PATH.
WITH_THE_WHEEL = """
export DEBIAN_FRONTEND=noninteractive PATH=/root/.local/bin:/usr/sbin:/usr/bin:/sbin:/bin
if command -v cargo gcc; then exit 9; fi
apt-get -q update
apt-get -q install -y --no-install-recommends pipx
cd /root
pipx install ./jojlab-*.whl
sh -c "$(joj doctor --install-line)"
joj run first-look
"""
SMALL = ("run", "first-look", "--set=seeds=1", "--set=transactions=50")


def _why_not() -> str:
    if os.geteuid() != 0:
        return "a chroot needs root"
    return "" if shutil.which("debootstrap") else "debootstrap is not installed"


pytestmark = [pytest.mark.host, pytest.mark.skipif(bool(_why_not()), reason=_why_not())]


@dataclass(frozen=True)
class Host:
    """A chroot, and the clone in it."""

    suite: str
    root: Path

    @property
    def clone(self) -> Path:
        return self.root / "root" / "jojlab"

    def run(self, *command: str) -> str:
        """Run a command in the clone, which has to succeed; return what it prints."""
        script = [str(CHECKOUT / "setup" / "host.sh"), self.suite, str(self.root), *command]
        ended = subprocess.run(script, capture_output=True, text=True, check=False)
        assert ended.returncode == 0, f"{ended.stdout[-4000:]}\n{ended.stderr[-4000:]}"
        return ended.stdout


@pytest.fixture(scope="module", params=["trixie"])
def host(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Host]:
    root = tmp_path_factory.mktemp("host") / request.param
    made = Host(request.param, root)
    try:
        made.run("make", "run")
        yield made
    finally:
        subprocess.run(["rm", "-rf", "--one-file-system", str(root)], check=True)


def test_nothing_is_missing_after_make_run(host: Host) -> None:
    assert host.run(JOJ, "doctor", "--install-line") == ""
    checks = json.loads(host.run(JOJ, "doctor", "--json"))["checks"]
    assert {each["name"]: each["detail"] for each in checks if not each["ok"]} == {}


def test_a_run_repeats_to_the_byte_and_is_compared_with_this_machine(host: Host, lab: Lab) -> None:
    hashes = set()
    for out in ("runs/first", "runs/second"):
        host.run(JOJ, *SMALL, "--no-cache", f"--out={out}")
        hashes.add(host.run(JOJ, "show", out, "--hash"))
    assert len(hashes) == 1
    here = lab.joj(*SMALL, "--out=here")
    assert here.returncode == 0, here.stderr
    there = host.clone / "runs" / "first"
    said = json.loads(lab.joj("diff", "here", there, "--json").stdout)
    assert said["incomplete"] == {"old": {}, "new": {}}
    assert said["only_old"] == said["only_new"] == []
    assert {"kernel_package_version", "qemu_version"} <= said["fingerprint"].keys()
    for change in said["changes"]:
        [step] = change["steps"]
        assert {"kernel", "QEMU"} <= set(step["parts"])


@pytest.mark.parametrize("filesystem", FILESYSTEMS)
def test_no_byte_is_of_the_wrong_file(host: Host, filesystem: str) -> None:
    host.run(JOJ, "verify", "attribution", "--filesystem", filesystem)


def test_every_test_passes_on_a_fresh_host(host: Host) -> None:
    host.run("make", "test")


@pytest.mark.parametrize("suite", ["bookworm", "trixie"])
def test_the_wheel_alone_gives_the_answer_of_first_look(suite: str, tmp_path: Path) -> None:
    subprocess.run(["make", "-s", "wheel"], cwd=CHECKOUT, check=True)
    [wheel] = (CHECKOUT / "dist").glob("jojlab-*.whl")
    bare = Host(suite, tmp_path / suite)
    try:
        bare.run("true")
        shutil.copy(wheel, bare.root / "root")
        answer = bare.run("sh", "-eu", "-c", WITH_THE_WHEEL)
        assert "One COMMIT takes" in answer
        assert "16 cases" in answer
        assert (bare.root / "root/runs/first-look/report.html").is_file()
    finally:
        subprocess.run(["rm", "-rf", "--one-file-system", str(bare.root)], check=True)
