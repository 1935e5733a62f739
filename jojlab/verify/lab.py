"""The self-test of attribution in a guest, and the disk that it leaves asked by the tools here."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from jojlab.guest.verification import verify_in_guest
from jojlab.verify import compare
from jojlab.verify.compare import Addresses
from jojlab.verify.verdict import Verdict

# Deciphered, the zeroes of a fresh disk are noise: its image is not sparse, and outgrows the memory
# that results leave the guest by.
NOISY_STACKS = ("dm-crypt",)


def verify_in_lab(filesystem: str, *, device: str = "", **options: str | bool) -> Verdict:
    """Run the self-test of one filesystem; `device` and `options` are those of verify_in_guest.

    Raises MachineError or GuestError when the guest cannot run it.
    """
    with tempfile.TemporaryDirectory(prefix="joj-verify-") as folder:
        disk = None if options.get("stack") in NOISY_STACKS else Path(folder) / "disk"
        found = verify_in_guest(filesystem, disk, device=device, **options)
        addresses = _addresses(filesystem, disk, found)
    return Verdict.of(filesystem, found).with_addresses(addresses)


def _addresses(filesystem: str, disk: Path | None, found: dict[str, Any]) -> Addresses:
    if disk is None:
        return compare.unasked(found["writers"], "what was never written reads as noise there")
    return compare.check(filesystem, disk, found["writers"])
