"""Module order, on a made-up modules.dep and on the one of a real kernel where there is one."""

from __future__ import annotations

from pathlib import Path

import pytest

from jojlab.foundation.cache import Cache
from jojlab.foundation.errors import MachineError
from jojlab.guest.image.modules import flash_module, load_order
from jojlab.guest.kernel.installed import InstalledKernel

# As depmod(8) writes it: what must come first stands last.
MODULES_DEP = """\
kernel/fs/top.ko: kernel/lib/middle.ko kernel/lib/base-one.ko
kernel/lib/middle.ko: kernel/lib/base-one.ko
kernel/lib/base-one.ko:
kernel/fs/alone.ko:
"""


def test_dependencies_come_first_and_once() -> None:
    assert load_order(MODULES_DEP, ("alone", "top", "base_one")) == [
        "kernel/fs/alone.ko",
        "kernel/lib/base-one.ko",
        "kernel/lib/middle.ko",
        "kernel/fs/top.ko",
    ]


def test_an_unknown_module_is_named() -> None:
    with pytest.raises(MachineError, match="zfs"):
        load_order(MODULES_DEP, ("zfs",))


def test_modules_may_be_packed_or_built_in_and_checksums_missing() -> None:
    packed = "kernel/fs/top.ko.xz: kernel/lib/base-one.ko.xz\nkernel/lib/base-one.ko.xz:\n"
    roots = ("crc32c_generic", "top", "within")
    assert load_order(packed, roots, "kernel/fs/with-in.ko\nkernel/fs/within.ko\n") == [
        "kernel/lib/base-one.ko.xz",
        "kernel/fs/top.ko.xz",
    ]
    with pytest.raises(MachineError, match="within"):
        load_order(packed, roots)


def test_a_missing_flash_source_is_named(tmp_path: Path) -> None:
    kernel = InstalledKernel("6.1.0-0-amd64", "6.1", tmp_path, [tmp_path])
    with pytest.raises(MachineError, match="flash device"):
        flash_module(Cache(tmp_path / "cache"), kernel, tmp_path / "nowhere")
