"""The archive against the cpio program, and its bytes against a second build."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from pathlib import Path

import pytest

from jojlab.guest.image.initramfs import Initramfs

needs_cpio = pytest.mark.skipif(shutil.which("cpio") is None, reason="cpio is not installed")


def sample(order: int = 1) -> Initramfs:
    tree = Initramfs()
    files = [("init", b"\x7fELF", True), ("modules/b.ko", b"12345", False), ("etc/x", b"", False)]
    for path, content, executable in files[::order]:
        tree.add_file(path, content, executable=executable)
    tree.add_folder("/proc")
    return tree


@needs_cpio
def test_cpio_lists_folders_before_their_files(tmp_path: Path) -> None:
    listing = subprocess.run(
        ["cpio", "-t", "--quiet"], input=sample().archive(), capture_output=True, check=True
    )
    assert listing.stdout.decode().split() == [
        "etc", "etc/x", "init", "modules", "modules/b.ko", "proc",
    ]  # fmt: skip
    assert listing.stderr == b""


@needs_cpio
def test_cpio_unpacks_what_was_added(tmp_path: Path) -> None:
    subprocess.run(
        ["cpio", "-i", "-m", "--quiet", "--no-absolute-filenames"],
        input=sample().archive(), cwd=tmp_path, check=True,
    )  # fmt: skip
    assert (tmp_path / "modules/b.ko").read_bytes() == b"12345"
    assert (tmp_path / "init").stat().st_mode & 0o7777 == 0o755
    assert (tmp_path / "etc/x").stat().st_mode & 0o7777 == 0o644
    assert (tmp_path / "etc/x").stat().st_mtime == 0
    assert (tmp_path / "proc").is_dir()


def test_the_bytes_depend_on_contents_only() -> None:
    assert sample().archive() == sample(-1).archive()
    # Changing the format changes every fingerprint: on purpose only.
    assert hashlib.sha256(sample().archive()).hexdigest() == (
        "51ab548ceae741d1da8866b0331094b6476216fe7335453232e148d3f65671f7"
    )


def test_two_contents_for_one_path_are_refused() -> None:
    tree = sample()
    tree.add_file("etc/x", b"")
    with pytest.raises(ValueError, match="etc/x"):
        tree.add_file("etc/x", b"other")
    with pytest.raises(ValueError, match="etc/x"):
        tree.add_folder("etc/x")


def test_a_path_that_leaves_the_archive_is_refused() -> None:
    with pytest.raises(ValueError, match="leaves"):
        Initramfs().add_file("a/../../b", b"")
