"""Parts of a kernel's source: those asked for and nothing else, and no more is read than that."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import pytest

from jojlab.foundation.errors import MachineError
from jojlab.guest.image.chosen_buffers import unpack_parts
from jojlab.guest.kernel.kernel import source_package


def archive(folder: Path, names: list[str]) -> Path:
    path = folder / "linux.tar.xz"
    with tarfile.open(path, "w:xz") as tar:
        for name in names:
            member = tarfile.TarInfo(name)
            member.size = len(name)
            tar.addfile(member, io.BytesIO(name.encode()))
    return path


def test_parts_are_unpacked_under_their_paths(tmp_path: Path) -> None:
    names = ["l/drivers/a/x.c", "l/drivers/ab/x.c", "l/fs/b/deep/y.c", "l/fs/c/z.c"]
    unpack_parts(archive(tmp_path, names), ["drivers/a", "fs/b"], tmp_path / "out")
    found = sorted(path for path in (tmp_path / "out").rglob("*") if path.is_file())
    assert [str(path.relative_to(tmp_path / "out")) for path in found] == [
        "drivers/a/x.c",
        "fs/b/deep/y.c",
    ]
    assert found[1].read_text() == "l/fs/b/deep/y.c"


def test_missing_folders_of_a_kernel_source_are_named_and_none_leaves_its_own(
    tmp_path: Path,
) -> None:
    names = ["l/drivers/a/../../../outside.c", "l/drivers/a/x.c"]
    with pytest.raises(MachineError, match="no fs/b"):
        unpack_parts(archive(tmp_path, names), ["drivers/a", "fs/b"], tmp_path / "out")
    assert not list(tmp_path.parent.glob("outside.c"))
    assert not (tmp_path / "outside.c").exists()


def test_the_package_is_that_of_the_release() -> None:
    assert source_package("6.1.0-56-amd64") == "linux-source-6.1"
