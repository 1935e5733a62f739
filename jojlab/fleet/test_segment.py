"""A segment whose bytes were changed is a segment, or refused; nothing else happens."""

from __future__ import annotations

import io
import random
import tarfile
from datetime import date
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from jojlab.fleet.dataset import SEGMENTS
from jojlab.fleet.segment import TABLE_LIMIT_ROWS, Refused, take_out
from jojlab.made_fleet.segment_tables import day_tables
from jojlab.made_fleet.write import packed
from jojlab.trace.schema import FLEET_TABLES


@pytest.fixture(scope="module")
def tables() -> dict[str, pa.Table]:
    return next(day_tables("a" * 32, date(2026, 1, 1), 0, 8, 96, np.random.default_rng(1)))


def rows_of(segment: bytes, folder: Path) -> dict[str, int]:
    path = folder / "segment.tar"
    path.write_bytes(segment)
    return take_out(path, folder).rows


def test_the_tables_come_out_as_they_are(tables: dict[str, pa.Table], tmp_path: Path) -> None:
    files, segment = packed(tables)
    assert rows_of(segment, tmp_path) == {t: tables[t].num_rows for t in FLEET_TABLES}
    for table, contents in files.items():
        assert (tmp_path / f"{table}.parquet").read_bytes() == contents


@pytest.mark.parametrize("seed", range(40))
def test_changed_bytes(tables: dict[str, pa.Table], tmp_path: Path, seed: int) -> None:
    draw = random.Random(seed)
    segment = bytearray(packed(tables)[1])
    with tarfile.open(fileobj=io.BytesIO(bytes(segment))) as archive:
        member = archive.getmembers()[seed % len(FLEET_TABLES)]
    first, end = member.offset_data, member.offset_data + member.size
    if seed % 3:  # the footer says more than the pages do
        first = end - 8 - int.from_bytes(segment[end - 8 : end - 4], "little")
    for _ in range(draw.choice((1, 2, 5))):
        segment[draw.randrange(first, end)] = draw.choice((0, 1, 127, 128, 255))
    try:
        rows = rows_of(bytes(segment), tmp_path)
    except Refused as refused:
        assert refused.detail
    else:
        assert rows[SEGMENTS] == 1
        assert max(rows.values()) <= TABLE_LIMIT_ROWS


def test_two_rows_of_segments(tables: dict[str, pa.Table], tmp_path: Path) -> None:
    two = pa.concat_tables([tables[SEGMENTS], tables[SEGMENTS]])
    with pytest.raises(Refused, match="segments has 2 rows, not one"):
        rows_of(packed({**tables, SEGMENTS: two})[1], tmp_path)
