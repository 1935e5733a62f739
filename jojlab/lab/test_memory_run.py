"""Tests the counts of the memory model: read whole, added up by function, of the very run only."""

from __future__ import annotations

import pytest

from jojlab.foundation.errors import MachineError
from jojlab.guest.memory_model import CORES, COUNTS
from jojlab.lab.job import FOLDED
from jojlab.lab.memory_run import USER, fold, parse, read_modelled, with_added_time
from jojlab.lab.outcome import Outcome
from jojlab.trace.memory_counts import CountedPart, Counts

TEXT = """\
part mount
all 1 0 8 0 0 0 0
buffer sbuf 1 0 8 0 0 0 0
part commit
all 10 5 100 4 6 3 2
buffer sbuf 1 1 16 0 0 1 1
code 401000 2 0 16 0 0 0 0
code ffffffff81000010 3 1 32 1 2 1 0
code ffffffff81000018 1 0 8 0 0 0 0
code ffffffffc0001000 1 1 16 1 1 1 1
end
"""
SYMBOLS = """\
ffffffff81000000 T memcpy
ffffffff81000100 t other
ffffffff82000000 D data
ffffffffc0000f00 t write_node\t[ubifs]
"""


def test_instructions_add_up_to_functions() -> None:
    parts = parse(TEXT, SYMBOLS)
    assert list(parts) == ["mount", "commit"]
    assert parts["mount"] == CountedPart(Counts(1, 0, 8), {"sbuf": Counts(1, 0, 8)}, {})
    found = parts["commit"]
    assert found.all == Counts(10, 5, 100, 4, 6, 3, 2)
    assert found.buffers == {"sbuf": Counts(1, 1, 16, 0, 0, 1, 1)}
    assert found.functions == {
        USER: Counts(2, 0, 16),
        "memcpy": Counts(4, 1, 40, 1, 2, 1, 0),
        "write_node [ubifs]": Counts(1, 1, 16, 1, 1, 1, 1),
    }


def test_time_is_misses_times_what_each_takes() -> None:
    arm11, a9 = CORES["arm11"], CORES["cortex-a9"]
    part = CountedPart(Counts(10, 5, 100, 4, 6, 3, 2))
    assert with_added_time(part, arm11).all.added_ns == 4 * 4 + 6 * 150 + 1 * 0 + 2 * 150
    assert with_added_time(part, a9).all.added_ns == 4 * 1.5 + 6 * 20 + 1 * 20 + 2 * 100


@pytest.mark.parametrize("text", ["", TEXT.removesuffix("end\n")])
def test_counts_that_are_not_whole_are_refused(text: str) -> None:
    with pytest.raises(MachineError, match="last line"):
        fold({COUNTS: text.encode(), "symbols": SYMBOLS.encode()})


def test_another_run_is_refused() -> None:
    plain = Outcome({"manifest.parquet": b"a"})
    files = {COUNTS: TEXT.encode(), "symbols": SYMBOLS.encode()}
    fold(files)
    assert list(files) == [FOLDED]
    assert read_modelled(plain, Outcome({**plain.files, **files}))["commit"].all.loads == 10
    with pytest.raises(MachineError, match="not the run without"):
        read_modelled(plain, Outcome({"manifest.parquet": b"b", **files}))
