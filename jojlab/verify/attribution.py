"""The self-test of attribution: on this kernel, on loop devices that are made for it and removed;
and in a guest, on the modelled device or on a disk that QEMU emulates (agent/src/lab/self_test.rs),
whose contents the tools of this machine read.
"""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from jojlab.device.profile import EMULATED, read_profile
from jojlab.foundation.cache import Cache
from jojlab.foundation.errors import MachineError
from jojlab.foundation.places import agent_path
from jojlab.guest.handout import unpack
from jojlab.guest.image.build import DRIVERS, RAW_NAND, Extras, ready_image
from jojlab.guest.kernel.choose import INSTALLED
from jojlab.guest.machine import Machine, WallMachine
from jojlab.lab.job import Job, Kind, Options, record_of, virtual
from jojlab.lab.lab import Lab
from jojlab.lab.outcome import read_answer
from jojlab.model.architecture import X86_64, Architecture
from jojlab.model.fields import RAW_NAND_DEVICE
from jojlab.model.filesystems import FILESYSTEMS
from jojlab.verify import compare
from jojlab.verify.compare import Verdict

_SIZE_BYTES = 600 << 20
# Device mapper and md would be set up among the disks of others.
_NO_STACKS = "not tested here: dm-crypt, dm-linear (LVM) and md are, in a guest, by --stack"


class LackingError(Exception):
    """This machine lacks what one filesystem needs: its mkfs, or the kernel's part."""


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
    """Return what the agent's self-test found; MachineError when it gave no good answer."""
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


def verify_in_lab(filesystem: str, where: Options = _HERE, **options: Any) -> Verdict:
    """Run the self-test of one filesystem; the `options` are those of self_test.

    Raises MachineError or GuestError when the guest cannot run it.
    """
    lab, is_noisy = Lab(Cache.default(), where), options.get("stack") in NOISY_STACKS
    outcome = lab.run_one(self_test(lab.cache, filesystem, with_disk=not is_noisy, **options))
    found = outcome.answer(Kind.SELF_TEST)
    if is_noisy:
        why = "what was never written reads as noise there"
        addresses = compare.unchecked_addresses(found["writers"], why)
    else:
        with tempfile.TemporaryDirectory(prefix="joj-verify-") as folder:
            disk = Path(folder) / "disk"
            unpack(outcome.files[DISK_IMAGE], disk)
            addresses = compare.check(filesystem, disk, found["writers"])
    return Verdict.from_answer(filesystem, found).with_addresses(addresses)


# What the filesystem's device may be made of (agent/src/record/mod.rs), and the modules for it.
STACKS = {
    "dm-linear": ("dm_mod",),
    "dm-stripe": ("dm_mod",),
    "dm-crypt": ("dm_crypt", "ecb", "xts"),
    "dm-multipath": ("dm_multipath", "dm_service_time"),
    "dm-on-md": ("dm_mod", "raid1"),
    "md-raid0": ("raid0",),
    "md-raid1": ("raid1",),
}
_STACK_MODULES = tuple(sorted({module for modules in STACKS.values() for module in modules}))
# One of its steps writes through an overlay, as containers do.
_OVERLAY = "overlay"
_EXTRAS = Extras((_OVERLAY,))
_STACK_EXTRAS = Extras((*_STACK_MODULES, _OVERLAY), (("dmsetup", "dmsetup"),))
_NAND_EXTRAS = replace(RAW_NAND, modules=(*RAW_NAND.modules, _OVERLAY))
_PROFILE = "emmc-galaxy-s3"
# The contents of the filesystem's device after the unmount, where they are asked for.
DISK_IMAGE = "disk.img"
# All of it is read at the end; mkfs of some wants 300 MB. An SD card's words come one by
# one through a register, and a card's size is a power of two.
_CAPACITY_BYTES = 512 << 20
_CARD_BYTES = 128 << 20
# Of raw NAND: every block has a header.
_NAND_BYTES = 64 << 20


def self_test(
    cache: Cache,
    filesystem: str,
    *,
    device: str = "",
    with_disk: bool = False,
    kernel: str = INSTALLED,
    architecture: Architecture = X86_64,
    **options: str | bool,
) -> Job:
    """Return the job of one filesystem; its image is made if need be.

    The `options` are mkfs_options, mount_options and external_journal, as in an experiment, and
    `stack`, one of STACKS: the filesystem is on a device that is made of others; or `partition`: it
    is on one. A filesystem on raw NAND takes mount_options alone. `device` is one of EMULATED;
    without, the disk is modelled. `kernel` and `architecture` are of jojlab/guest/kernel; other
    than x86-64 it has the modelled disk alone. `with_disk` has the contents of the filesystem's
    device handed out, as DISK_IMAGE (jojlab/guest/handout.py).
    """
    facts = FILESYSTEMS[filesystem]
    target: dict[str, Any] = {"filesystem": filesystem, **options}
    if facts.self_test_mount_options:
        target = {"mount_options": facts.self_test_mount_options} | target
    if with_disk:
        target["disk_image"] = True
    machine: Machine | WallMachine
    if device:
        target["disk"] = EMULATED[device].disk
        is_small = device == "qemu-sd" and facts.smallest_device_bytes <= _CARD_BYTES
        machine = WallMachine(device, _CARD_BYTES if is_small else _CAPACITY_BYTES)
        extras = DRIVERS
    else:
        profile, capacity_bytes = read_profile(_PROFILE), _CAPACITY_BYTES
        extras = _STACK_EXTRAS if "stack" in target else _EXTRAS
        if facts.is_on_raw_nand:
            profile, capacity_bytes = read_profile(RAW_NAND_DEVICE), _NAND_BYTES
            extras = _NAND_EXTRAS
        target["device_model"] = dict(profile.model) | {"capacity_bytes": capacity_bytes}
        machine = virtual(profile.icount_shift, architecture=architecture)
    image = ready_image(cache, extras, kernel, architecture=architecture)
    return Job(Kind.SELF_TEST, record_of(Kind.SELF_TEST, target), image, machine)
