"""No acknowledged segment is lost, and none is there twice, whoever is killed when."""

from __future__ import annotations

from pathlib import Path

from tests.fleet.kills import kill_at_random


def test_no_acknowledged_segment_is_lost(tmp_path: Path) -> None:
    kill_at_random(tmp_path, rounds=3, seed=1)
