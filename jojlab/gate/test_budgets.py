"""Limits as users write them, and as they slip."""

from __future__ import annotations

import pytest

from jojlab.analysis.run.risks import Guarantee
from jojlab.foundation.errors import UseError
from jojlab.gate.budgets import PER_COMMIT, ROW_FIGURES, parse_limit
from jojlab.model.figures import FIGURES


@pytest.mark.parametrize(
    ("text", "name", "bound", "is_least"),
    [
        ("bytes_per_commit <= 30 KiB", "bytes_per_commit", 30 * 1024, False),
        ("bytes_per_commit<=30KiB", "bytes_per_commit", 30 * 1024, False),
        ("flushes_per_commit <= 1", "flushes_per_commit", 1, False),
        ("latency_ns_p99 <= 8.5 ms", "latency_ns_p99", 8_500_000, False),
        ("throughput_tps >= 1_000", "throughput_tps", 1000, True),
        ("dispatch_cpu_percent <= 5 %", "dispatch_cpu_percent", 5, False),
        ("bytes_per_row <= 512 B", "bytes_per_row", 512, False),
    ],
)
def test_a_limit_of_a_figure_is_parsed(text: str, name: str, bound: float, is_least: bool) -> None:
    limit = parse_limit(text, "here")
    assert (limit.name, limit.bound, limit.is_least) == (name, bound, is_least)
    assert limit.holds(bound)
    assert limit.holds(bound + 1) is is_least
    assert limit.holds(bound - 1) is not is_least


def test_a_figure_of_a_row_is_that_of_a_commit() -> None:
    assert parse_limit("bytes_per_row <= 1 B", "here").figure == "bytes_per_commit"


def test_the_figures_that_are_sums_are_named_so() -> None:
    names = {name for name, figure in FIGURES.items() if figure.is_sum}
    assert names == {name for name in FIGURES if name.endswith(PER_COMMIT)}
    assert set(ROW_FIGURES.values()) == names
    assert len(names) > 20


def test_a_limit_of_a_guarantee_is_parsed() -> None:
    assert parse_limit("guarantee = durable", "here").guarantee is Guarantee.DURABLE
    assert parse_limit("guarantee=consistent", "here").guarantee is Guarantee.CONSISTENT


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "is no limit"),
        ("bytes_per_commit", "is no limit"),
        ("bytes_per_commit <=", "is no limit"),
        ("bytes_per_comit <= 3 KiB", "did you mean"),
        ("bytes_per_commit <= 30", "no value in B or KiB"),
        ("bytes_per_commit <= 30 ms", "no value in B or KiB"),
        ("flushes_per_commit <= 1 ms", "no value in plain digits"),
        ("bytes_per_commit = 30 KiB", "compares by ="),
        ("guarantee = none", "durable or consistent"),
        ("guarantee <= durable", "durable or consistent"),
        ("guarantee = 3", "durable or consistent"),
    ],
)
def test_a_slip_in_a_limit_is_named_with_its_place(text: str, told: str) -> None:
    with pytest.raises(UseError, match=r"file, budget 1") as raised:
        parse_limit(text, "file, budget 1")
    assert told in str(raised.value)
    assert raised.value.remedy
