import pytest

from jojlab.analysis.traffic.characterisation import Characterisation, Share
from jojlab.report.shared import text
from jojlab.report.traffic import chart_rows


@pytest.mark.parametrize(
    ("value_ns", "shown"),
    [(0, "0 ns"), (999, "999 ns"), (1_000, "1.000 µs"), (5_034_207, "5.034 ms"),
     (12_345_678_901, "12.35 s"), (-1_500, "-1.500 µs")],
)  # fmt: skip
def test_a_duration_has_the_unit_that_fits(value_ns: int, shown: str) -> None:
    assert text.duration(value_ns) == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0, "0"), (9.0, "9"), (0.5, "0.5"), (197.999, "198.0"), (0.0396039, "0.0396"),
     (0.00012, "0.00012"), (-4.56e-7, "-0.00000046"), (12_345_678, "12,345,678"),
     (45_678, "45,678"), (999_999.5, "999,999.5")],
)  # fmt: skip
def test_a_number_has_three_digits_or_is_whole(value: float, shown: str) -> None:
    assert text.digits(value) == shown


def test_units_come_from_the_figures_name() -> None:
    assert text.figure("latency_ns_p50", 2_000_000) == "2.000 ms"
    assert text.figure("bytes_per_commit", 69632.0) == "68 KiB"
    assert text.figure("deferred_bytes_per_commit", 40.5) == "40.5 B"
    assert text.figure("requests_per_commit", 9.0) == "9"


def test_spread_is_silent_when_seeds_agree() -> None:
    assert text.spread("requests_per_commit", (9, 9)) == ""
    assert text.spread("requests_per_commit", (9, 11)) == "[9–11]"


def test_changes_carry_a_sign() -> None:
    assert text.change(0.25) == "+25.00 %"
    assert text.change(-0.001) == "-0.10 %"
    assert text.change(None) == "from 0"


def test_sizes_stand_in_the_same_order_in_every_case() -> None:
    kinds = [
        Characterisation(
            case_id,
            {"write": (len(sizes), 4096)},
            tuple(Share("write", "size", str(size), 1, size) for size in sizes),
            (),
        )
        for case_id, sizes in (("a", [4096, 65536]), ("b", [4096, 8192, 16384, 65536]))
    ]
    rows = [row for each in kinds for row in chart_rows(each.case_id, each, "write", "size")]
    ordered = sorted({(row["order"], row["value"]) for row in rows})
    assert [value for _, value in ordered] == ["≤ 4 KiB", "≤ 8 KiB", "≤ 16 KiB", "≤ 64 KiB"]


@pytest.mark.parametrize(
    ("bound", "shown"),
    [(100, "100"), (300 / 29, "11"), (300 / 750, "0.40"), (300 / 223, "1.4"), (0.0301, "0.031")],
)
def test_a_bound_is_plain_and_never_rounded_below(bound: float, shown: str) -> None:
    assert text.upper_bound(bound) == shown
    assert float(shown) >= bound - 1e-9


def test_one_of_a_kind_is_no_plural() -> None:
    assert text.integer(1, "state") == "1 state"
    assert text.integer(4200, "state") == "4,200 states"
    assert text.integer(2, "flush", "flushes") == "2 flushes"
