"""Orders of a program's threads: a race that the kernel's own order hides is found in a drawn one,
and a number gives the same order each time.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from jojlab.foundation.tools import need_tool, run_tool
from jojlab.lab.lab import Lab
from tests.guest.test_own_check import answers, own

RACE = Path(__file__).with_name("race.c")


@pytest.mark.full
def test_a_race_is_found_in_another_order_of_the_threads_and_again_in_the_same(
    lab: Lab, tmp_path: Path
) -> None:
    name = own(tmp_path, 'int(any(f"file-{number}" not in there for number in acked))')
    program = str(tmp_path / "app.py")
    compile_it = [str(need_tool("cc", "gcc")), "-O1", "-pthread", "-Wall", "-Werror"]
    run_tool([*compile_it, "-o", program, str(RACE)], "compile it")
    settings = ("acks=stdout", "filesystem=ext4", "schedule=0,1,2,3,4")
    found = list(answers(lab, name, *settings).values())
    lost = [answer["outcomes"].get("lost", 0) for answer in found]
    assert lost[0] == 0, lost
    assert max(lost[1:]) > 2, lost
    again = replace(lab, options=replace(lab.options, use_cache=False))
    assert list(answers(again, name, *settings).values()) == found
