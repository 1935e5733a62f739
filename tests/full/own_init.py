"""A guest whose process 1 is a program of a test, which says on the console what it found."""

from __future__ import annotations

import subprocess
from pathlib import Path

from jojlab.guest.image.initramfs import Initramfs
from tests.hangs import HANG_S

HERE = Path(__file__).parent


def console_of(
    source: str,
    agent: Path,
    kernel: Path,
    folder: Path,
    modules: Path | None = None,
    options: tuple[str, ...] = (),
) -> str:
    """Return what a guest prints whose process 1 is made of a C file beside this one.

    It has the agent as /joj-agent, and what the folder `modules` holds in /modules; `options` are
    further ones for QEMU, and `folder` is for what is built.
    """
    program, initramfs = folder / "init", folder / "initramfs"
    compiler = ["cc", "-static", "-Wall", "-Werror", "-o", str(program), str(HERE / source)]
    subprocess.run(compiler, check=True)
    files = Initramfs()
    for name in ("dev", "modules", "proc", "sys", "tmp"):
        files.add_folder(name)
    for file in sorted(modules.iterdir()) if modules else ():
        files.add_file(f"modules/{file.name}", file.read_bytes())
    files.add_file("init", program.read_bytes(), executable=True)
    files.add_file("joj-agent", agent.read_bytes(), executable=True)
    initramfs.write_bytes(files.archive())
    return subprocess.run(
        [
            *("qemu-system-x86_64", "-machine", "q35", "-accel", "tcg", "-m", "1024", "-nographic"),
            *("-no-reboot", "-kernel", str(kernel), "-initrd", str(initramfs)),
            *("-append", "console=ttyS0 quiet panic=-1", *options),
        ],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=HANG_S, check=False,
    ).stdout  # fmt: skip
