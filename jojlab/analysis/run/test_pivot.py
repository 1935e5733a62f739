"""Pivots of cases whose figures are made up."""

from __future__ import annotations

from typing import Any

import pytest

from jojlab.analysis.figures.case_figures import CaseFigures
from jojlab.analysis.run.pivot import pivot, pivot_json, sorted_cases
from jojlab.analysis.run.summary import CaseSummary, RunSummary
from jojlab.analysis.study.parts import Part
from jojlab.foundation.errors import UseError

TPS = {("ext4", "wal", 1): 30.0, ("ext4", "off", 1): 10.0, ("f2fs", "wal", 1): 20.0,
       ("f2fs", "wal", 2): 25.0}  # fmt: skip


def case(name: str, tps: float | None, **fields: Any) -> CaseSummary:
    median = {} if tps is None else {"throughput_tps": tps}
    figures = CaseFigures() if tps is None else CaseFigures((1,), median)
    return CaseSummary(name, name, fields, "ok", "", figures=figures)


def summary(*axes: str) -> RunSummary:
    cases = [
        case("-".join(map(str, key)), tps, filesystem=key[0], journal_mode=key[1], databases=key[2],
             rows=key[2] * 7)
        for key, tps in TPS.items()
    ]  # fmt: skip
    cases.append(case("failed", None, filesystem="xfs", journal_mode="wal", databases=1, rows=7))
    ids = tuple(each.case_id for each in cases)
    part = Part("asked", "?", (), ids, axes, {}, {}, (), ())
    return RunSummary("asked", "?", {}, (1,), tuple(cases), {}, parts=(part,))


def cells(table: Any) -> dict[tuple[Any, ...], list[float | None]]:
    return {key: [cell and cell[0] for cell in row] for key, row in table.rows}


def test_the_last_field_stands_across_and_further_axes_beside_the_rows() -> None:
    run = summary("filesystem", "journal_mode", "databases")
    found = pivot(run, ["filesystem", "journal_mode"], "throughput_tps")
    assert (found.down, found.columns) == (("filesystem", "databases"), ("wal", "off"))
    assert cells(found) == {
        ("ext4", 1): [30.0, 10.0], ("f2fs", 1): [20.0, None], ("f2fs", 2): [25.0, None]
    }  # fmt: skip
    one = pivot(run, ["databases"], "throughput_tps")
    assert one.down == ("filesystem", "journal_mode")
    assert cells(one)["f2fs", "wal"] == [20.0, 25.0]
    assert pivot_json(one)[2] == {
        "filesystem": "f2fs", "journal_mode": "wal", "figure": "throughput_tps",
        "across": "databases", "cells": {"1": 20.0, "2": 25.0},
    }  # fmt: skip


def test_no_cell_holds_two_cases_though_the_experiment_names_no_axis() -> None:
    found = pivot(summary(), ["filesystem"], "throughput_tps")
    assert sum(cell is not None for row in cells(found).values() for cell in row) == len(TPS)


def test_a_figure_that_a_case_lacks_is_no_zero() -> None:
    found = pivot(summary("filesystem"), ["filesystem"], "ftl_wa")
    assert {cell for row in cells(found).values() for cell in row} == {None}


@pytest.mark.parametrize(
    ("by", "figure", "words"),
    [
        (["filesistem"], "throughput_tps", "did you mean 'filesystem'"),
        (["filesystem", "filesystem"], "throughput_tps", "named twice"),
        (["filesystem"], "troughput_tps", "did you mean 'throughput_tps'"),
        ([""], "throughput_tps", "no field of a case"),
    ],
)
def test_a_pivot_of_an_unknown_field_or_figure_is_refused(
    by: list[str], figure: str, words: str
) -> None:
    with pytest.raises(UseError) as caught:
        pivot(summary("filesystem"), by, figure)
    assert words in str(caught.value)


def test_cases_are_sorted_and_those_without_a_value_come_last() -> None:
    run = summary("filesystem")
    assert [c.case_id for c in sorted_cases(run, "throughput_tps")] == [
        "ext4-off-1", "f2fs-wal-1", "f2fs-wal-2", "ext4-wal-1", "failed"
    ]  # fmt: skip
    downwards = sorted_cases(run, "-throughput_tps")
    assert (downwards[0].case_id, downwards[-1].case_id) == ("ext4-wal-1", "failed")
    assert sorted_cases(run, "-filesystem")[0].case_id == "failed"  # xfs: a field it has
    with pytest.raises(UseError, match="did you mean 'throughput_tps'"):
        sorted_cases(run, "-troughput_tps")
