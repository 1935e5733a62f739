"""Checks a segment that a device sent, and takes its tables out of it.

A segment is a tar of five Parquet files in a fixed order (docs/fleet.md). It is a stranger's: sizes
are looked at before anything is decoded, and no name of the tar becomes a path. Its bytes do not
enter the dataset either: every value is decoded, checked and written anew. So what readers trust in
a Parquet file (footers, statistics, paths of other files, metadata) is ours, and what one engine
could decode another can. Runs in a worker whose memory is limited (worker.py); what the limits here
let through fits into it.
"""

from __future__ import annotations

import errno
import os
import re
import tarfile
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import IO, Any

import msgspec

from jojlab.foundation.lazy import pa
from jojlab.trace.schema import FLEET_SCHEMA_VERSION, FLEET_TABLES, TableSchema, table_schema

SEGMENT_LIMIT_BYTES = 16 << 20
TABLE_LIMIT_BYTES = 256 << 20  # decoded; a text counts as often as it stands there
TABLE_LIMIT_ROWS = 1_000_000
_ROW_GROUPS = 256
_TEXT_BYTES = 4096
_WORD_BYTES = 64
# Words of a list, which a newer collector may add to; a command name has 15 bytes, and up to three
# for each that is no UTF-8.
_TEXT_LIMIT_BYTES = {"databases": 65536, "process": 128} | dict.fromkeys(
    ("kind", "journal_mode", "sync_call", "file_kind", "block_type", "operation", "event"),
    _WORD_BYTES,
)
# A few kilobytes can hold gigabytes of texts that differ in a few letters, and all who group by
# them hold each: what differs may be so much for each byte that came, beyond what is always free.
_FREE_TEXT_BYTES = 128 << 10
_TEXT_BYTES_A_BYTE = 32
# Likewise rows. A collector has up to 20,000 of a table, of some nine bytes each (docs/fleet.md).
_FREE_ROWS = 20_000
_BATCH_ROWS = 1 << 16
_BLOCK_BYTES = 1 << 20
# Sums and differences must not overflow 64 bits; times since 1970 are 2**60.6 ns.
_LARGEST_COUNT = 2**50
_LARGEST_OF_UNIT = {"ns": 2**62}
_LARGEST = {
    "sequence": 2**26,  # one a second for two years
    "begin_boot_ns": 2**60,  # 36 years
    "end_boot_ns": 2**60,
    "duration_ns": 2**56,  # two years
}
# A day that has not come is taken, as a device's clock may be wrong: only a time has a bound.
_LAST_DAY = date(2116, 2, 20)  # of 2**62 ns
_FOOTER_LIMIT = 1 << 20
_OFFSET_LIMIT_S = 86400
_LAST_MINUTE = 1439  # of a day

# What the machine lacks, whatever the segment is: it is not refused for that, and may come again.
MACHINE_ERRORS = frozenset(
    {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EROFS, errno.EACCES, errno.ENOENT,
     errno.EMFILE, errno.ENFILE}
)  # fmt: skip

# Why a segment is refused: the words of quarantine and metrics.
NOT_TAR = "not-a-segment"
TOO_LARGE = "too-large-decoded"
NOT_PARQUET = "not-parquet"
WRONG_SCHEMA = "wrong-schema"
BAD_VALUE = "bad-value"


class Refused(Exception):
    """A segment is refused: the word of the reason, and what is wrong where."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason
        self.detail = detail


@dataclass(frozen=True)
class Checked:
    """A segment whose tables are in FOLDER/TABLE.parquet: its day, and the rows of each."""

    day: str
    rows: dict[str, int]


def take_out(segment: Path, folder: Path) -> Checked:
    """Check a segment, and write its tables into `folder`, each anew.

    Raises Refused, and OSError where the machine fails. What lies in `folder` then is worthless.
    """
    if segment.stat().st_size > SEGMENT_LIMIT_BYTES:
        raise Refused(TOO_LARGE, f"more than {SEGMENT_LIMIT_BYTES} bytes")
    _take_members(segment, folder)
    found = {table: _check_table(folder / f"{table}.parquet", table) for table in FLEET_TABLES}
    segments = found["segments"]
    if segments.rows != 1 or segments.only is None:
        raise Refused(BAD_VALUE, f"segments has {segments.rows} rows, not one")
    return Checked(_check_segment_row(segments.only), {t: found[t].rows for t in found})


def _take_members(segment: Path, folder: Path) -> None:
    """Copy the members out, in the order and by the names of the contract alone."""
    try:
        with tarfile.open(segment, "r:", errorlevel=2) as archive, segment.open("rb") as stream:
            for table in FLEET_TABLES:
                member = archive.next()
                if member is None:
                    raise Refused(NOT_TAR, f"{table}.parquet is missing")
                regular = member.type in (tarfile.REGTYPE, tarfile.AREGTYPE)
                if member.name != f"{table}.parquet" or not regular or member.pax_headers:
                    raise Refused(NOT_TAR, f"where {table}.parquet should be is something else")
                if member.offset_data + member.size > SEGMENT_LIMIT_BYTES:
                    raise Refused(NOT_TAR, f"{table}.parquet is cut off")
                stream.seek(member.offset_data)
                with (folder / f"{table}.parquet").open("wb") as out:
                    _copy(stream, out, member.size, table)
            if archive.next() is not None:
                raise Refused(NOT_TAR, "it has more members than tables")
    except (tarfile.TarError, ValueError, EOFError, UnicodeError) as error:
        raise Refused(NOT_TAR, f"no tar: {error}") from error


def _copy(stream: IO[bytes], out: IO[bytes], size_bytes: int, table: str) -> None:
    while size_bytes:
        block = stream.read(min(size_bytes, _BLOCK_BYTES))
        if not block:
            raise Refused(NOT_TAR, f"{table}.parquet is cut off")
        out.write(block)
        size_bytes -= len(block)


@dataclass(frozen=True)
class _Decoded:
    """The number of rows of a table, and the rows if it is one."""

    rows: int
    only: dict[str, Any] | None


def check_stored(path: Path, table: str) -> None:
    """Raise Refused where a file of the dataset is none that could have come of a segment.

    Its size has no bound, as it may hold many.
    """
    import pyarrow.parquet as pq

    schema = table_schema(f"fleet/{table}")
    texts = [column.name for column in schema.columns if column.type == "string"]
    try:
        with pq.ParquetFile(path, read_dictionary=texts) as file:
            declared = file.metadata.schema.to_arrow_schema()
            if not declared.equals(schema.arrow(), check_metadata=False):
                raise Refused(WRONG_SCHEMA, f"{table}: {_difference(declared, schema)}")
            for batch in file.iter_batches(_BATCH_ROWS, use_threads=False):
                _check_batch(batch, schema, table)
                if table == "segments":
                    for row in batch.to_pylist():
                        _check_segment_row(row)
    except (pa.ArrowException, OSError, UnicodeError, KeyError) as error:
        if isinstance(error, OSError) and error.errno in MACHINE_ERRORS:
            raise
        raise Refused(NOT_PARQUET, f"{table}: {str(error)[:200]}") from error


def _check_table(path: Path, table: str) -> _Decoded:
    """Check schema, sizes and every value of a table, and write it anew in its place."""
    import pyarrow.parquet as pq

    schema = table_schema(f"fleet/{table}")
    texts = [column.name for column in schema.columns if column.type == "string"]
    limits = {"thrift_string_size_limit": _FOOTER_LIMIT, "thrift_container_size_limit": 1 << 16}
    try:
        _check_footer_size(path, table)
        try:
            # Texts stay dictionaries: a text of 4 KiB in each of a million rows is one in memory.
            file = pq.ParquetFile(path, read_dictionary=texts, **limits)
        except KeyError:  # a column of texts is not there
            with pq.ParquetFile(path, **limits) as file:
                _check_declared(file.metadata, schema, table)
            raise
        with file:
            _check_declared(file.metadata, schema, table)
            anew = path.with_suffix(".anew")
            with _writer(anew, schema) as writer:
                found = _check_rows(file, schema, table, writer, path.stat().st_size)
            os.replace(anew, path)
            return found
    except (pa.ArrowException, OSError, UnicodeError) as error:
        if isinstance(error, OSError) and error.errno in MACHINE_ERRORS:
            raise
        raise Refused(NOT_PARQUET, f"{table}: {str(error)[:200]}") from error


def _check_footer_size(path: Path, table: str) -> None:
    """The footer is held in memory many times over once it is parsed."""
    with path.open("rb") as stream:
        whole_bytes = stream.seek(0, 2)
        if whole_bytes < 12:
            raise Refused(NOT_PARQUET, f"{table}: it is too short")
        stream.seek(-8, 2)
        size_bytes = int.from_bytes(stream.read(4), "little")
    if size_bytes + 12 > whole_bytes:
        raise Refused(NOT_PARQUET, f"{table}: its footer is longer than the file")
    if size_bytes > _FOOTER_LIMIT:
        raise Refused(TOO_LARGE, f"{table}: a footer of {size_bytes} bytes")


def _check_declared(metadata: Any, schema: TableSchema, table: str) -> None:
    """Check what the footer says, before anything is decoded."""
    declared = metadata.schema.to_arrow_schema()
    if not declared.equals(schema.arrow(), check_metadata=False):
        raise Refused(WRONG_SCHEMA, f"{table}: {_difference(declared, schema)}")
    groups = [metadata.row_group(number) for number in range(min(metadata.num_row_groups, 10**4))]
    size_bytes = sum(group.total_byte_size for group in groups)
    if metadata.num_row_groups > _ROW_GROUPS or metadata.num_rows > TABLE_LIMIT_ROWS:
        raise Refused(
            TOO_LARGE, f"{table}: {metadata.num_rows} rows in {metadata.num_row_groups} row groups"
        )
    if not 0 <= size_bytes <= TABLE_LIMIT_BYTES:
        raise Refused(TOO_LARGE, f"{table}: {size_bytes} bytes decoded")
    if sum(group.num_rows for group in groups) != metadata.num_rows:
        raise Refused(NOT_PARQUET, f"{table}: its row groups have other rows than the footer says")


def _difference(schema_read: Any, schema: TableSchema) -> str:
    wanted = schema.arrow()
    for place, field in enumerate(wanted):
        if place >= len(schema_read):
            return f"column {field.name} is missing"
        if not schema_read.field(place).equals(field, check_metadata=False):
            null = "" if field.nullable else " not null"
            return f"column {place} is not {field.name} {field.type}{null}"
    return f"{len(schema_read)} columns, not {len(wanted)}"


def _writer(path: Path, schema: TableSchema) -> Any:
    """Return a writer of batches whose texts are dictionaries, which it keeps as such."""
    import pyarrow.parquet as pq

    fields = [
        field.with_type(pa.dictionary(pa.int32(), pa.string()))
        if field.type == pa.string()
        else field
        for field in schema.arrow()
    ]
    return pq.ParquetWriter(path, pa.schema(fields), compression="zstd", store_schema=False)


def _check_rows(
    file: Any, schema: TableSchema, table: str, writer: Any, sent_bytes: int
) -> _Decoded:
    """Decode everything, check each value, and write it."""
    rows, size_bytes, different_bytes, only = 0, 0, 0, None
    for batch in file.iter_batches(_BATCH_ROWS, use_threads=False):
        rows += batch.num_rows
        decoded_bytes, texts_bytes = _check_batch(batch, schema, table)
        size_bytes += decoded_bytes
        different_bytes += texts_bytes
        if size_bytes > TABLE_LIMIT_BYTES or rows > TABLE_LIMIT_ROWS:
            raise Refused(TOO_LARGE, f"{table}: more than {TABLE_LIMIT_BYTES} bytes decoded")
        if rows > _FREE_ROWS + sent_bytes:
            raise Refused(TOO_LARGE, f"{table}: {rows} rows in {sent_bytes} bytes")
        if different_bytes > _FREE_TEXT_BYTES + _TEXT_BYTES_A_BYTE * sent_bytes:
            raise Refused(
                TOO_LARGE, f"{table}: more than {_TEXT_BYTES_A_BYTE} times its size in texts"
            )
        writer.write_batch(pa.record_batch(batch.columns, schema=writer.schema))
        if rows == batch.num_rows == 1:
            [only] = batch.to_pylist()
    if rows != file.metadata.num_rows:
        raise Refused(NOT_PARQUET, f"{table}: {rows} rows, not {file.metadata.num_rows}")
    return _Decoded(rows, only)


def _check_batch(batch: Any, schema: TableSchema, table: str) -> tuple[int, int]:
    """Check each value; return the bytes decoded, and those of texts that differ."""
    size_bytes = different_bytes = 0
    batch.validate(full=True)
    for column, values in zip(schema.columns, batch.columns, strict=True):
        if not column.nullable and values.null_count:
            raise Refused(BAD_VALUE, f"{table}.{column.name} is null")
        if column.type == "string":
            size_bytes += _check_texts(values, f"{table}.{column.name}", column.name)
            different_bytes += values.dictionary.nbytes
            if column.name == "databases":
                _check_lists(values, f"{table}.{column.name}")
        elif column.type == "int64":
            size_bytes += 8 * len(values)
            _check_numbers(values, column.unit, f"{table}.{column.name}", column.name)
    return size_bytes, different_bytes


def _check_texts(values: Any, place: str, name: str) -> int:
    """Return how many bytes the texts are, each as often as it stands there."""
    import pyarrow.compute as pc

    values.dictionary.validate(full=True)  # UTF-8, too
    lengths = pc.binary_length(values.dictionary)
    limit = _TEXT_LIMIT_BYTES.get(name, _TEXT_BYTES)
    if (pc.max(lengths).as_py() or 0) > limit:
        raise Refused(BAD_VALUE, f"{place} is longer than {limit} bytes")
    return int(pc.sum(lengths.take(values.indices)).as_py() or 0)


def _check_lists(values: Any, place: str) -> None:
    try:
        for text in values.dictionary:  # one at a time: all of them may be 256 MiB
            if text.is_valid:
                msgspec.json.decode(text.as_py(), type=list[str])
    except msgspec.DecodeError as error:
        raise Refused(BAD_VALUE, f"{place} is no list of texts in JSON") from error


def _check_numbers(values: Any, unit: str, place: str, name: str) -> None:
    import pyarrow.compute as pc

    least, most = (pc.min_max(values)[end].as_py() for end in ("min", "max"))
    if least is None:
        return
    low, high = 0, _LARGEST.get(name, _LARGEST_OF_UNIT.get(unit, _LARGEST_COUNT))
    if name == "utc_offset_s":
        low, high = -_OFFSET_LIMIT_S, _OFFSET_LIMIT_S
    elif name == "minute":
        high = _LAST_MINUTE
    if least < low or most > high:
        raise Refused(BAD_VALUE, f"{place} is {least if least < low else most}")


def _check_segment_row(row: dict[str, Any]) -> str:
    """Check a row of `segments`; return its day."""
    if row["schema_version"] != FLEET_SCHEMA_VERSION:
        raise Refused(WRONG_SCHEMA, f"schema_version is {row['schema_version']}")
    if not re.fullmatch(r"[0-9a-f]{32}", row["spool_id"]):
        raise Refused(BAD_VALUE, "segments.spool_id is not 32 hexadecimal digits")
    if row["privacy"] not in ("names", "hashed", "kinds"):
        raise Refused(BAD_VALUE, "segments.privacy is none of names, hashed, kinds")
    # The wall clock may have been set back meanwhile; that of the boot cannot be.
    if row["end_boot_ns"] < row["begin_boot_ns"]:
        raise Refused(BAD_VALUE, "segments.end_boot_ns is before begin_boot_ns")
    if not re.fullmatch(r"\d{4}-\d\d-\d\d", row["day"], re.ASCII):
        raise Refused(BAD_VALUE, "segments.day is no date")
    try:
        day = date.fromisoformat(row["day"])
    except ValueError as error:
        raise Refused(BAD_VALUE, "segments.day is no date") from error
    if not date(1970, 1, 1) <= day <= _LAST_DAY:
        raise Refused(BAD_VALUE, f"segments.day is {day}")
    return day.isoformat()
