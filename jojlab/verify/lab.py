"""The self-test of attribution in a guest, and the disk that it leaves asked by the tools here."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from jojlab.foundation.cache import Cache
from jojlab.guest.handout import unpack
from jojlab.guest.kernel.choose import INSTALLED
from jojlab.lab.attribution import DISK_IMAGE, self_test
from jojlab.lab.job import Kind
from jojlab.lab.lab import Lab
from jojlab.lab.options import Options
from jojlab.model.architecture import X86_64, Architecture
from jojlab.verify import compare
from jojlab.verify.compare import Addresses, Verdict

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
    return Verdict.of(filesystem, found).with_addresses(addresses)


def _addresses(filesystem: str, disk: Path | None, found: dict[str, Any]) -> Addresses:
    if disk is None:
        return compare.unasked(found["writers"], "what was never written reads as noise there")
    return compare.check(filesystem, disk, found["writers"])
