from __future__ import annotations

from dataclasses import replace

import pytest

from jojlab.analysis.commit.lines import BillLine, grown
from jojlab.model.figures import FIGURES

JOURNAL = BillLine("commit", "write", "fs-journal", "", "fsync", 2, 8192)
DATA = BillLine("commit", "write", "data", "a.db", "fsync", 1, 4096)
FLUSH = BillLine("commit", "flush", "flush", "", "fsync", 2, 0)
LATER = BillLine("deferred", "write", "data", "a.db", "writeback", 0.5, 2048)
OTHERS = BillLine("background", "write", "data", "b.db", "fsync", 9, 65536)
LINES = (JOURNAL, DATA, FLUSH, LATER, OTHERS)


@pytest.mark.parametrize(
    ("figure", "lines"),
    [
        ("bytes_per_commit", (JOURNAL, DATA, LATER, FLUSH)),
        ("requests_per_commit", (JOURNAL, FLUSH, DATA, LATER)),
        ("writes_per_commit", (JOURNAL, DATA)),
        ("flushes_per_commit", (FLUSH,)),
        ("fs_journal_bytes_per_commit", (JOURNAL,)),
        ("data_bytes_per_commit", (DATA, LATER)),
        ("deferred_bytes_per_commit", (LATER,)),
        ("background_requests_per_commit", (OTHERS,)),
        ("nand_bytes_per_commit", (OTHERS, JOURNAL, DATA, LATER)),
        ("latency_ns_p99", (JOURNAL, FLUSH, DATA, LATER)),
    ],
)
def test_the_lines_of_a_figure_dearest_first(figure: str, lines: tuple[BillLine, ...]) -> None:
    assert figure in FIGURES
    assert tuple(found.line for found in grown(figure, LINES, None)) == lines


def test_only_what_grew_is_told() -> None:
    more = replace(JOURNAL, bytes=12288)
    [found] = grown("bytes_per_commit", (more, DATA, LATER), LINES)
    assert (found.line, found.before) == (more, JOURNAL)
