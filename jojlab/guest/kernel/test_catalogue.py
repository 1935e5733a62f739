"""The kernels of kernels/, and what is done with their packages; nothing is downloaded."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from jojlab.foundation.errors import MachineError, UseError
from jojlab.foundation.places import KERNELS
from jojlab.guest.kernel import archive
from jojlab.guest.kernel.catalogue import ArchiveKernel, read_named, run_by_own_libraries
from jojlab.guest.kernel.choose import check_kernel
from jojlab.guest.kernel.installed import newest_release


def package(folder: Path, name: str, files: dict[str, str]) -> None:
    """Make a Debian package of files by their paths."""
    tree = folder / f"{name}.tree"
    told = f"Package: {name}\nVersion: 1\nArchitecture: all\nMaintainer: x <x@y>\nDescription: x\n"
    for path, content in {"DEBIAN/control": told, **files}.items():
        (tree / path).parent.mkdir(parents=True, exist_ok=True)
        (tree / path).write_text(content)
    command = ["dpkg-deb", "-b", str(tree), str(folder / f"{name}_1_all.deb")]
    subprocess.run(command, check=True, capture_output=True)


def test_every_kernel_that_comes_along_can_be_read_and_found() -> None:
    names = [path.stem for path in KERNELS.glob("*.toml")]
    assert {"5.10", "6.1", "6.12"} <= set(names)
    for name in names:
        asked = read_named(name)
        assert asked.title
        assert asked.release.endswith("-amd64")
        check_kernel(name)
    check_kernel("installed")


def test_an_unknown_kernel_is_told_with_the_nearest() -> None:
    with pytest.raises(UseError, match=r"no kernel '6\.13'.*6\.1"):
        check_kernel("6.13")


def test_the_newest_of_a_pattern_goes_by_numbers() -> None:
    found = ["6.12.9+deb12-amd64", "6.12.95+deb12-amd64", "6.12.96+deb12-cloud-amd64"]
    assert newest_release(found) == "6.12.95+deb12-amd64"
    assert newest_release(found[2:]) is None


def test_headers_name_the_folder_that_they_are_unpacked_into(tmp_path: Path) -> None:
    (tmp_path / "packages" / "headers").mkdir(parents=True)
    package(
        tmp_path / "packages" / "headers",
        "linux-headers-1-amd64",
        {
            "usr/src/linux-headers-1-amd64/Makefile": (
                "KBUILD_OUTPUT=/usr/src/linux-headers-1-amd64\n"
                "include /usr/src/linux-headers-1-common/Makefile\n"
            )
        },
    )
    kernel = ArchiveKernel("1-amd64", "1", tmp_path / "packages", "bookworm")
    headers = kernel.headers(tmp_path / "out")
    assert (headers / "Makefile").read_text() == (
        f"KBUILD_OUTPUT={tmp_path}/out/usr/src/linux-headers-1-amd64\n"
        f"include {tmp_path}/out/usr/src/linux-headers-1-common/Makefile\n"
    )


def test_a_program_runs_by_the_libraries_beside_it(tmp_path: Path) -> None:
    """Its own name stays, as programs of kbuild start others by it."""
    loader = Path("/lib64/ld-linux-x86-64.so.2")
    library = Path("/lib/x86_64-linux-gnu/libc.so.6")
    (tmp_path / "libraries").mkdir()
    (tmp_path / "programs").mkdir()
    for each in (loader, library):
        (tmp_path / "libraries" / each.name).write_bytes(each.read_bytes())
        (tmp_path / "libraries" / each.name).chmod(0o755)
    program = tmp_path / "programs" / "shell"
    program.write_bytes(Path("/bin/sh").read_bytes())
    program.chmod(0o755)
    (tmp_path / "programs" / "script").write_text("#!/bin/sh\n")
    run_by_own_libraries(tmp_path / "programs", tmp_path / "libraries")
    tell = 'echo "$0"; cat /proc/$$/maps'
    told = subprocess.run(
        [program, "-c", tell], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    assert told[0] == str(program)
    assert any(line.endswith(f" {tmp_path}/libraries/libc.so.6") for line in told)
    assert (tmp_path / "programs" / "script").read_text() == "#!/bin/sh\n"


def test_libraries_without_a_loader_are_refused(tmp_path: Path) -> None:
    with pytest.raises(MachineError, match=r"ld-linux-x86-64\.so\.2"):
        run_by_own_libraries(tmp_path, tmp_path)


def test_a_machine_without_debians_archive_is_told_what_it_can_have(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "apt-get").write_text("#!/bin/sh\n")
    (tmp_path / "apt-get").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MachineError, match="kernel=installed"):
        archive.suite_sources("bookworm")
