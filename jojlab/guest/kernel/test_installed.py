"""Finding the kernel, and the messages when something is not installed."""

from __future__ import annotations

import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest

from jojlab.foundation.cache import Cache
from jojlab.foundation.errors import MachineError
from jojlab.guest.kernel.installed import installed_kernel, newest_release


def test_the_newest_release_goes_by_numbers() -> None:
    names = [
        "6.1.0-9-amd64",
        "6.1.0-56-amd64",
        "6.1.0-57-common",
        "6.1.0-58-cloud-amd64",
        "6.1.0-58-rt-amd64",
    ]
    assert newest_release(names) == "6.1.0-56-amd64"
    assert newest_release([*names, "6.12.43+deb13-amd64"]) == "6.12.43+deb13-amd64"
    assert newest_release(names[2:]) is None
    ubuntus = ["6.8.0-9-generic", "6.8.0-151-generic", "6.8.0-152-lowlatency", "6.8.0-153"]
    assert newest_release(ubuntus) == "6.8.0-151-generic"


def test_ubuntus_modules_are_of_packages_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    release = "6.8.0-151-generic"
    (tmp_path / f"linux-headers-{release}").mkdir()
    tools = {
        "apt-cache": f"echo '  Depends: linux-modules-{release}'",
        "apt-get": 'shift 4; for name; do : > "$name.deb"; done',
        "dpkg-query": "printf 'installed %s' 6.8.0-151.151",
    }
    for name, script in tools.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    kernel = installed_kernel(Cache(tmp_path / "cache"), headers_root=tmp_path)
    parts = ("image", "modules", "modules-extra")
    assert [path.name for path in kernel.files] == [
        f"linux-{part}-{release}=6.8.0-151.151.deb" for part in parts
    ]


def test_missing_headers_come_with_the_line_to_run(tmp_path: Path) -> None:
    with pytest.raises(MachineError, match="sudo apt-get install linux-headers-amd64"):
        installed_kernel(Cache(tmp_path / "cache"), headers_root=tmp_path)


@pytest.mark.parametrize("full", [False, True])
def test_a_failed_download_is_the_disks_fault_or_the_archives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, full: bool
) -> None:
    (tmp_path / "linux-headers-6.1.0-0-amd64").mkdir()
    tools = {
        "apt-cache": "",
        "apt-get": "echo no space >&2; exit 100",
        "dpkg-query": "echo installed 1",
    }
    for name, script in tools.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(
        shutil, "disk_usage", lambda _: SimpleNamespace(free=1 << 10 if full else 1 << 40)
    )
    with pytest.raises(MachineError, match="no space") as caught:
        installed_kernel(Cache(tmp_path / "cache"), headers_root=tmp_path)
    assert ("is full" in caught.value.message) == full
    assert ("apt-get update" in caught.value.remedy) != full
