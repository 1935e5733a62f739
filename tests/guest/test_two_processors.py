"""The modelled disk under a guest of two processors: what a record tells is what happened."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from jojlab.device.profile import read_profile
from jojlab.foundation.cache import Cache
from jojlab.foundation.errors import GuestError
from jojlab.guest.image.build import build_image
from tests.guest.conftest import CHECKOUT
from tests.guest.jobs import run_by_wall_clock

HERE = Path(__file__).parent
# Two requests under way at once; what a write takes it is less than what the copy takes.
FAST = {"capacity_bytes": 64 << 20, "queue_depth": 2, "write_access_ns": 1000}


@pytest.mark.full
def test_record_and_contents_are_in_the_order_of_issue(cache: Cache, tmp_path: Path) -> None:
    model = {**read_profile("ufs-3.1").model, **FAST}
    words = " ".join(f"{name}={value}" for name, value in model.items())
    program = tmp_path / "init"
    command = ["cc", "-O1", "-static", "-Wall", "-Werror", f'-DPARAMETERS="{words}"']
    source = str(HERE / "two_processors.c")
    subprocess.run([*command, "-o", str(program), source], check=True)
    image = build_image(cache, program, CHECKOUT / "kernel" / "flash")
    # Its process 1 has no other way to tell than the console, and no other way to end.
    with pytest.raises(GuestError, match=r"(?m)^ *in order$"):
        run_by_wall_clock(cache, image, b"{}", "qemu-sd", tmp_path / "out")
