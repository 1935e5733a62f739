"""The self-test of attribution in a guest: one filesystem on the modelled device, or on a disk that
QEMU emulates.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from jojlab.device.emulated import EMULATED
from jojlab.device.profile import read_profile
from jojlab.foundation.cache import Cache
from jojlab.guest.errors import GuestError
from jojlab.guest.image.build import NO_EXTRAS, Extras
from jojlab.guest.image.ready import ready_image, ready_wall_image
from jojlab.guest.runner import run_case
from jojlab.guest.sparse_image import unpack
from jojlab.guest.wall_clock import run_by_wall_clock

FILESYSTEMS = ("ext4", "xfs", "btrfs", "nilfs2", "f2fs")
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
_STACK_EXTRAS = Extras(_STACK_MODULES, (("dmsetup", "dmsetup"),))
_PROFILE = "emmc-galaxy-s3"
_VERDICT = "verification.json"
_DISK_IMAGE = "disk.img"
# All of it is read at the end; mkfs.xfs wants 300 MB.
_CAPACITY_BYTES = 512 << 20


def verify_in_guest(
    filesystem: str, disk: Path | None = None, *, device: str = "", **options: str | bool
) -> dict[str, Any]:
    """Run the self-test, or take it from the cache; return what the agent found.

    The `options` are mkfs_options, mount_options and external_journal, as in an experiment, and
    `stack`, one of STACKS: the filesystem is on a device that is made of others; or `partition`: it
    is on one. `device` is one of EMULATED; without, the disk is modelled. With `disk`, the contents
    of the filesystem's device after the unmount are unpacked into that file.
    Raises MachineError or GuestError when the guest cannot run it.
    """
    cache = Cache.default()
    target: dict[str, Any] = {"filesystem": filesystem, **options}
    if disk:
        target["disk_image"] = True
    with cache.work_dir() as work:
        folder = work / filesystem
        if device:
            _run_emulated(cache, device, target, folder)
        else:
            _run_modelled(cache, target, folder)
        path = folder / _VERDICT
        if not path.is_file():
            raise GuestError(f"the guest handed out no {_VERDICT}")
        if disk:
            unpack((folder / _DISK_IMAGE).read_bytes(), disk)
        found: dict[str, Any] = json.loads(path.read_bytes())
        return found


def _run_modelled(cache: Cache, target: dict[str, Any], folder: Path) -> None:
    profile = read_profile(_PROFILE)
    target["device_model"] = dict(profile.model) | {"capacity_bytes": _CAPACITY_BYTES}
    image = ready_image(cache, _STACK_EXTRAS if "stack" in target else NO_EXTRAS)
    record = json.dumps({"job": "self-test", **target}).encode()
    run_case(cache, image, record, profile.icount_shift, folder)


def _run_emulated(cache: Cache, device: str, target: dict[str, Any], folder: Path) -> None:
    target["disk"] = EMULATED[device].disk
    record = json.dumps({"job": "self-test", **target}).encode()
    image = ready_wall_image(cache)
    run_by_wall_clock(cache, image, record, device, folder, capacity_bytes=_CAPACITY_BYTES)
