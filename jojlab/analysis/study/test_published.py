"""Values, changes and bounds worked out by hand."""

from __future__ import annotations

from typing import Any

import pytest

from jojlab.analysis.figures.case_figures import CaseFigures
from jojlab.analysis.study.published import Place, Statement, statements

# Throughput by filesystem, variant and operation.
TPS = {
    ("ext4", "stock", "insert"): 40.0,
    ("ext4", "fdatasync", "insert"): 50.0,
    ("ext4", "stock", "update"): 100.0,
    ("ext4", "fdatasync", "update"): 150.0,
    ("btrfs", "stock", "insert"): 20.0,
    ("btrfs", "fdatasync", "insert"): 21.0,
    ("btrfs", "stock", "update"): 30.0,
    ("btrfs", "fdatasync", "update"): 31.5,
}
AXES = ("filesystem", "operation")


def make_statement(**entry: Any) -> Statement:
    places = [
        Place(
            f"{variant} · {filesystem} · {operation}",
            {"filesystem": filesystem, "variant": variant, "operation": operation, "rows": tps},
            CaseFigures(median={"throughput_tps": tps}),
        )
        for (filesystem, variant, operation), tps in TPS.items()
    ]
    (found,) = statements([{"figure": "throughput_tps", **entry}], places, AXES)
    return found


def test_a_value_has_the_error_of_ours() -> None:
    found = make_statement(
        value=39, case={"filesystem": "ext4", "variant": "stock", "operation": "insert"}
    )
    (point,) = found.points
    assert (found.kind, found.verdict, found.is_missed) == ("value", "", False)
    assert point.measured == 40
    assert point.error == pytest.approx(40 / 39 - 1)
    assert make_statement(value=20, case={"variant": "stock", "filesystem": "ext4"}).is_missed


def test_a_change_compares_cases_that_are_equal_otherwise() -> None:
    fdatasync = {"variant": "fdatasync", "filesystem": "ext4"}
    found = make_statement(value=17, unit="%", case=fdatasync, against={"variant": "stock"})
    assert [(p.label, p.against, p.measured) for p in found.points] == [
        ("fdatasync · ext4 · insert", "stock · ext4 · insert", 25.0),
        ("fdatasync · ext4 · update", "stock · ext4 · update", 50.0),
    ]
    assert found.points[0].error == pytest.approx(1.25 / 1.17 - 1)
    times = make_statement(value=1.5, unit="times", case=fdatasync, against={"variant": "stock"})
    assert [p.measured for p in times.points] == [1.25, 1.5]
    assert times.points[1].error == 0


def test_a_statement_may_be_against_several_axes() -> None:
    found = make_statement(
        value=275,
        unit="%",
        case={"filesystem": "ext4", "variant": "fdatasync", "operation": "update"},
        against={"filesystem": "ext4", "variant": "stock", "operation": "insert"},
    )
    (point,) = found.points
    assert point.measured == 275
    assert point.error == 0


def test_a_bound_holds_in_every_case_or_is_not_reproduced() -> None:
    worst = {"case": {"filesystem": "btrfs"}, "against": {"filesystem": "ext4"}}
    found = make_statement(holds="below", **worst)
    assert (found.verdict, found.bound_counts) == ("reproduced", (4, 4))
    found = make_statement(holds="below", value=-50, unit="%", **worst)
    assert (found.verdict, found.bound_counts) == (
        "not reproduced",
        (3, 4),
    )  # 20 of 40 is not below half
    assert [p.against for p in found.points if not p.holds] == ["stock · ext4 · insert"]
    assert found.is_missed
    assert make_statement(holds="above", **worst).bound_counts == (0, 4)


def test_a_bound_of_changes_compares_them() -> None:
    more = {
        "case": {"variant": "fdatasync", "operation": "update"},
        "against": {"variant": "stock"},
        "than": {"operation": "insert"},
        "holds": "above",
    }
    found = make_statement(**more)
    assert [(p.measured, p.other_change, p.holds) for p in found.points] == [
        (50.0, 25.0, True),
        (pytest.approx(5.0), pytest.approx(5.0), False),
    ]
    little = {**more, "case": {"variant": "fdatasync", "filesystem": "btrfs"}, "holds": "below"}
    found = make_statement(**{**little, "than": {"filesystem": ["ext4"]}})
    assert (found.verdict, found.bound_counts) == ("reproduced", (2, 2))


def test_an_unmeasured_statement_has_no_verdict() -> None:
    gone = {"filesystem": ["xfs", "f2fs"]}
    assert make_statement(value=3, case=gone).verdict == "not measured"
    assert make_statement(value=3, case=gone).points[0].label == "filesystem = xfs or f2fs"
    assert make_statement(holds="above", case={}, against=gone).verdict == "not measured"
    assert make_statement(status="missing").verdict == "not available"
    zero = (
        Place("a", {"variant": "a"}, CaseFigures(median={"x": 0})),
        Place("b", {"variant": "b"}, CaseFigures(median={"x": 1})),
    )
    entry = {"figure": "x", "holds": "above", "case": {"variant": "b"}, "against": {"variant": "a"}}
    (found,) = statements([entry], zero, ())
    assert found.verdict == "not measured"


def test_a_case_that_is_unfit_is_judged_by_nothing() -> None:
    place = Place(
        "a",
        {"filesystem": "ext4"},
        CaseFigures(median={"throughput_tps": 41.0}),
        "changed by --set",
    )
    other = Place("b", {"filesystem": "xfs"}, CaseFigures(median={"throughput_tps": 40.0}))
    value = {"figure": "throughput_tps", "value": 39, "case": {"filesystem": "ext4"}}
    change = {**value, "against": {"filesystem": "xfs"}, "holds": "above"}
    for entry in (
        value,
        change,
        {**change, "case": {"filesystem": "xfs"}, "against": value["case"]},
    ):
        (found,) = statements([entry], [place, other], ["filesystem"])
        assert found.verdict == "not measured"
        assert found.points[0].label.endswith(": changed by --set")


def test_a_value_in_kib_is_held_against_bytes() -> None:
    place = Place("a", {}, CaseFigures(median={"first_journal_write_bytes": 28 * 1024}))
    entry = {"figure": "first_journal_write_bytes", "value": 24, "unit": "KiB", "source": "it"}
    [found] = statements([entry], [place], [])
    assert found.points[0].error == pytest.approx(28 / 24 - 1)


def test_each_software_is_held_against_a_statement_for_itself() -> None:
    places = [
        Place(
            f"{software} · {mode}",
            {"software": software, "journal_mode": mode},
            CaseFigures(median={"throughput_tps": tps}),
        )
        for software, mode, tps in (
            ("2012", "truncate", 40), ("2012", "wal", 50), ("today", "truncate", 40),
            ("today", "wal", 30),
        )
    ]  # fmt: skip
    entries: list[dict[str, Any]] = [
        {
            "figure": "throughput_tps",
            "holds": "above",
            "case": {"journal_mode": "wal"},
            "against": {"journal_mode": "truncate"},
            "explanation": "of today",
            "study_explanation": "of then",
        },
        {"figure": "throughput_tps", "value": 40, "case": {"software": "today"}},
    ]
    found = statements(entries, places, ("software", "journal_mode"))
    assert [(each.entry, each.software, each.verdict, each.reason) for each in found] == [
        (0, "2012", "reproduced", ""),
        (0, "today", "not reproduced", "of today"),
        (1, "today", "", ""),  # it names its software
    ]
    assert found[0].ratio_ends == (1.25, 1.25)
