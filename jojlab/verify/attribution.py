"""The self-test of attribution: on this kernel, on loop devices that are made for it and removed;
and in a guest, whose disk the tools of this machine read.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from jojlab.foundation.cache import Cache
from jojlab.foundation.errors import MachineError
from jojlab.foundation.places import agent_path
from jojlab.guest.handout import unpack
from jojlab.guest.kernel.choose import INSTALLED
from jojlab.lab.attribution import DISK_IMAGE, self_test
from jojlab.lab.job import Kind
from jojlab.lab.lab import Lab
from jojlab.lab.options import Options
from jojlab.lab.outcome import read_answer
from jojlab.model.architecture import X86_64, Architecture
from jojlab.model.filesystems import FILESYSTEMS
from jojlab.verify import compare
from jojlab.verify.compare import Addresses, Verdict

_SIZE_BYTES = 600 << 20
# Device mapper and md would be set up among the disks of others.
_NO_STACKS = "not tested here: dm-crypt, dm-linear (LVM) and md are, in a guest, by --stack"


class LackingError(Exception):
    """This machine lacks what one filesystem needs: its mkfs, or the kernel's part."""


def need_tracer() -> None:
    """Raise MachineError where no self-test can run: no root, no BTF, no agent."""
    if os.geteuid() != 0:
        raise MachineError("only root may load the tracer into the kernel", "sudo joj verify ...")
    if not Path("/sys/kernel/btf/vmlinux").exists():
        raise MachineError("the kernel has no BTF", "use a kernel with CONFIG_DEBUG_INFO_BTF")
    agent_path()


def verify_on_host(filesystem: str) -> Verdict:
    """Run the self-test on a loop device.

    Raises LackingError where this machine lacks what the filesystem needs, and MachineError when
    something failed: the agent, its mkfs, losetup.
    """
    _need(filesystem)
    with _loop_device() as (device, directory):
        found = run_self_test(agent_path(), filesystem, device, directory)
        addresses = compare.check(filesystem, Path(device), found["writers"])
        found["left_out"]["stacks"] = _NO_STACKS
        return Verdict.from_answer(filesystem, found).with_addresses(addresses)


def run_self_test(agent: Path, filesystem: str, device: str, directory: Path) -> dict[str, Any]:
    """Return what the agent's self-test found.

    Raises MachineError when it failed, crashed, or answered something else.
    """
    command = [str(agent), "verify", "--device", device, "--filesystem", filesystem]
    answer = _run(*command, "--directory", str(directory))
    return read_answer(Kind.SELF_TEST, answer)


def _need(filesystem: str) -> None:
    mkfs = FILESYSTEMS[filesystem].mkfs
    if mkfs and not shutil.which(mkfs.name):
        raise LackingError(f"{mkfs.name} is not installed")
    # The filesystem may be a module, or built in.
    subprocess.run(["modprobe", "--quiet", filesystem], check=False)
    if filesystem not in Path("/proc/filesystems").read_text().split():
        raise LackingError(f"this kernel has no {filesystem}")


@contextlib.contextmanager
def _loop_device() -> Iterator[tuple[str, Path]]:
    """Yield an empty loop device, and an empty folder; both are removed at the end."""
    with contextlib.ExitStack() as undo:
        folder = Path(tempfile.mkdtemp(prefix="joj-verify-"))
        undo.callback(shutil.rmtree, folder, ignore_errors=True)
        image, directory = folder / "image", folder / "mounted"
        directory.mkdir()
        with image.open("wb") as file:
            file.truncate(_SIZE_BYTES)
        device = _run("losetup", "--find", "--show", str(image)).strip()
        undo.callback(subprocess.run, ["losetup", "--detach", device], check=False)
        undo.callback(_unmount, directory)
        yield device, directory


def _unmount(directory: Path) -> None:
    """Unmount what the agent mounted, if it was ended before it unmounted that itself."""
    if directory.is_mount():
        subprocess.run(["umount", "--lazy", str(directory)], check=False)


def _run(*command: str) -> str:
    try:
        answer = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError as error:
        raise MachineError(f"{command[0]} is not installed") from error
    if answer.returncode:
        code = f"exit code {answer.returncode}"
        raise MachineError(f"{' '.join(command)}: {code}: {answer.stderr.strip()}")
    return answer.stdout


# Deciphered, the zeroes of a fresh disk are noise: its image is not sparse, and outgrows the memory
# that results leave the guest by.
NOISY_STACKS = ("dm-crypt",)
_HERE = Options()


def verify_in_lab(
    filesystem: str,
    where: Options = _HERE,
    *,
    device: str = "",
    kernel: str = INSTALLED,
    architecture: Architecture = X86_64,
    **options: str | bool,
) -> Verdict:
    """Run the self-test of one filesystem; `device`, `kernel`, `architecture`, `options` are
    those of self_test.

    Raises MachineError or GuestError when the guest cannot run it.
    """
    lab, is_noisy = Lab(Cache.default(), where), options.get("stack") in NOISY_STACKS
    job = self_test(
        lab.cache,
        filesystem,
        device=device,
        with_disk=not is_noisy,
        kernel=kernel,
        architecture=architecture,
        **options,
    )
    outcome = lab.run_one(job)
    found = outcome.answer(Kind.SELF_TEST)
    with tempfile.TemporaryDirectory(prefix="joj-verify-") as folder:
        disk = None
        if not is_noisy:
            disk = Path(folder) / "disk"
            unpack(outcome.files[DISK_IMAGE], disk)
        addresses = _addresses(filesystem, disk, found)
    return Verdict.from_answer(filesystem, found).with_addresses(addresses)


def _addresses(filesystem: str, disk: Path | None, answer: dict[str, Any]) -> Addresses:
    if disk is None:
        return compare.unchecked(answer["writers"], "what was never written reads as noise there")
    return compare.check(filesystem, disk, answer["writers"])
