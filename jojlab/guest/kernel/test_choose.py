"""A kernel of one's own: what it is made of, and what is said of a folder that is none."""

from __future__ import annotations

from pathlib import Path

import pytest

from jojlab.foundation.errors import MachineError, UseError
from jojlab.guest.kernel.choose import BuiltKernel, built_kernel, check_kernel

OPTIONS = ("PVH", "BLK_DEV_INITRD", "MODULES", "HIGH_RES_TIMERS", "BPF_SYSCALL", "BPF_EVENTS",
           "DEBUG_INFO_BTF")  # fmt: skip


@pytest.fixture
def build(tmp_path: Path) -> Path:
    """A folder like that of a build of Linux 6.3 or later."""
    files = {
        "arch/x86/boot/bzImage": "image",
        ".config": "".join(f"CONFIG_{option}=y\n" for option in OPTIONS),
        "Makefile": "",
        "Module.symvers": "",
        "include/generated/utsrelease.h": '#define UTS_RELEASE "6.9.1-mine"\n',
        "modules.order": "fs/ext4/ext4.o\nfs/xfs/xfs.ko\n",
        "modules.builtin": "kernel/fs/jbd2/jbd2.ko\n",
        "fs/ext4/ext4.ko": "ext4",
        "fs/xfs/xfs.ko": "xfs",
    }
    for name, content in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(content)
    return tmp_path


def test_a_build_is_laid_out_as_on_the_root_of_a_system(build: Path, tmp_path: Path) -> None:
    kernel = built_kernel(str(build))
    assert kernel.release == "6.9.1-mine"
    assert kernel.headers(tmp_path) == build
    out = tmp_path / "out"
    out.mkdir()
    kernel.unpack(out)
    assert (out / "boot/vmlinuz-6.9.1-mine").read_text() == "image"
    modules = out / "lib/modules/6.9.1-mine"
    assert (modules / "kernel/fs/ext4/ext4.ko").read_text() == "ext4"
    assert (modules / "modules.builtin").is_file()


def test_its_version_is_what_was_built(build: Path) -> None:
    before = BuiltKernel(build).version
    assert BuiltKernel(build).version == before
    (build / "fs/ext4/ext4.ko").write_text("another")
    assert BuiltKernel(build).version != before


@pytest.mark.parametrize("missing", ["Module.symvers", "arch/x86/boot/bzImage"])
def test_a_folder_without_a_build_is_told_by_what_is_missing(build: Path, missing: str) -> None:
    check_kernel(str(build))
    (build / missing).unlink()
    with pytest.raises(UseError, match=missing):
        check_kernel(str(build))


def test_a_kernel_that_cannot_be_traced_is_told_by_the_option(build: Path) -> None:
    config = build / ".config"
    config.write_text(config.read_text().replace("CONFIG_PVH=y\n", "# CONFIG_PVH is not set\n"))
    with pytest.raises(UseError, match="CONFIG_PVH=y") as caught:
        built_kernel(str(build))
    assert "-e PVH" in caught.value.remedy


def test_a_module_that_was_not_built_is_named(build: Path) -> None:
    (build / "fs/xfs/xfs.ko").unlink()
    with pytest.raises(MachineError, match=r"no fs/xfs/xfs\.ko"):
        _ = BuiltKernel(build).files


def test_a_path_that_is_no_folder(tmp_path: Path) -> None:
    with pytest.raises(UseError, match="no such folder"):
        check_kernel(str(tmp_path / "nowhere"))
