"""Raw NAND takes a program as long as the part's data sheet says: timed from outside the module,
through /dev/mtd0, by the guest's clock.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from jojlab.device.profile import read_profile
from jojlab.foundation.cache import Cache
from jojlab.foundation.errors import GuestError
from jojlab.guest.image.build import RAW_NAND, build_image
from jojlab.model.fields import RAW_NAND_DEVICE
from tests.guest.conftest import CHECKOUT
from tests.guest.jobs import run_case

HERE = Path(__file__).parent
# How far the time may be from the data sheet's, which leaves out commands and the host's own work.
TOLERANCE = 0.1
STATED = {
    "erase": "block_erase_latency_ns",
    "program_by_block": "page_program_latency_ns",
    "read_by_block": "page_read_latency_ns",
    "erase_again": "block_erase_latency_ns",
    "program_by_page": "page_program_latency_ns",
    "read_by_page": "page_read_latency_ns",
}


@pytest.mark.full
def test_a_program_sees_the_times_of_the_data_sheet(cache: Cache, tmp_path: Path) -> None:
    profile = read_profile(RAW_NAND_DEVICE)
    words = " ".join(f"{name}={value}" for name, value in profile.model.items())
    program = tmp_path / "init"
    command = ["cc", "-O1", "-static", "-Wall", "-Werror", f'-DPARAMETERS="{words}"']
    subprocess.run([*command, "-o", str(program), str(HERE / "mtd_speed.c")], check=True)
    image = build_image(cache, program, CHECKOUT / "kernel" / "flash", RAW_NAND)
    # Its process 1 has no other way to tell than the console, and no other way to end.
    with pytest.raises(GuestError, match=r"(?m)^ *done$") as told:
        run_case(cache, image, b"{}", profile.icount_shift, tmp_path / "out")
    print(told.value)  # docs/raw-nand.md has the numbers
    assert "other bytes" not in str(told.value)
    took_ns = {
        name: int(value) for name, value in re.findall(r"(?m)^ *(\w+) (\d+)$", str(told.value))
    }
    stated_ns = {row.figure: row.value for row in profile.stated}
    expected = {
        name: pytest.approx(stated_ns[figure], rel=TOLERANCE) for name, figure in STATED.items()
    }
    assert took_ns == expected
