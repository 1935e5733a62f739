"""joj advise that is interrupted before a setting has figures."""

from __future__ import annotations

from pathlib import Path

import pytest

from jojlab.advise.advice import Adviser, Choice
from jojlab.advise.search import Score
from tests.this_process import joj


def test_no_table_is_printed_of_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt_search(adviser: Adviser, folder: Path) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Adviser, "find", interrupt_search)
    answer = joj("advise", "--fixed", "filesystem=ext4", folder=tmp_path)
    assert answer.returncode == 130
    assert answer.stdout == ""
    assert "what was measured is in the cache" in answer.stderr


def test_an_interrupted_search_prints_its_answers_and_lines_to_paste(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt_search(adviser: Adviser, folder: Path) -> None:
        space = adviser.space
        wal = space.change_field(space.own, "journal_mode", "wal")
        unsafe = space.change_field(wal, "synchronous", "off")
        for number, each in enumerate((unsafe, wal, space.own), 1):
            adviser.scores[each] = Score(number * 1e6, number * 1e6, 2e6, 0, 0)
        persist = space.change_field(space.own, "journal_mode", "persist")
        adviser.scores[persist] = Score(5e5, 5e5, 2e6, 0, 0)
        adviser.advice.refused.append(Choice(persist, adviser.scores[persist], why="it failed"))
        raise KeyboardInterrupt

    monkeypatch.setattr(Adviser, "find", interrupt_search)
    answer = joj("advise", "--fixed", "filesystem=ext4", folder=tmp_path)
    assert answer.returncode == 130
    table, lines = answer.stdout.split("\nthe first ")
    assert "not tested: it failed" in table
    assert ", off" not in table
    # The first of the list is "the first"; what was refused stands last, however cheap.
    rows = [line for line in table.splitlines() if line.startswith("ext4, ")]
    assert [row.split(", ")[1] for row in rows] == ["wal", "truncate", "persist"]
    assert lines.startswith("ext4, wal, full")
    assert "PRAGMA journal_mode = WAL;" in lines
    assert not (tmp_path / "runs").exists()
