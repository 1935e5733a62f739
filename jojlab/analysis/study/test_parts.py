import pytest

from jojlab.analysis.figures.case_figures import CaseFigures
from jojlab.analysis.study.parts import Part, statement_rows, verdicts
from jojlab.analysis.study.published import Place, statements


def part_of(name: str, entries: list[dict[str, object]]) -> Part:
    places = [
        Place(mode, {"journal_mode": mode}, CaseFigures(median={"throughput_tps": tps}))
        for mode, tps in (("truncate", 40), ("persist", 50), ("wal", 150))
    ]
    found = statements([{"source": "it", **e} for e in entries], places, ["journal_mode"])
    return Part(name, "", (), (), (), {}, {}, (), (), found)


def test_a_study_is_counted_part_by_part() -> None:
    tps = {"figure": "throughput_tps"}
    truncate, persist, wal = ({"journal_mode": m} for m in ("truncate", "persist", "wal"))
    first = part_of(
        "first",
        [
            {**tps, "value": 39, "anchor": True, "case": truncate},
            {**tps, "value": 100, "case": wal},  # off by half
            {**tps, "value": 25, "unit": "%", "case": persist, "against": truncate},  # as printed
            {**tps, "status": "missing"},
        ],
    )
    second = part_of(
        "second",
        [
            {**tps, "holds": "above", "case": wal, "against": truncate},
            {**tps, "holds": "below", "case": wal, "against": truncate},
            {**tps, "holds": "above", "case": {"journal_mode": "off"}, "against": truncate},
        ],
    )
    (found,) = verdicts([first, second])
    assert [(p.name, p.orderings, p.reproduced) for p in found.parts] == [
        ("first", 0, 0),
        ("second", 2, 1),  # what was not measured counts neither way
    ]
    assert found.whole.errors == pytest.approx((0.5, 0.0))
    assert found.whole.median_error == pytest.approx(0.25)
    assert (found.close, found.missing) == (1, 1)
    assert [point.measured for _, point in found.anchors] == [40]
    assert found.parts[1].median_error is None


def test_a_study_of_two_times_is_counted_for_each() -> None:
    wal = {"figure": "throughput_tps", "value": 100, "case": {"journal_mode": "wal"}}
    places = [
        Place(
            software,
            {"software": software, "journal_mode": "wal"},
            CaseFigures(median={"throughput_tps": tps}),
        )
        for software, tps in (("2012", 110), ("today", 200))
    ]
    part = Part("one", "", (), (), (), {}, {}, (), (), statements([wal], places, ["software"]))
    assert [(each.software, each.whole.errors) for each in verdicts([part])] == [
        ("2012", pytest.approx((0.1,))),
        ("today", (1.0,)),
    ]
    assert [[each.software for each in row] for row in statement_rows(part)] == [["2012", "today"]]
