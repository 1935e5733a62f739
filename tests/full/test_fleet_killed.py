"""Kills server, uploader and compaction of a fleet 200 times."""

from __future__ import annotations

from pathlib import Path

from tests.fleet.kills import kill_at_random


def test_no_acknowledged_segment_is_lost_in_200_kills(tmp_path: Path) -> None:
    kill_at_random(tmp_path, rounds=200, seed=2)
