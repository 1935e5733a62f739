"""Tests what a memory model counted, with cases that do not have the same buffers."""

from __future__ import annotations

from jojlab.report.memory_model import touch_rows
from jojlab.trace.memory_counts import CaseMemory, CountedPart, Counts, MemoryModel


def counts_of(loads: int) -> Counts:
    return Counts(loads, 1)


def part(**loads: int) -> CountedPart:
    return CountedPart(counts_of(0), {name: counts_of(count) for name, count in loads.items()})


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
