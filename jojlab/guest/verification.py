"""The self-test of attribution in a guest: one filesystem on the modelled device."""

from __future__ import annotations

import json
from typing import Any

from jojlab.device.profile import read_profile
from jojlab.guest.cache import Cache
from jojlab.guest.errors import GuestError
from jojlab.guest.image import NO_EXTRAS, Extras
from jojlab.guest.ready import ready_image
from jojlab.guest.runner import run_case

FILESYSTEMS = ("ext4", "xfs", "btrfs", "nilfs2", "f2fs")
# What the filesystem's device may be made of (agent/src/device/stack.rs), and the modules for it.
STACKS = {
    "dm-linear": ("dm_mod",),
    "dm-stripe": ("dm_mod",),
    "dm-crypt": ("dm_crypt", "ecb", "xts"),
    "dm-on-md": ("dm_mod", "raid1"),
    "md-raid0": ("raid0",),
    "md-raid1": ("raid1",),
}
_STACK_MODULES = tuple(sorted({module for modules in STACKS.values() for module in modules}))
_STACK_EXTRAS = Extras(_STACK_MODULES, (("dmsetup", "dmsetup"),))
_PROFILE = "emmc-galaxy-s3"
_VERDICT = "verification.json"


def verify_in_guest(filesystem: str, stack: str | None = None) -> dict[str, Any]:
    """Run the self-test, or take it from the cache; return what the agent found.

    With one of STACKS the filesystem is on a device that is made of others.
    Raises MachineError or GuestError when the guest cannot run it.
    """
    cache = Cache.default()
    profile = read_profile(_PROFILE)
    target: dict[str, Any] = {"filesystem": filesystem, "device_model": dict(profile.model)}
    if stack:
        target["stack"] = stack
    record = json.dumps({"verify": target}).encode()
    with cache.work_dir() as work:
        image = ready_image(cache, _STACK_EXTRAS if stack else NO_EXTRAS)
        run_case(cache, image, record, profile.icount_shift, work / filesystem)
        path = work / filesystem / _VERDICT
        if not path.is_file():
            raise GuestError(f"the guest handed out no {_VERDICT}")
        found: dict[str, Any] = json.loads(path.read_bytes())
        return found
