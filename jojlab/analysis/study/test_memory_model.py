"""What a memory model counted, of cases that do not have the same buffers."""

from __future__ import annotations

from jojlab.analysis.study.memory_model import CaseMemory, Counted, CountedPart, MemoryModel
from jojlab.report.memory_model import touch_rows


def counted(loads: int) -> Counted:
    return Counted(loads, 1, 0, 0, 0, 0, 0, 0.0)


def part(**loads: int) -> CountedPart:
    return CountedPart(counted(0), {name: counted(count) for name, count in loads.items()})


def test_a_case_without_a_buffer_says_nothing_of_it() -> None:
    model = MemoryModel(
        "arm11", "A core", [],
        [
            CaseMemory("ext4", {"1": {"mount": part(), "write-pass": part()}}),
            CaseMemory("ubifs", {"1": {"mount": part(sbuf=4), "commit": part(sbuf=1)},
                                 "2": {"mount": part(sbuf=2), "commit": part(sbuf=1)}}),
        ],
    )  # fmt: skip
    assert model.parts == ("mount", "write-pass", "commit")
    assert list(touch_rows(model)) == [["sbuf", "3–5", "–", "2"]]
