"""The semantic patch of kernel/ubi: what it changes in a source like the kernel's, and what it
refuses.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from jojlab.foundation.errors import MachineError
from jojlab.foundation.places import KERNEL
from jojlab.guest.image.chosen_buffers import FOLDER, patch

SOURCE = """\
int attach(struct ubi_device *ubi)
{
	ubi->peb_buf = vmalloc(ubi->peb_size);
	if (!ubi->peb_buf)
		goto out;
	ubi->vtbl = vmalloc(ubi->vtbl_size);
	return 0;
out:
	vfree(ubi->vtbl);
	vfree(ubi->peb_buf);
	return -ENOMEM;
}
"""


@pytest.fixture
def module(tmp_path: Path) -> Path:
    folder = tmp_path / "ubi"
    folder.mkdir()
    (folder / "build.c").write_text(SOURCE)
    (folder / "Makefile").write_text("obj-m += ubi.o\n")
    return folder


def test_buffers_and_nothing_else_are_allocated_by_the_parameter(module: Path) -> None:
    patch(module, KERNEL / FOLDER, ("peb_buf",))
    expected = SOURCE.replace("peb_buf = vmalloc(", "peb_buf = chosen_buffer(peb_buf, ")
    expected = expected.replace("vfree(ubi->peb_buf)", "release_buffer(ubi->peb_buf)")
    assert (module / "build.c").read_text() == expected
    assert "ubi-y += chosen_buffers.o" in (module / "Makefile").read_text()
    assert (module / "chosen_buffers.c").is_file()


def test_a_kernel_with_other_buffers_is_refused(module: Path) -> None:
    with pytest.raises(MachineError, match=r"peb_buf, not peb_buf1, peb_buf2"):
        patch(module, KERNEL / FOLDER, ("peb_buf1", "peb_buf2"))


def test_a_folder_without_the_patch_is_refused(module: Path) -> None:
    shutil.rmtree(module)
    module.mkdir()
    with pytest.raises(MachineError, match="none, not peb_buf"):
        patch(module, KERNEL / FOLDER, ("peb_buf",))
