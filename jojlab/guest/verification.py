"""The self-test of attribution in a guest: one filesystem on the modelled device, or on a disk that
QEMU emulates.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from jojlab.device.emulated import EMULATED
from jojlab.device.profile import read_profile
from jojlab.guest.cache import Cache
from jojlab.guest.errors import GuestError
from jojlab.guest.ready import ready_image, ready_wall_image
from jojlab.guest.runner import run_case
from jojlab.guest.wall_clock import run_by_wall_clock

FILESYSTEMS = ("ext4", "xfs", "btrfs", "nilfs2", "f2fs")
_PROFILE = "emmc-galaxy-s3"
_VERDICT = "verification.json"


def verify_in_guest(
    filesystem: str, device: str = "", *, partition: bool = False
) -> dict[str, Any]:
    """Run the self-test, or take it from the cache; return what the agent found.

    `device` is a name of EMULATED, or empty for the modelled device; with `partition` the
    filesystem is on a partition of it. Raises MachineError or GuestError when the guest cannot
    run it.
    """
    cache = Cache.default()
    with cache.work_dir() as work:
        folder = work / filesystem
        target: dict[str, Any] = {"filesystem": filesystem}
        if partition:
            target["partition"] = True
        if device:
            target["disk"] = EMULATED[device].disk
            record = json.dumps({"verify": target}).encode()
            run_by_wall_clock(cache, ready_wall_image(cache), record, device, folder)
        else:
            profile = read_profile(_PROFILE)
            target["device_model"] = dict(profile.model)
            record = json.dumps({"verify": target}).encode()
            run_case(cache, ready_image(cache), record, profile.icount_shift, folder)
        return _verdict(folder)


def _verdict(folder: Path) -> dict[str, Any]:
    path = folder / _VERDICT
    if not path.is_file():
        raise GuestError(f"the guest handed out no {_VERDICT}")
    found: dict[str, Any] = json.loads(path.read_bytes())
    return found
