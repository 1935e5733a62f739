"""Programs from packages: each with the libraries that it names, and with theirs."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from jojlab.foundation.errors import MachineError
from jojlab.guest.image.build import UnpackedPackages

TRIPLET = "some-linux-gnu"


def build(folder: Path, name: str, *needs: Path, options: tuple[str, ...] = ()) -> Path:
    """A program or a library of C that names others."""
    source = folder / "source.c"
    source.write_text("int main(void) { return 0; }")
    out = folder / name
    command = ["gcc", "-nostdlib", "-Wl,--no-as-needed", "-Wl,-e,main", "-Wl,-soname," + out.name]
    subprocess.run([*command, *options, "-o", str(out), str(source), *map(str, needs)], check=True)
    return out


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A program that names a library which names another, both in another folder than it."""
    root = tmp_path / "root"
    for place in ("sbin", f"lib/{TRIPLET}", f"usr/lib/{TRIPLET}"):
        (root / place).mkdir(parents=True)
    shared = ("-shared", "-fPIC")
    below = build(tmp_path, "libbelow.so.1", options=shared)
    above = build(tmp_path, "libabove.so.2", below, options=shared)
    program = build(tmp_path, "mkfs.some", above, options=("-Wl,--dynamic-linker=/lib/ld-some.so",))
    program.rename(root / "sbin" / program.name)
    above.rename(root / "usr/lib" / TRIPLET / above.name)
    below.rename(root / "lib" / TRIPLET / "libbelow.so.1.0")
    (root / "lib" / TRIPLET / "libbelow.so.1").symlink_to("libbelow.so.1.0")
    (root / "lib/ld-some.so").write_bytes((root / "sbin/mkfs.some").read_bytes())
    return root


def test_libraries_that_a_program_names_come_with_it(tree: Path) -> None:
    files: dict[str, bytes] = {}
    packages = UnpackedPackages(tree, TRIPLET)
    packages.add_needs(packages.program("mkfs.some", "some"), files)
    names = ["/lib/ld-some.so", *(f"/lib/{TRIPLET}/lib{n}" for n in ("above.so.2", "below.so.1"))]
    assert sorted(files) == sorted(names)
    assert files[names[2]] == (tree / "lib" / TRIPLET / "libbelow.so.1.0").read_bytes()


def test_a_library_or_a_program_that_no_package_has_is_named(tree: Path) -> None:
    packages = UnpackedPackages(tree, TRIPLET)
    (tree / "lib" / TRIPLET / "libbelow.so.1").unlink()
    with pytest.raises(MachineError, match=r"no package has libbelow\.so\.1"):
        packages.add_needs(packages.program("mkfs.some", "some"), {})
    with pytest.raises(MachineError, match=r"the package other has no mkfs\.other"):
        packages.program("mkfs.other", "other")
