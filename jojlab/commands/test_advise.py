"""joj advise that is interrupted before a setting has figures."""

from __future__ import annotations

from pathlib import Path

import pytest

from jojlab.advise.advice import Adviser
from tests.inside import joj


def test_no_table_is_printed_of_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(adviser: Adviser, folder: Path) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Adviser, "find", interrupted)
    answer = joj("advise", "--fixed", "filesystem=ext4", folder=tmp_path)
    assert answer.returncode == 130
    assert answer.stdout == ""
    assert "what was measured is in the cache" in answer.stderr
