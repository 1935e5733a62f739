"""The trend file of a gate: what is appended is read again, and what is no point is refused."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jojlab.analysis.run.summary import summarise
from jojlab.foundation.errors import UseError
from jojlab.gate.budgets import parse_limit
from jojlab.gate.check import LimitOutcome, LimitVerdict
from jojlab.gate.trend import TrendPoint, TrendValue, append_point, read_trend, trend_point
from jojlab.report.gate import trend_lines, trend_markdown
from tests.captures import make_run


def verdict(folder: Path, value: float | None) -> LimitVerdict:
    (case, *_) = summarise(make_run(folder / "run", seeds=[1], transactions=10)).cases
    limit = parse_limit("flushes_per_commit <= 1", "here")
    outcome = LimitOutcome.KEPT if value is not None else LimitOutcome.NOT_MEASURED
    return LimitVerdict(case, limit, outcome, value)


def test_a_trend_shows_the_commit_that_changed_a_value_last(tmp_path: Path) -> None:
    now = verdict(tmp_path, 4.0)
    path = tmp_path / "trend.jsonl"
    for commit, value in (("aaaaaaa", 1.0), ("bbbbbbb", 2.0), ("ccccccc", 2.0)):
        point = TrendPoint(commit, (TrendValue(now.case_id, "flushes_per_commit", value),))
        append_point(path, point)
    points = append_point(path, TrendPoint("", ()))
    last = TrendPoint("ddddddd", (TrendValue(now.case_id, "flushes_per_commit", 4.0),))
    (line,) = trend_lines((*points, last), [now])
    assert (line.bars, line.before, line.now) == ("▃▅▅ █", "2", "4")
    assert line.changed_at == "ddddddd"
    (line,) = trend_lines(points, [verdict(tmp_path / "same", 2.0)])
    assert line.changed_at == "bbbbbbb"
    assert "| ▃▅▅ █ | 2 | 4 | ddddddd |" in trend_markdown(trend_lines((*points, last), [now]))


def test_an_unmeasured_limit_adds_no_point_to_the_trend(tmp_path: Path) -> None:
    assert trend_point([verdict(tmp_path, None)], tmp_path) == TrendPoint("", ())
    assert trend_lines((), [verdict(tmp_path / "again", None)]) == ()


def test_a_run_of_changed_files_is_not_laid_to_the_commit(tmp_path: Path) -> None:
    def git(words: str) -> str:
        own = ["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@b"]
        return subprocess.run(
            [*own, *words.split()], check=True, capture_output=True
        ).stdout.decode()

    (tmp_path / "app.py").write_text("1")
    for words in ("init -q", "add .", "commit -qm base", "tag v1"):
        git(words)
    commit = git("rev-parse --short=12 HEAD").strip()
    assert trend_point([], tmp_path).commit == commit
    (tmp_path / "gate-trend.jsonl").write_text("")
    assert trend_point([], tmp_path).commit == commit
    (tmp_path / "app.py").write_text("2")
    assert trend_point([], tmp_path).commit == f"{commit}-dirty"


def test_a_line_that_is_no_point_is_named_and_nothing_is_written(tmp_path: Path) -> None:
    path = tmp_path / "trend.jsonl"
    append_point(path, TrendPoint("aaaaaaa", ()))
    content = path.read_bytes() + b'{"commit": 3}\n'
    path.write_bytes(content)
    with pytest.raises(UseError, match="line 2 is no point of a trend"):
        append_point(path, TrendPoint("bbbbbbb", ()))
    assert path.read_bytes() == content


@given(st.binary(max_size=200))
def test_a_trend_of_any_bytes_is_read_or_refused(content: bytes) -> None:
    path = Path("target/trend-of-any-bytes")
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(content)
    try:
        read_trend(path)
    except UseError as error:
        assert "is no point of a trend" in str(error)
