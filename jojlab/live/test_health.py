"""Each check, on a machine that lacks what it checks for."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from jojlab.foundation.cache import Cache
from jojlab.foundation.errors import MachineError
from jojlab.foundation.tools import package_version
from jojlab.guest.memory import available_bytes
from jojlab.live import abilities as health
from jojlab.live.abilities import GUEST_BYTES, checks, disk, memory, packages, rust, usable


def test_missing_packages_are_named_in_the_line(tmp_path: Path) -> None:
    wanted = tmp_path / "packages.txt"
    wanted.write_text("dpkg  # there\njojlab-no-such\n\n# a remark\npython3\njojlab-nor-this #\n")
    with pytest.raises(MachineError) as caught:
        packages([wanted])
    assert caught.value.message == "missing: jojlab-no-such, jojlab-nor-this"
    assert caught.value.remedy.endswith("--no-install-recommends jojlab-no-such jojlab-nor-this")
    wanted.write_text("dpkg\n")
    assert packages([wanted]).startswith("all 1 ")


def test_one_of_two_names_is_enough(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = tmp_path / "packages.txt"
    wanted.write_text("jojlab-no-such | dpkg  # one is there\n")
    assert packages([wanted]).startswith("all 1 ")
    wanted.write_text("jojlab-no-such | jojlab-nor-this\n")
    apt_cache = tmp_path / "apt-cache"
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    for offered in ("jojlab-no-such", "jojlab-nor-this"):
        apt_cache.write_text(f'#!/bin/sh\ntest "$2" != {offered} || echo "$2 | 1"\n')
        apt_cache.chmod(0o755)
        with pytest.raises(MachineError) as caught:
            packages([wanted])
        assert caught.value.message == f"missing: {offered}"
        assert caught.value.remedy.endswith(f"--no-install-recommends {offered}")


def test_no_debian_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MachineError, match="dpkg-query is missing"):
        packages()
    with pytest.raises(MachineError, match="dpkg-query is missing"):
        package_version("dpkg")


@pytest.mark.parametrize(("user", "first"), [(0, "apt-get"), (1000, "sudo")])
def test_root_needs_no_sudo(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, user: int, first: str
) -> None:
    (tmp_path / "packages.txt").write_text("jojlab-no-such\n")
    monkeypatch.setattr("os.geteuid", lambda: user)
    with pytest.raises(MachineError) as caught:
        packages([tmp_path / "packages.txt"])
    assert caught.value.remedy.split()[0] == first


def test_rust_must_be_there_and_new_enough(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    manifest = tmp_path / "Cargo.toml"
    manifest.write_text('[package]\nrust-version = "1.9"\n')
    cargo = tmp_path / "cargo"
    cargo.write_text("#!/bin/sh\necho 'cargo 1.10.0-nightly (abc 2016-01-01)'\n")
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}/bin")
    with pytest.raises(MachineError, match="cargo is missing"):
        rust(manifest)
    cargo.chmod(0o755)
    assert rust(manifest) == "cargo 1.10.0-nightly"
    manifest.write_text('[package]\nrust-version = "1.10.1"\n')
    with pytest.raises(MachineError, match=r"cargo 1\.10\.0-nightly, 1\.10\.1 is needed"):
        rust(manifest)


def test_disk_and_memory_have_their_least() -> None:
    assert disk(health.FREE_DISK_BYTES)
    with pytest.raises(MachineError, match="are needed"):
        disk(health.FREE_DISK_BYTES - 1)
    assert "--jobs" not in memory(2 * GUEST_BYTES, 2)
    assert "use joj run --jobs 1" in memory(2 * GUEST_BYTES - 1, 2)
    with pytest.raises(MachineError):
        memory(GUEST_BYTES - 1, 1)


def test_available_memory_is_read(tmp_path: Path) -> None:
    meminfo = tmp_path / "meminfo"
    meminfo.write_text("MemTotal:        2048 kB\nMemAvailable:    1024 kB\n")
    assert available_bytes(meminfo) == 1 << 20
    meminfo.write_text("MemTotal:        2048 kB\n")
    with pytest.raises(MachineError, match="MemAvailable"):
        available_bytes(meminfo)
    assert available_bytes() > 0


def test_one_thing_missing_keeps_no_other_from_being_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("JOJ_CACHE", str(tmp_path / "file" / "cache"))
    monkeypatch.setenv("CARGO_TARGET_DIR", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    found = {check.name: check for check in checks(0, build=True)}
    assert [name for name, check in found.items() if check.ok] == ["arm64", "memory"]
    missing = found["arm64"].detail
    assert missing.startswith("no qemu-system-arm")
    assert missing.endswith("see docs/arm64.md")
    assert found["qemu"].remedy == "sudo apt-get install qemu-system-x86"
    assert found["agent"].remedy == "make setup"
    assert "cache" in found["disk"].detail


def test_a_cache_of_another_user_is_told(tmp_path: Path) -> None:
    (tmp_path / "work").write_text("root may write anywhere, but not make a folder of a file")
    with pytest.raises(MachineError, match="JOJ_CACHE=DIR"):
        usable(Cache(tmp_path))
    (tmp_path / "work").unlink()
    assert usable(Cache(tmp_path)).startswith(f"{tmp_path}: 0 MB")
