"""The self-test of attribution in a guest: one filesystem on the modelled device."""

from __future__ import annotations

import json
from typing import Any

from jojlab.device.profile import read_profile
from jojlab.guest.cache import Cache
from jojlab.guest.errors import GuestError
from jojlab.guest.ready import ready_image
from jojlab.guest.runner import run_case

FILESYSTEMS = ("ext4", "xfs", "btrfs", "nilfs2", "f2fs")
_PROFILE = "emmc-galaxy-s3"
_VERDICT = "verification.json"


def verify_in_guest(filesystem: str) -> dict[str, Any]:
    """Run the self-test, or take it from the cache; return what the agent found.

    Raises MachineError or GuestError when the guest cannot run it.
    """
    cache = Cache.default()
    profile = read_profile(_PROFILE)
    target = {"filesystem": filesystem, "device_model": dict(profile.model)}
    record = json.dumps({"verify": target}).encode()
    with cache.work_dir() as work:
        run_case(cache, ready_image(cache), record, profile.icount_shift, work / filesystem)
        path = work / filesystem / _VERDICT
        if not path.is_file():
            raise GuestError(f"the guest handed out no {_VERDICT}")
        found: dict[str, Any] = json.loads(path.read_bytes())
        return found
