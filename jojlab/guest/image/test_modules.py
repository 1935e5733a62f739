"""Module order, on a made-up modules.dep and on the one of a real kernel where there is one."""

from __future__ import annotations

import lzma
import subprocess
from pathlib import Path

import pyarrow
import pytest

from jojlab.foundation.cache import Cache
from jojlab.foundation.errors import MachineError
from jojlab.guest.image.modules import collect, flash_module, load_order
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


def test_modules_are_unpacked_and_stripped(tmp_path: Path) -> None:
    source = tmp_path / "a.c"
    source.write_text("int joj_planted;\n")
    subprocess.run(["cc", "-g", "-c", "-o", str(tmp_path / "a.ko"), str(source)], check=True)
    module = (tmp_path / "a.ko").read_bytes()
    packed = {
        "plain.ko": module,
        "xz.ko.xz": lzma.compress(module),
        "zstd.ko.zst": pyarrow.compress(module, codec="zstd", asbytes=True),
    }
    folder = tmp_path / "tree" / "lib" / "modules" / "1"
    folder.mkdir(parents=True)
    for name, contents in packed.items():
        (folder / name).write_bytes(contents)
    (folder / "modules.dep").write_text("".join(f"{name}:\n" for name in packed))
    out = tmp_path / "out"
    out.mkdir()
    kernel = InstalledKernel("1", "1", tmp_path, [])
    collect(tmp_path / "tree", kernel, out, ("plain", "xz", "zstd"))
    plain, *others = [(out / f"{name}.ko").read_bytes() for name in ("plain", "xz", "zstd")]
    assert b"joj_planted" in plain
    assert len(plain) < len(module)
    assert others == [plain, plain]
    assert (out / "order").read_text() == "plain.ko\nxz.ko\nzstd.ko\n"
    (folder / "plain.ko.gz").write_bytes(b"")
    (folder / "modules.dep").write_text("plain.ko.gz:\n")
    with pytest.raises(MachineError, match=r"plain\.ko\.gz is packed in an unknown way"):
        collect(tmp_path / "tree", kernel, out, ("plain",))


def test_a_missing_flash_source_is_named(tmp_path: Path) -> None:
    kernel = InstalledKernel("6.1.0-0-amd64", "6.1", tmp_path, [tmp_path])
    with pytest.raises(MachineError, match="flash device"):
        flash_module(Cache(tmp_path / "cache"), kernel, tmp_path / "nowhere")
