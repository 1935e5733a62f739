"""Tests what UBIFS on raw NAND has after an unmount and a mount: every name, length and byte, on a
part with bad blocks and bits that flip; and read from the NAND, as the model's counters say.
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
TURNS = 4
SMALL = {"capacity_bytes": 16 << 20}
FAULTS = {"factory_bad_blocks": 2, "read_disturb_reads": 250, "error_seed": 7}


@pytest.mark.full
@pytest.mark.parametrize(
    ("faults", "options"),
    [
        pytest.param({}, "compr=none", id="sound"),
        pytest.param(FAULTS, "compr=none,chk_data_crc", id="faults"),
    ],
)
def test_written_files_are_there_after_a_remount(
    cache: Cache, tmp_path: Path, faults: dict[str, int], options: str
) -> None:
    profile = read_profile(RAW_NAND_DEVICE)
    model = {**profile.model, **SMALL, **faults}
    words = " ".join(f"{name}={value}" for name, value in model.items())
    program = tmp_path / "init"
    command = ["cc", "-O1", "-static", "-Wall", "-Werror", "-o", str(program)]
    command += [f'-DPARAMETERS="{words}"', f'-DOPTIONS="{options}"']
    subprocess.run([*command, str(HERE / "ubifs_remount.c")], check=True)
    image = build_image(cache, program, CHECKOUT / "kernel" / "flash", RAW_NAND)
    # Its process 1 has no other way to tell than the console, and no other way to end.
    with pytest.raises(GuestError, match=r"(?m)^ *done$") as told:
        run_case(cache, image, b"{}", profile.icount_shift, tmp_path / "out")
    said = str(told.value)
    assert "other bytes" not in said, said
    assert "are due" not in said, said

    turns = re.findall(r"(?m)^ *turn (\d+) files (\d+) bytes (\d+) read (\d+)$", said)
    assert [int(turn[0]) for turn in turns] == list(range(1, TURNS + 1)), said
    for _, files, held, read in turns:
        # Holes are not read, and each block that is costs its header too.
        assert int(files) > 5, said
        assert int(held) > 200_000, said
        assert int(read) > int(held) / 2, said
    counted = {name: int(value) for name, value in re.findall(r"(?m)^ *(\w+) (\d+)$", said)}
    assert counted["uncorrectable_reads"] == counted["failed_programs"] == 0
    assert counted["bad_blocks"] == faults.get("factory_bad_blocks", 0)
    assert (counted["corrected_reads"] > 0) == bool(faults)
    assert counted["lost_operations"] == 0
