"""joj device measure on a block device of the kernel's: a loop device over a file."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.this_process import joj

_BYTES = 8 << 20


def losetup(*arguments: str) -> str:
    if os.geteuid() != 0:
        pytest.skip("needs root")
    done = subprocess.run(["losetup", *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.fixture
def image(tmp_path: Path) -> Path:
    path = tmp_path / "image"
    path.write_bytes(os.urandom(_BYTES))
    return path


@pytest.fixture(params=["writable", "read-only"])
def loop(request: pytest.FixtureRequest, image: Path) -> Iterator[tuple[Path, bool]]:
    """A loop device over `image`, and whether it is read-only."""
    read_only = request.param == "read-only"
    device = losetup(*["--read-only"] * read_only, "--find", "--show", str(image))
    yield Path(device), read_only
    losetup("--detach", device)


def measure(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return joj("device", "measure", *arguments, "--seconds", "0.05")


def test_reading_tells_three_figures_and_changes_nothing(
    loop: tuple[Path, bool], image: Path
) -> None:
    device, _ = loop
    before = image.read_bytes()
    answer = measure(device, "--json")
    assert answer.returncode in (0, 4), answer.stderr  # 4: faster than the model can be
    told = json.loads(answer.stdout)
    assert told["size_bytes"] == _BYTES
    assert len(told["measured"]) == 3
    assert min(told["measured"].values()) > 0
    assert "flush_dirty_ns" in told["not_measured"]
    assert image.read_bytes() == before


def test_writes_are_measured_and_make_a_profile_or_are_refused(
    loop: tuple[Path, bool], image: Path, tmp_path: Path
) -> None:
    device, read_only = loop
    before = image.read_bytes()
    profile = tmp_path / "looped.toml"
    answer = measure(device, "--destroy-data", "--like", "nvme-consumer", "--out", profile)
    if read_only:
        assert answer.returncode == 2, answer.stderr
        assert "is read-only" in answer.stderr
        assert image.read_bytes() == before
        assert not profile.exists()
        return
    assert answer.returncode in (0, 4), answer.stderr
    assert image.read_bytes() != before
    assert f"measured of {device}" in profile.read_text()


@pytest.mark.parametrize("loop", ["writable"], indirect=True)
def test_a_mounted_device_is_not_written_to(loop: tuple[Path, bool], tmp_path: Path) -> None:
    device, _ = loop
    subprocess.run(["mkfs.ext4", "-q", device], check=True)
    place = tmp_path / "mounted"
    place.mkdir()
    subprocess.run(["mount", device, place], check=True)
    try:
        answer = measure(device, "--destroy-data")
    finally:
        subprocess.run(["umount", place], check=True)
    assert answer.returncode == 3, answer.stderr
    assert "unmount it" in answer.stderr
