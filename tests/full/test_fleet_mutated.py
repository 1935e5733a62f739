"""3,200 segments with changed bytes: the report's engine reads what the server accepts of them."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import numpy as np
import pytest

from jojlab.fleet.simulation.segments import day_tables, pack
from jojlab.fleet.store.test_segment import assert_readable

PARTS, SEGMENTS_A_PART = 8, 400


@pytest.mark.parametrize("part", range(PARTS))
def test_none_is_accepted_that_cannot_be_read(tmp_path: Path, part: int) -> None:
    drawn = np.random.default_rng(part)
    good = pack(next(day_tables("b" * 32, date(2026, 1, 1), 0, 8, 96, drawn)))[1]
    first = 1000 + part * SEGMENTS_A_PART
    accepted = sum(
        assert_readable(good, seed, tmp_path) for seed in range(first, first + SEGMENTS_A_PART)
    )
    assert 0 < accepted < SEGMENTS_A_PART
