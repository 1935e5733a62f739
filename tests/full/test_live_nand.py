"""Cases on raw NAND of a machine, in real time: the agent finds MTD's device, makes UBIFS on it,
runs the case, says which memory its buffers have, and leaves nothing attached. The machine is a
guest whose MTD device is modelled; the agent does not know that.
"""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

from jojlab.foundation.cache import Cache
from jojlab.foundation.tools import need_tool
from jojlab.guest.image.build import CHOSEN_BUFFERS, QEMU, QEMU_PACKAGE, ready_image
from jojlab.guest.image.initramfs import Initramfs
from jojlab.guest.run import WALL_COMMAND_LINE
from jojlab.trace.capture import Capture
from tests.guest.conftest import real_case
from tests.hangs import HANG_S

HERE = Path(__file__).parent
ALLOCATORS = {"1": ("vmalloc", "vmalloc"), "2": ("kmem_cache", "kmalloc")}
MACHINE = ("-machine", "q35", "-accel", "tcg,thread=multi", "-cpu", "qemu64,+arat", "-smp", "2")


def _case(ubi: str, ubifs: str) -> bytes:
    case = {
        "background": "none", "filesystem": "ubifs", "mount_options": "noatime,compr=none",
        "ubi_allocator": ubi, "ubifs_allocator": ubifs, "workload": "file-passes",
        "record_bytes": 16384, "file_bytes": 1 << 18, "sync_every": 4,
    }  # fmt: skip
    return json.dumps({"seed": 1, "case": case}).encode()


@pytest.fixture(scope="module")
def console(cache: Cache, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return what the machine says: every case's exit code and tables."""
    folder = tmp_path_factory.mktemp("machine")
    start = folder / "start"
    command = ["cc", "-O1", "-static", "-Wall", "-Werror", "-o", str(start), str(HERE / "start.c")]
    subprocess.run(command, check=True)
    image = ready_image(cache, CHOSEN_BUFFERS)
    record = real_case(filesystem="ubifs", **{"device.capacity_bytes": 16 << 20})
    model = json.loads(record)["device_model"]
    beside = Initramfs()
    beside.add_file("start", start.read_bytes(), executable=True)
    beside.add_file("parameters", " ".join(f"{k}={v}" for k, v in model.items()).encode())
    for name, allocators in ALLOCATORS.items():
        beside.add_file(f"cases/{name}", _case(*allocators))
    initramfs = folder / "initramfs"
    initramfs.write_bytes(image.initramfs.read_bytes() + beside.archive())
    heard = folder / "console"
    machine = [str(need_tool(QEMU, QEMU_PACKAGE)), *MACHINE, "-m", "1024M", "-nodefaults"]
    machine += ["-display", "none", "-no-reboot", "-serial", f"file:{heard}"]
    machine += ["-kernel", str(image.kernel), "-initrd", str(initramfs)]
    machine += ["-append", f"{WALL_COMMAND_LINE} rdinit=/start"]
    try:
        subprocess.run(machine, timeout=HANG_S, check=True)
    except subprocess.TimeoutExpired:
        pytest.fail(f"it did not end: {heard.read_text(errors='replace')[-3000:]}")
    return heard.read_text()


def _tables(console: str, name: str, folder: Path) -> Capture:
    begun = re.search(rf"case {name} ended with 0\r?\n((?:file \S+ [0-9a-f]*\r?\n)*)", console)
    assert begun, console[-3000:]
    for line in begun[1].splitlines():
        _, file, content = line.split(" ")
        (folder / file).write_bytes(bytes.fromhex(content))
    return Capture.open(folder)


def test_a_case_runs_on_the_nand_of_a_machine_and_leaves_it_free(
    console: str, tmp_path: Path
) -> None:
    for name, (ubi, ubifs) in ALLOCATORS.items():
        folder = tmp_path / name
        folder.mkdir()
        capture = _tables(console, name, folder)
        assert capture.manifest["clock"] == "wall"
        assert not capture.is_incomplete
        configuration = capture.manifest["configuration"]
        assert configuration["mtd"]["type"] == "nand"
        assert configuration["filesystem"] == "ubifs"
        found = {(each["module"], each["allocator"]) for each in configuration["buffers"]}
        assert found == {("ubi", ubi), ("ubifs", ubifs)}
        kinds = [row["kind"] for row in capture.read("transactions").to_pylist()]
        assert {kind: kinds.count(kind) for kind in set(kinds)} == dict.fromkeys(
            ["write-pass", "rewrite-pass", "read-pass", "random-read-pass", "random-write-pass"], 16
        )
    assert "attached 0" in console
