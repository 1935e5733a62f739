"""Raw NAND of this machine is used only where a user says which, and that it may be."""

from __future__ import annotations

from pathlib import Path

import pytest

from jojlab.experiment.read import find, read
from jojlab.foundation.errors import MachineError, UseError
from jojlab.live.raw_nand import refuse_nand
from jojlab.live.runner import live_case, needs_own_build, refuse_cases


def _mtd(mtd: Path, device: str, **facts: str) -> None:
    (mtd / device).mkdir()
    for fact, text in facts.items():
        (mtd / device / fact).write_text(f"{text}\n")


def test_a_machine_without_raw_nand_is_told_what_is_needed(tmp_path: Path) -> None:
    with pytest.raises(MachineError) as told:
        refuse_nand(Path("/dev/mtd0"), may_destroy=True, mtd=tmp_path)
    assert "no raw NAND" in told.value.message
    assert "modelled NAND" in told.value.remedy
    _mtd(tmp_path, "mtd0", type="nor", name="boot", size="1048576")
    with pytest.raises(MachineError):
        refuse_nand(None, may_destroy=True, mtd=tmp_path)


def test_a_part_has_to_be_named_and_given_up(tmp_path: Path) -> None:
    _mtd(tmp_path, "mtd0", type="nor", name="boot", size="1048576")
    _mtd(tmp_path, "mtd3", type="nand", name="data", size="67108864")
    _mtd(tmp_path, "mtd3ro", type="nand", name="data", size="67108864")
    for node in (None, Path("/dev/mtd0"), Path("/dev/mtd3ro")):
        with pytest.raises(UseError) as told:
            refuse_nand(node, may_destroy=True, mtd=tmp_path)
        assert told.value.remedy == "one of: /dev/mtd3 (data, 64 MiB)"
    with pytest.raises(UseError, match="would be lost"):
        refuse_nand(Path("/dev/mtd3"), may_destroy=False, mtd=tmp_path)


def test_cases_keep_what_is_theirs_and_others_are_refused() -> None:
    asked = read(find("ubifs-allocation"))
    refuse_cases(asked)
    assert needs_own_build(asked)
    case = live_case(asked.cases[0])
    assert case["filesystem"] == "ubifs"
    assert case["ubi_allocator"] == "vmalloc"
    assert not {"device", "kernel", "mkfs_options"} & set(case)
    with pytest.raises(UseError, match="not for ext4, f2fs"):
        refuse_cases(read(find("first-look")))
    with pytest.raises(UseError, match="SQLite of this machine's agent alone"):
        refuse_cases(
            read(find("first-look"), ["filesystem=ubifs", "device=nand-slc-512mb", "sqlite=."])
        )
    with pytest.raises(UseError, match="differ only in what this machine decides"):
        refuse_cases(read(find("ubifs-allocation"), ["kernel=installed,mainline"]))
