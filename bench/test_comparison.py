"""Tests how runs of peers are compared, with runs whose numbers are known."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from bench import recorder, replay, workload
from bench.comparison import Row, compare, show_when_interrupted

Main = Callable[[Sequence[str]], int]
MAINS = pytest.mark.parametrize("main", [workload.main, replay.main, recorder.main])


def test_the_ratio_is_the_median_of_the_turns_own_ratios() -> None:
    called: list[str] = []
    ours_s, theirs_s = iter([10.0, 200.0, 30.0, 40.0, 50.0]), iter([10.0, 100.0, 60.0, 10.0, 50.0])

    def own() -> float:
        called.append("ours")
        return next(ours_s)

    def peer() -> float:
        called.append("theirs")
        return next(theirs_s)

    (row,) = compare("subject", own, {"peer": (0.9, peer)}, 5)
    # Of the turns: 1, 2, 0.5, 4, 1; the ratio of the medians would be 0.8.
    assert (row.ratio, row.spread) == (1.0, (1.0, 2.0))
    assert (row.own_rate, row.peer_rate) == (40.0, 50.0)
    assert row.is_met
    # Who is first changes from turn to turn.
    assert called[::2] == ["theirs", "ours", "theirs", "ours", "theirs"]


def test_the_peer_s_syncs_are_a_ceiling() -> None:
    row = Row("what", "peer", 1.1, 1, 1, 1.0, (1.0, 1.0), syncs=(0.5, 0.8))
    assert row.ceiling == 1.25
    assert not row.is_met
    assert Row("what", "peer", 1.1, 1, 1, 1.1, (1.0, 1.0)).ceiling is None


def test_rows_that_were_measured_are_shown_whatever_ends_the_others(
    capsys: pytest.CaptureFixture[str],
) -> None:
    rows: list[Row] = []
    with pytest.raises(KeyboardInterrupt), show_when_interrupted(rows):
        rows.append(Row("what", "peer", 1.1, 1, 1, 1.1, (1.0, 1.0)))
        raise KeyboardInterrupt
    assert "what" in capsys.readouterr().err


@MAINS
def test_a_directory_that_is_not_there_is_refused(
    main: Main, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--directory", str(tmp_path / "nowhere")])
    assert ended.value.code == 2
    assert f"{tmp_path}/nowhere: no such directory" in capsys.readouterr().err


@MAINS
def test_few_turns_are_refused(main: Main, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--turns", "4"])
    assert ended.value.code == 2
    assert "medians are of 5 at least" in capsys.readouterr().err
