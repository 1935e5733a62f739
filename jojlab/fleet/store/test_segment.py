"""A segment whose bytes were changed is a segment, or refused; nothing else happens."""

from __future__ import annotations

import io
import random
import tarfile
from datetime import date
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from jojlab.fleet.simulation.segments import day_tables, pack
from jojlab.fleet.store.dataset import SEGMENTS
from jojlab.fleet.store.segment import TABLE_LIMIT_ROWS, BadSegment, take_out
from jojlab.trace.schema import FLEET_TABLES


@pytest.fixture(scope="module")
def tables() -> dict[str, pa.Table]:
    return next(day_tables("a" * 32, date(2026, 1, 1), 0, 8, 96, np.random.default_rng(1)))


def rows_of(segment: bytes, folder: Path) -> dict[str, int]:
    path = folder / "segment.tar"
    path.write_bytes(segment)
    return take_out(path, folder).rows


def test_the_rows_come_out_as_they_are_and_nothing_else(
    tables: dict[str, pa.Table], tmp_path: Path
) -> None:
    notes = {"geo": '{"version": 1', "ARROW:schema": "nonsense", "pandas": "{}"}
    noted = {name: table.replace_schema_metadata(notes) for name, table in tables.items()}
    assert rows_of(pack(noted)[1], tmp_path) == {t: tables[t].num_rows for t in FLEET_TABLES}
    for table, rows in tables.items():
        with pq.ParquetFile(tmp_path / f"{table}.parquet") as file:
            assert file.metadata.metadata is None
            columns = [file.metadata.row_group(0).column(n) for n in range(rows.num_columns)]
            assert not any(column.is_stats_set for column in columns)
            assert file.read() == rows
            assert file.schema_arrow == rows.schema


def with_file_path(contents: bytes) -> bytes:
    """A Parquet file whose columns are said to lie in another file."""
    metadata = pq.read_metadata(io.BytesIO(contents))
    metadata.set_file_path("../../../etc/passwd")
    footer = io.BytesIO()
    metadata.write_metadata_file(footer)
    old_bytes = int.from_bytes(contents[-8:-4], "little")
    return contents[: -8 - old_bytes] + footer.getvalue()[len(b"PAR1") :]


def test_a_file_that_names_another_is_written_without_it(
    tables: dict[str, pa.Table], tmp_path: Path
) -> None:
    files = pack(tables)[0]
    named = with_file_path(files["commits"])
    assert pq.read_metadata(io.BytesIO(named)).row_group(0).column(0).file_path
    assert rows_of(tar_of({**files, "commits": named}), tmp_path)
    metadata = pq.read_metadata(tmp_path / "commits.parquet")
    assert metadata.row_group(0).column(0).file_path == ""


def test_false_statistics_do_not_come_through(tables: dict[str, pa.Table], tmp_path: Path) -> None:
    """Readers skip what statistics rule out; those here are of other rows."""
    files = pack(tables)[0]
    shown = tables["io_sums"]
    place = shown.schema.get_field_index("requests")
    wrong = shown.set_column(place, shown.field(place), pa.array([9] * shown.num_rows))
    stream = io.BytesIO()
    pq.write_table(wrong, stream, store_schema=False, use_dictionary=False, compression="none")
    contents = stream.getvalue()
    nine = (9).to_bytes(8, "little")
    pages = contents.index(nine * 2)
    lied = contents[:pages] + contents[pages:].replace(
        nine * shown.num_rows, (7).to_bytes(8, "little") * shown.num_rows, 1
    )
    assert pq.read_metadata(io.BytesIO(lied)).row_group(0).column(place).statistics.min == 9
    rows_of(tar_of({**files, "io_sums": lied}), tmp_path)
    found = duckdb.execute(
        "SELECT count(*) FROM read_parquet($1) WHERE requests = 7",
        [str(tmp_path / "io_sums.parquet")],
    ).fetchone()
    assert found == (shown.num_rows,)


@pytest.mark.parametrize(
    ("table", "column", "value"),
    [
        ("segments", "sequence", 2**50),
        ("segments", "end_boot_ns", 0),
        ("segments", "begin_boot_ns", 2**62),
        ("segments", "end_unix_ns", 2**62 + 1),
        ("commits", "duration_ns", 2**62),
        ("commits", "process", "x" * 129),
        ("commits", "journal_mode", "x" * 65),
        ("io_sums", "file_kind", "x" * 65),
        ("io_sums", "moved_bytes", 2**50 + 1),
    ],
)
def test_values_out_of_their_range_are_refused(
    tables: dict[str, pa.Table], tmp_path: Path, table: str, column: str, value: object
) -> None:
    rows = [row | {column: value} for row in tables[table].to_pylist()]
    changed = pa.Table.from_pylist(rows, schema=tables[table].schema)
    with pytest.raises(BadSegment, match=f"{table}.{column}"):
        rows_of(pack({**tables, table: changed})[1], tmp_path)


@pytest.mark.parametrize(("table", "column"), [("segments", "kernel"), ("commits", "process")])
def test_texts_that_are_no_utf8_are_refused(
    tables: dict[str, pa.Table], tmp_path: Path, table: str, column: str
) -> None:
    whole = tables[table]
    texts = pa.array([b"\xff\xfe"] * whole.num_rows, pa.binary()).view(pa.string())
    place = whole.schema.get_field_index(column)
    changed = whole.set_column(place, whole.schema.field(place), texts)
    with pytest.raises(BadSegment, match="UTF8"):
        rows_of(pack({**tables, table: changed})[1], tmp_path)


def test_a_wall_clock_that_was_set_back_is_no_reason_to_refuse(
    tables: dict[str, pa.Table], tmp_path: Path
) -> None:
    [row] = tables[SEGMENTS].to_pylist()
    row |= {"end_unix_ns": row["begin_unix_ns"] - 10**15}
    changed = pa.Table.from_pylist([row], schema=tables[SEGMENTS].schema)
    assert rows_of(pack({**tables, SEGMENTS: changed})[1], tmp_path)


def test_texts_are_bounded_by_what_came(tables: dict[str, pa.Table], tmp_path: Path) -> None:
    [like] = tables["file_sums"].to_pylist()[:1]

    def rows_of_paths(count: int) -> dict[str, int]:
        rows = [like | {"path": "/x" * 1500 + str(number)} for number in range(count)]
        changed = pa.Table.from_pylist(rows, schema=tables["file_sums"].schema)
        stream = io.BytesIO()
        pq.write_table(changed, stream, compression="zstd")
        return rows_of(tar_of({**pack(tables)[0], "file_sums": stream.getvalue()}), tmp_path)

    assert rows_of_paths(30)["file_sums"] == 30
    with pytest.raises(BadSegment, match="file_sums: more than 32 times its size in texts"):
        rows_of_paths(3000)


def tar_of(files: dict[str, bytes]) -> bytes:
    whole = io.BytesIO()
    with tarfile.open(fileobj=whole, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for table in FLEET_TABLES:
            member = tarfile.TarInfo(f"{table}.parquet")
            member.size = len(files[table])
            archive.addfile(member, io.BytesIO(files[table]))
    return whole.getvalue()


@pytest.mark.parametrize("tenth", range(10))
def test_mutated_segments_that_are_accepted_can_be_read(
    tables: dict[str, pa.Table], tmp_path: Path, tenth: int
) -> None:
    good = pack(tables)[1]
    for seed in range(tenth * 16, tenth * 16 + 16):
        assert_readable(good, seed, tmp_path)


@pytest.mark.full
@pytest.mark.parametrize("part", range(8))
def test_mutated_segments_by_thousands_that_are_accepted_can_be_read(
    tmp_path: Path, part: int
) -> None:
    drawn = np.random.default_rng(part)
    good = pack(next(day_tables("b" * 32, date(2026, 1, 1), 0, 8, 96, drawn)))[1]
    first = 1000 + 400 * part
    accepted = sum(assert_readable(good, seed, tmp_path) for seed in range(first, first + 400))
    assert 0 < accepted < 400


def assert_readable(good: bytes, seed: int, folder: Path) -> bool:
    """Change bytes of a segment; what comes of it is refused, or DuckDB reads it. True if so."""
    draw = random.Random(seed)
    segment = bytearray(good)
    with tarfile.open(fileobj=io.BytesIO(bytes(segment))) as archive:
        member = archive.getmembers()[seed % len(FLEET_TABLES)]
    first, end = member.offset_data, member.offset_data + member.size
    if seed % 3:  # the footer says more than the pages do
        first = end - 8 - int.from_bytes(segment[end - 8 : end - 4], "little")
    for _ in range(draw.choice((1, 2, 5))):
        segment[draw.randrange(first, end)] = draw.choice((0, 1, 127, 128, 255))
    try:
        rows = rows_of(bytes(segment), folder)
    except BadSegment as refused:
        assert refused.detail
        return False
    assert rows[SEGMENTS] == 1
    assert max(rows.values()) <= TABLE_LIMIT_ROWS
    for table in FLEET_TABLES:
        values = duckdb.execute(
            "SELECT * FROM read_parquet($1)", [str(folder / f"{table}.parquet")]
        ).fetchall()
        assert len(values) == rows[table], seed
    return True


def test_two_rows_of_segments(tables: dict[str, pa.Table], tmp_path: Path) -> None:
    two = pa.concat_tables([tables[SEGMENTS], tables[SEGMENTS]])
    with pytest.raises(BadSegment, match="segments has 2 rows, not one"):
        rows_of(pack({**tables, SEGMENTS: two})[1], tmp_path)
