"""A machine that lacks something: exit code 3, what is missing, and the line that helps."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from jojlab.foundation.cache import Cache
from tests.command.conftest import SMALL, Lab

QEMU = "qemu-system-x86_64"


@pytest.fixture
def without_qemu(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A PATH with every program of this machine's but QEMU."""
    folder = tmp_path_factory.mktemp("bin")
    for place in os.environ["PATH"].split(os.pathsep):
        for program in Path(place).glob("*"):
            if program.name != QEMU and not (folder / program.name).is_symlink():
                (folder / program.name).symlink_to(program.absolute())
    return str(folder)


def test_a_missing_tool_is_named_with_its_package(lab: Lab, without_qemu: str) -> None:
    for arguments in (["run", "first-look", *SMALL], ["bill"]):
        answer = lab.joj(*arguments, PATH=without_qemu)
        assert answer.returncode == 3
        assert f"{QEMU} is not installed" in answer.stderr
        assert "apt-get install qemu-system-x86" in answer.stderr
        assert list(lab.folder.iterdir()) == []


def on_a_full_disk(folder: Path, size: str) -> tuple[str, ...]:
    """The command that runs another with a disk of `size` mounted on `folder`, for it alone.

    Where nothing can be mounted, files cannot grow beyond 4 KiB instead.
    """
    own = () if os.geteuid() == 0 else ("--map-root-user",)
    script = f'mount -t tmpfs -o size={size} tmpfs "$0" && exec "$@"'
    mounted = ("unshare", "--mount", *own, "sh", "-c", script, str(folder))
    if subprocess.run([*mounted, "true"], capture_output=True, check=False).returncode == 0:
        return mounted
    return ("prlimit", "--fsize=4096")


@pytest.mark.full
def test_no_space_for_the_run_is_told(lab: Lab, finished_run: Path) -> None:
    place = lab.folder / "full"
    place.mkdir()
    out = place / "run"
    answer = lab.joj("run", "first-look", *SMALL, "--out", out, before=on_a_full_disk(place, "32k"))
    assert answer.returncode == 3
    assert str(out) in answer.stderr
    assert "No space left" in answer.stderr or "too large" in answer.stderr
    assert "make room, or name another --out" in answer.stderr


def test_no_space_for_the_cache_is_told(lab: Lab) -> None:
    place = lab.folder / "cache"
    place.mkdir()
    # The kernel is linked once the disk is mounted.
    link = ("sh", "-c", 'ln -s "$0/packages" "$0/kernels" "$JOJ_CACHE" && exec "$@"')
    before = (*on_a_full_disk(place, "2m"), *link, str(Cache.default().root))
    answer = lab.joj("bill", before=before, JOJ_CACHE=str(place))
    assert answer.returncode == 3
    assert "disk" in answer.stderr
    assert "full" in answer.stderr
    assert "JOJ_CACHE=DIR moves the cache" in answer.stderr


def test_output_that_cannot_be_written_is_told(lab: Lab, finished_run: Path) -> None:
    answer = lab.joj("show", finished_run, before=("sh", "-c", 'exec "$0" "$@" >/dev/full'))
    assert answer.returncode == 3
    assert answer.stderr.splitlines() == ["joj: [Errno 28] No space left on device"]


def test_doctor_is_content(lab: Lab) -> None:
    answer = lab.joj_here("doctor", "--json")
    document = json.loads(answer.stdout)
    names = [check["name"] for check in document["checks"]]
    expected = ["packages", "rust", "qemu", "agent", "arm64", "image", "cache", "disk", "memory"]
    assert names == expected
    missing = [check for check in document["checks"] if not check["ok"]]
    assert answer.returncode == (3 if missing else 0)
    assert document["ok"] is not bool(missing)
    assert {"qemu", "agent", "image", "cache"}.isdisjoint(check["name"] for check in missing)


def test_doctor_names_all_that_is_missing(lab: Lab, without_qemu: str) -> None:
    answer = lab.joj("doctor", PATH=without_qemu, CARGO_TARGET_DIR=str(lab.folder))
    assert answer.returncode == 3
    lines = answer.stdout.splitlines()
    missing = {line.split()[1] for line in lines if line.startswith("MISSING")}
    assert {"qemu", "agent", "image"} <= missing
    assert sum("remedy:" in line for line in lines) >= len(missing)
    assert any("apt-get install qemu-system-x86" in line for line in lines)
    assert any("make setup" in line for line in lines)


def test_doctor_survives_a_cache_that_cannot_be(lab: Lab) -> None:
    (lab.folder / "file").write_text("")
    answer = lab.joj("doctor", "--json", JOJ_CACHE=str(lab.folder / "file" / "cache"))
    assert answer.returncode == 3
    checks = {check["name"]: check["ok"] for check in json.loads(answer.stdout)["checks"]}
    assert not checks["image"]
    assert not checks["disk"]
    assert checks["agent"]
    assert "memory" in checks


def test_cache_tells_its_sizes_and_empties_what_is_its_own(lab: Lab, tmp_path: Path) -> None:
    own, theirs = tmp_path / "own", tmp_path / "theirs"
    (own / "results" / "some").mkdir(parents=True)
    (own / "results" / "some" / "index.json").write_text("{}" * 5000)
    (theirs / "kept").mkdir(parents=True)
    (own / "packages").symlink_to(theirs)
    sizes = json.loads(lab.joj("cache", "--json", JOJ_CACHE=str(own)).stdout)
    assert sizes["folder"] == str(own)
    assert sizes["bytes"]["results"] >= 10_000
    answer = lab.joj("cache", "--empty", JOJ_CACHE=str(own))
    assert answer.returncode == 0, answer.stderr
    assert not list((own / "results").iterdir())
    assert (theirs / "kept").is_dir()
    assert not (own / "packages").exists()
    assert lab.joj("cache", JOJ_CACHE=str(own)).stdout.split()[-2:] == ["0.0", "MB"]
