"""The self-test of attribution in a guest, and the disk that it leaves asked by the tools here."""

from __future__ import annotations

import tempfile
from pathlib import Path

from jojlab.guest.verification import verify_in_guest
from jojlab.verify import compare
from jojlab.verify.verdict import Verdict


def verify_in_lab(filesystem: str, *, device: str = "", **options: str | bool) -> Verdict:
    """Run the self-test of one filesystem; `device` and `options` are those of verify_in_guest.

    Raises MachineError or GuestError when the guest cannot run it.
    """
    with tempfile.TemporaryDirectory(prefix="joj-verify-") as folder:
        disk = Path(folder) / "disk"
        found = verify_in_guest(filesystem, disk, device=device, **options)
        addresses = compare.check(filesystem, disk, found["writers"])
    return Verdict.of(filesystem, found).with_addresses(addresses)
