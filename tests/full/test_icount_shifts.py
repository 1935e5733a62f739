"""Every icount_shift that a profile may have: the guest ends, and gives the same bytes again.

From shift 2 on QEMU's record mode aborted: the boot had 2^31 to 2^32 instructions. A higher shift
takes longer: fewer instructions are between two ticks of the kernel's timer.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from jojlab.foundation.cache import Cache
from jojlab.guest.image.build import Image
from jojlab.model.device_keys import CPU_LIMITS
from tests.guest.conftest import real_case
from tests.guest.jobs import run_case

FIRST, LAST = CPU_LIMITS["icount_shift"]


@pytest.mark.parametrize("shift", range(FIRST, LAST + 1))
def test_a_case_repeats_to_the_byte(cache: Cache, image: Image, tmp_path: Path, shift: int) -> None:
    both = []
    for out in (tmp_path / "first", tmp_path / "second"):
        run_case(cache, image, real_case(), shift, out, use_cached=False)
        both.append({path.name: path.read_bytes() for path in out.iterdir()})
    assert both[0]
    assert both[0] == both[1]
