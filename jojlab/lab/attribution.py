"""Jobs that test the attribution: one filesystem on the modelled device, or on a disk that QEMU
emulates (agent/src/lab/self_test.rs).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from jojlab.device.emulated import EMULATED
from jojlab.device.profile import read_profile
from jojlab.foundation.cache import Cache
from jojlab.guest.image.build import Extras
from jojlab.guest.image.ready import RAW_NAND, ready_image, ready_wall_image
from jojlab.guest.kernel.choose import INSTALLED
from jojlab.guest.machine import WallMachine
from jojlab.lab.job import Job, Kind, record_of, virtual
from jojlab.model.architecture import X86_64, Architecture
from jojlab.model.fields import RAW_NAND_DEVICE
from jojlab.model.filesystems import FILESYSTEMS

# What the filesystem's device may be made of (agent/src/device/stack.rs), and the modules for it.
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
    is on one. A filesystem on raw NAND takes
    mount_options alone. `device` is one of EMULATED; without, the disk is
    modelled. `kernel` and `architecture` are of jojlab/guest/kernel; other than x86-64 it has the
    modelled disk alone. `with_disk` has the contents of the filesystem's
    device handed out, as DISK_IMAGE (jojlab/guest/handout.py).
    """
    facts = FILESYSTEMS[filesystem]
    target: dict[str, Any] = {"filesystem": filesystem, **options}
    if facts.self_test_mount_options:
        target = {"mount_options": facts.self_test_mount_options} | target
    if with_disk:
        target["disk_image"] = True
    if facts.is_on_raw_nand:
        profile = read_profile(RAW_NAND_DEVICE)
        target["device_model"] = dict(profile.model) | {"capacity_bytes": _NAND_BYTES}
        record = record_of(Kind.SELF_TEST, target)
        image = ready_image(cache, _NAND_EXTRAS, kernel, architecture=architecture)
        guest = virtual(profile.icount_shift, architecture=architecture)
        return Job(Kind.SELF_TEST, record, image, guest)
    if device:
        target["disk"] = EMULATED[device].disk
        record = record_of(Kind.SELF_TEST, target)
        is_small = device == "qemu-sd" and facts.smallest_device_bytes <= _CARD_BYTES
        machine = WallMachine(device, _CARD_BYTES if is_small else _CAPACITY_BYTES)
        return Job(Kind.SELF_TEST, record, ready_wall_image(cache, kernel), machine)
    profile = read_profile(_PROFILE)
    target["device_model"] = dict(profile.model) | {"capacity_bytes": _CAPACITY_BYTES}
    extras = _STACK_EXTRAS if "stack" in target else _EXTRAS
    image = ready_image(cache, extras, kernel, architecture=architecture)
    record = record_of(Kind.SELF_TEST, target)
    guest = virtual(profile.icount_shift, architecture=architecture)
    return Job(Kind.SELF_TEST, record, image, guest)
