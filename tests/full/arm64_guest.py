"""A guest of arm64 in real time, with the agent, busybox and foreign programs of Debian's packages:
runs a script of the shell and returns what it leaves in /out.

Its two disks are QEMU's: the first is for the script, on the second the script's files come out.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import tarfile
from collections.abc import Mapping
from pathlib import Path

from jojlab.foundation.cache import Cache, sha256
from jojlab.foundation.errors import GuestError
from jojlab.foundation.places import agent_path
from jojlab.guest import qemu
from jojlab.guest.image.build import UnpackedPackages, kernel_entry
from jojlab.guest.image.initramfs import Initramfs
from jojlab.guest.image.modules import ROOTS
from jojlab.guest.kernel.archive import Archive, own_sources
from jojlab.guest.kernel.choose import INSTALLED, chosen_kernel
from jojlab.guest.kernel.installed import PAGES_16_KIB
from jojlab.guest.kernel.kernel import Kernel, unpack_packages
from jojlab.guest.process import CONSOLE, start
from jojlab.model.architecture import ARM64
from tests.hangs import HANG_S

# A program and its package. Each reaches the guest with the libraries that it names.
PROGRAMS = {
    "busybox": "busybox-static",
    "dd": "coreutils",
    "git": "git",
    "mkfs.btrfs": "btrfs-progs",
    "mkfs.ext4": "e2fsprogs",
    "mkfs.f2fs": "f2fs-tools",
    "mkfs.nilfs2": "nilfs-tools",
    "mkfs.xfs": "xfsprogs",
    "sqlite3": "sqlite3",
    "strace": "strace",
}
_LIBRARIES = r"lib\w\S*|zlib1g"
_DISK_BYTES = 1 << 30
_INIT = """#!/sbin/busybox sh
export PATH=/sbin HOME=/nonexistent LC_ALL=C
/sbin/busybox --install -s /sbin
mount -t proc proc /proc; mount -t sysfs sysfs /sys; mount -t devtmpfs dev /dev
mkdir -p /out /disk /bin; ln -s /sbin/busybox /bin/sh; ln -s /proc/mounts /etc/mtab
mount -t tracefs tracefs /sys/kernel/tracing
cd /modules && while read name parameters; do insmod $name $parameters; done <order; cd /
(set -ex; . /script) >/out/said 2>&1
echo $? >/out/code
tail -n 40 /out/said
tar -c -f /dev/vdb -C /out . && sync
poweroff -f
"""


def run_script(
    cache: Cache,
    folder: Path,
    script: str,
    files: Mapping[str, Path],
    kernel: Kernel | None = None,
) -> Path:
    """Run a script in the guest, in which the files are below /files; return the folder with
    what it left in /out.

    Fails the test, with the end of what was said, where a command of it fails.
    """
    folder.mkdir()
    kernel = kernel or chosen_kernel(cache, INSTALLED, ARM64)
    entry = kernel_entry(cache, kernel, (*ROOTS, "virtio_pci", "virtio_blk"))
    tree = _programs(cache)
    tree.add_file("sbin/joj-agent", agent_path(ARM64.name).read_bytes(), executable=True)
    tree.add_file("init", _INIT.encode(), executable=True)
    tree.add_file("script", script.encode())
    for path in (entry / "modules").iterdir():
        tree.add_file(f"modules/{path.name}", path.read_bytes())
    for name, path in files.items():
        below = [path] if path.is_file() else [file for file in path.rglob("*") if file.is_file()]
        for file in below:
            place = Path("files", name, file.relative_to(path))
            tree.add_file(str(place), file.read_bytes())
    (folder / "initramfs").write_bytes(tree.archive())
    for disk in ("disk", "results"):
        with (folder / disk).open("wb") as empty:
            empty.truncate(_DISK_BYTES)
    words = [
        *("-machine", "virt", "-accel", "tcg,thread=multi", "-smp", "2", "-m", "1536M"),
        *("-cpu", "cortex-a76" if kernel.release.endswith(PAGES_16_KIB) else "cortex-a53"),
        *("-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"),
        *("-kernel", str(entry / "vmlinux"), "-initrd", "initramfs"),
        *("-append", "console=ttyAMA0 quiet panic=-1 iomem=relaxed"),
    ]
    for disk in ("disk", "results"):
        words += ["-drive", f"if=none,id={disk},file={disk},format=raw,cache=unsafe"]
        words += ["-device", f"virtio-blk-pci,drive={disk}"]
    ours, theirs = socket.socketpair()
    asyncio.run(
        _run(qemu.add_control(words, CONSOLE, theirs.fileno(), ARM64), ours, theirs, folder)
    )
    try:
        with tarfile.open(folder / "results", "r:") as tar:
            tar.extractall(folder / "out", filter="data")
    except tarfile.ReadError as error:
        raise AssertionError((folder / CONSOLE).read_text(errors="replace")[-4000:]) from error
    if not (folder / "out" / "code").exists():  # what was not written reads as an empty archive
        heard = (folder / CONSOLE).read_text(errors="replace")[-4000:]
        raise AssertionError(f"the guest did not end in {HANG_S} s, or broke down: {heard}")
    code, said = ((folder / "out" / name).read_text() for name in ("code", "said"))
    assert code == "0\n", said[-1500:]
    for used in ("results", "initramfs"):
        (folder / used).unlink()
    return folder / "out"


async def _run(
    command: list[str], own: socket.socket, foreign: socket.socket, folder: Path
) -> None:
    async with start(command, own, foreign, folder) as guest:
        # Its end is that of QEMU, which is an error in a guest of the lab.
        with contextlib.suppress(GuestError):
            await guest.run_until_stop(HANG_S)


def _programs(cache: Cache) -> Initramfs:
    packages = list(dict.fromkeys(PROGRAMS.values()))

    def build(folder: Path) -> None:
        with cache.work_dir() as work:
            archive = Archive(own_sources(), work, ARM64)
            archive.download(
                archive.closure(packages, f"{'|'.join(packages)}|{_LIBRARIES}"), folder
            )

    key = sha256("\0".join([ARM64.name, *packages, _LIBRARIES]).encode())[:16]
    entry = cache.entry("packages", f"foreign-{key}", build)
    tree = Initramfs()
    for folder in ("dev", "proc", "sys", "tmp", "disk", "out", "etc"):
        tree.add_folder(folder)
    with cache.work_dir() as unpacked:
        unpack_packages(sorted(entry.glob("*.deb")), unpacked)
        found = UnpackedPackages(unpacked, "aarch64-linux-gnu")
        needs = dict[str, bytes]()
        for program, package in PROGRAMS.items():
            path = found.program(program, package)
            tree.add_file(f"sbin/{program}", path.read_bytes(), executable=True)
            found.add_needs(path, needs)
        for place, content in needs.items():
            tree.add_file(place, content, executable=True)
        tree.add_file("etc/passwd", b"root:x:0:0::/:/sbin/sh\n")
        tree.add_file("etc/mke2fs.conf", (unpacked / "etc/mke2fs.conf").read_bytes())
    return tree
