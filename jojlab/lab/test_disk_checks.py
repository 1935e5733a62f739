from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from jojlab.foundation.cache import Cache
from jojlab.foundation.errors import GuestError, MachineError
from jojlab.foundation.tools import need_tool, package_version
from jojlab.guest.image.build import Image, shared_libraries
from jojlab.guest.image.initramfs import Initramfs
from jojlab.guest.user_mode import checker_library
from jojlab.lab.power_cuts import check_handed_disks

_SLOT_BYTES = 4096
_DISK_BYTES = 4 << 20


@pytest.fixture
def image(tmp_path: Path) -> Image:
    """Return what an image holds of e2fsck."""
    tree = Initramfs()
    program = need_tool("e2fsck", "e2fsprogs")
    tree.add_file("/sbin/e2fsck", program.read_bytes(), executable=True)
    for library in shared_libraries(program):
        tree.add_file(str(library), library.read_bytes(), executable=True)
    (tmp_path / "initramfs").write_bytes(tree.archive())
    return Image("", Path(), tmp_path / "initramfs", {})


def _disk_files(tmp_path: Path) -> dict[str, bytes]:
    """An ext4, the same with zeroes for its block bitmaps, and as it was again."""
    disk = tmp_path / "disk"
    disk.write_bytes(bytes(_DISK_BYTES))
    mkfs = need_tool("mkfs.ext4", "e2fsprogs")
    subprocess.run([mkfs, "-q", "-b", "4096", "-O", "^has_journal", disk], check=True)
    content = disk.read_bytes()
    slots = [content[at : at + _SLOT_BYTES] for at in range(0, _DISK_BYTES, _SLOT_BYTES)]
    used = [number for number, slot in enumerate(slots) if any(slot)]
    first = [(slot, page) for page, slot in enumerate(used, start=1)]
    damage = [(slot, 0) for slot in used if slot]
    healed = [(slot, page) for slot, page in first if slot]
    states = {
        "program": "e2fsck",
        "arguments": ["-f", "-n"],
        "journal_option": "-j",
        "file_option": "",
        "disk_bytes": [_DISK_BYTES],
        "states": [[first], [damage], [healed]],
    }
    found: list[dict[str, Any]] = [
        {"outcome": outcome, "message": "", "fsck": "handed out"}
        for outcome in ("kept", "lost", "lost")
    ]
    found.insert(1, {"outcome": "unmountable", "message": "EIO", "fsck": "not run"})
    return {
        "disk_pages": b"".join(slots[slot] for slot in used),
        "disk_states.json": json.dumps(states).encode(),
        "power_cuts.json": json.dumps({"states": found, "outcomes": {}}).encode(),
    }


def _arm64_image(version: str) -> Image:
    """An image whose programs do not run on this machine, and which is not read."""
    manifest = {"architecture": "arm64", "mkfs_package_versions": {"e2fsprogs": version}}
    return Image("", Path(), Path("/nowhere"), manifest)


def test_disks_of_arm64_are_checked_by_this_machine_if_it_has_that_version(tmp_path: Path) -> None:
    files, here = _disk_files(tmp_path), package_version("e2fsprogs").partition("+b")[0]
    with pytest.raises(MachineError, match=r"the guest has e2fsprogs 0\.1, this machine"):
        check_handed_disks(Cache(tmp_path / "cache"), _arm64_image("0.1"), dict(files))
    check_handed_disks(Cache(tmp_path / "cache"), _arm64_image(f"{here}+b7"), files)
    outcomes = [state["outcome"] for state in json.loads(files["power_cuts.json"])["states"]]
    assert outcomes == ["kept", "unmountable", "corrupt", "lost"]


@pytest.mark.parametrize("starts_once", [False, True])
def test_each_state_is_checked_by_the_images_own_checker(
    tmp_path: Path, image: Image, starts_once: bool
) -> None:
    files, cache = _disk_files(tmp_path), Cache(tmp_path / "cache")
    library = checker_library(cache) if starts_once else None
    check_handed_disks(cache, image, files, library)
    assert list(files) == ["power_cuts.json"]
    answer = json.loads(files["power_cuts.json"])
    states = answer["states"]
    outcomes = [state["outcome"] for state in states]
    assert outcomes == ["kept", "unmountable", "corrupt", "lost"]
    assert [states[place]["fsck"] for place in (0, 1, 3)] == ["clean", "not run", "clean"]
    assert states[2]["fsck"].startswith("e2fsck (exit status: ")
    assert states[2]["message"] == f"fsck: {states[2]['fsck']}"
    assert answer["outcomes"] == {"kept": 1, "unmountable": 1, "corrupt": 1, "lost": 1}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("program", "sh"),
        ("disk_bytes", [4096]),
        ("states", [[[(0, 9999)]]] * 3),
        ("states", [[[]]]),
        ("states", [[]] * 3),
    ],
)
def test_malformed_states_of_disks_are_refused(
    tmp_path: Path, image: Image, name: str, value: object
) -> None:
    files = _disk_files(tmp_path)
    states = {**json.loads(files["disk_states.json"]), name: value}
    files["disk_states.json"] = json.dumps(states).encode()
    with pytest.raises(GuestError):
        check_handed_disks(Cache(tmp_path / "cache"), image, files)
