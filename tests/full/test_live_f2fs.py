"""The tests of live commits on F2FS, which this machine's kernel may lack: in a guest of the lab's
kernel, in real time, whose root is this machine's, read-only.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import sys
from pathlib import Path

from jojlab.foundation.cache import Cache
from jojlab.guest import qemu
from jojlab.guest.errors import GuestError
from jojlab.guest.image.build import kernel_entry
from jojlab.guest.image.initramfs import Initramfs
from jojlab.guest.image.modules import ROOTS
from jojlab.guest.kernel.choose import INSTALLED, chosen_kernel
from jojlab.guest.process import CONSOLE, start
from jojlab.guest.program_files import found_program, needs
from tests.ended import HANG_S
from tests.live.conftest import CHECKOUT

TESTS = 4
MODULES = (*ROOTS, "loop", "virtio_pci", "9pnet_virtio", "9p")
INIT = f"""#!/bin/sh
export PATH=/usr/sbin:/usr/bin:/sbin:/bin
while read name parameters; do insmod /modules/$name $parameters; done </modules/order
mount -t 9p -o trans=virtio,version=9p2000.L,ro,cache=loose,msize=262144 root /root
for kind in devtmpfs:dev proc:proc sysfs:sys tmpfs:tmp; do
	mount -t ${{kind%:*}} guest /root/${{kind#*:}}
done
mount -t tracefs guest /root/sys/kernel/tracing
export HOME=/tmp PYTHONDONTWRITEBYTECODE=1
chroot /root sh -c 'cd {CHECKOUT} && exec "$@"' sh {sys.executable} -m pytest -q -n 0 \\
	-x -p no:cacheprovider -p no:hypothesispytest -k f2fs tests/live/test_live_commits.py
echo o >/root/proc/sysrq-trigger
read forever
"""


def machine(kernel: Path) -> list[str]:
    """Return the machine; its root is a folder of this one."""
    root = "local,id=root,path=/,security_model=none,readonly=on,multidevs=remap"
    return [
        *("-machine", "q35", "-accel", "tcg,thread=multi", "-smp", "2", "-m", "3072M"),
        *("-cpu", "max", "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"),
        *("-fsdev", root, "-device", "virtio-9p-pci,fsdev=root,mount_tag=root"),
        *("-kernel", str(kernel), "-initrd", "initramfs"),
        *("-append", f"{qemu.COMMON_COMMAND_LINE}no_timer_check"),
    ]


async def run(command: list[str], own: socket.socket, other: socket.socket, folder: Path) -> None:
    async with start(command, own, other, folder) as guest:
        # It ends by switching itself off, which is an error in a guest of the lab.
        with contextlib.suppress(GuestError):
            await guest.run_until_stop(HANG_S)


def test_commits_of_running_programs_are_counted_on_f2fs(cache: Cache, tmp_path: Path) -> None:
    entry = kernel_entry(cache, chosen_kernel(cache, INSTALLED), MODULES)
    tree = Initramfs()
    for folder in ("dev", "proc", "root"):
        tree.add_folder(folder)
    programs = [found_program(name) for name in ("mount", "insmod", "chroot")]
    files = needs(found_program("sh"), programs)
    for place, source in files.items():
        while isinstance(source, str):  # a link: /bin/sh to ../usr/bin/sh
            source = files[source.removeprefix("../")]
        tree.add_file(place, source.read_bytes(), executable=True)
    for path in (entry / "modules").iterdir():
        tree.add_file(f"modules/{path.name}", path.read_bytes())
    tree.add_file("init", INIT.encode(), executable=True)
    (tmp_path / "initramfs").write_bytes(tree.archive())
    ours, theirs = socket.socketpair()
    command = qemu.watched(machine(entry / "vmlinux"), CONSOLE, theirs.fileno())
    asyncio.run(run(command, ours, theirs, tmp_path))
    console = (tmp_path / CONSOLE).read_text(errors="replace")
    assert f"\n{TESTS} passed" in console.replace("\r", ""), console[-4000:]
