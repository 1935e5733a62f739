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
import io
import re
import tarfile
from dataclasses import dataclass
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from jojlab.foundation.lazy import pa, pc, pq
from jojlab.trace.schema import FLEET_SCHEMA_VERSION, FLEET_TABLES, Column, table_schema

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
# A file's writer gives the kernel a few bytes at a time, some fifty times a table.
_BUFFER_BYTES = 1 << 16
_DICTIONARY_ROWS = 1000  # from how many rows on numbers are stored by a dictionary
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


class BadSegment(Exception):
    """A segment is refused: the word of the reason, and what is wrong where."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason
        self.detail = detail


@dataclass(frozen=True)
class CheckedSegment:
    """A segment whose tables are in FOLDER/TABLE.parquet: its day, and the rows of each."""

    day: str
    rows: dict[str, int]


def take_out(segment: Path, folder: Path) -> CheckedSegment:
    """Check a segment, and write its tables into `folder`, each anew.

    Raises BadSegment, and OSError where the machine fails. What lies in `folder` then is worthless.
    """
    if segment.stat().st_size > SEGMENT_LIMIT_BYTES:
        raise BadSegment(TOO_LARGE, f"more than {SEGMENT_LIMIT_BYTES} bytes")
    members = _members(segment.read_bytes())
    found = {t: _check_table(members[t], t, folder / f"{t}.parquet") for t in FLEET_TABLES}
    only = found["segments"].only
    assert only is not None  # _check_declared
    return CheckedSegment(_check_segment_row(only), {t: found[t].rows for t in found})


def _members(segment: bytes) -> dict[str, memoryview]:
    """Return the file of each table, in the order and by the names of the contract alone."""
    members: dict[str, memoryview] = {}
    try:
        with tarfile.open(fileobj=io.BytesIO(segment), mode="r:", errorlevel=2) as archive:
            for table in FLEET_TABLES:
                member = archive.next()
                if member is None:
                    raise BadSegment(NOT_TAR, f"{table}.parquet is missing")
                regular = member.type in (tarfile.REGTYPE, tarfile.AREGTYPE)
                if member.name != f"{table}.parquet" or not regular or member.pax_headers:
                    raise BadSegment(NOT_TAR, f"where {table}.parquet should be is something else")
                end = member.offset_data + member.size
                if not member.offset_data <= end <= len(segment):
                    raise BadSegment(NOT_TAR, f"{table}.parquet is cut off")
                members[table] = memoryview(segment)[member.offset_data : end]
            if archive.next() is not None:
                raise BadSegment(NOT_TAR, "it has more members than tables")
    except (tarfile.TarError, ValueError, EOFError, UnicodeError) as error:
        raise BadSegment(NOT_TAR, f"no tar: {error}") from error
    return members


@dataclass(frozen=True)
class _Contract:
    """A table as it may be sent, and as it is stored.

    There `texts` are dictionaries: those of `segments` are not, which has one row.
    """

    table: str
    columns: tuple[Column, ...]
    sent: Any
    stored: Any
    texts: list[str]
    repeating: list[str]  # the columns that a dictionary makes smaller


@cache
def _contract(table: str) -> _Contract:
    schema = table_schema(f"fleet/{table}")
    sent, of_texts = schema.arrow(), pa.dictionary(pa.int32(), pa.string())
    texts = [] if table == "segments" else [c.name for c in schema.columns if c.type == "string"]
    fields = [each.with_type(of_texts) if each.name in texts else each for each in sent]
    repeating = schema.dictionary_columns()
    return _Contract(table, schema.columns, sent, pa.schema(fields), texts, repeating)


@dataclass(frozen=True)
class _TableFacts:
    """The number of rows of a table, and what is checked of the row of `segments`."""

    rows: int
    only: dict[str, Any] | None


def check_stored(path: Path, table: str) -> None:
    """Raise BadSegment where a file of the dataset is none that could have come of a segment.

    Its size has no bound, as it may hold many.
    """
    contract = _contract(table)
    try:
        with pq.ParquetFile(path, read_dictionary=contract.texts) as file:
            _check_columns(file.metadata, contract)
            for batch in file.iter_batches(_BATCH_ROWS, use_threads=False):
                _check_batch(batch, contract)
                if table == "segments":
                    for row in batch.select(_ROW_CHECKED).to_pylist():
                        _check_segment_row(row)
    except (pa.ArrowException, OSError, UnicodeError, KeyError) as error:
        if isinstance(error, OSError) and error.errno in MACHINE_ERRORS:
            raise
        raise BadSegment(NOT_PARQUET, f"{table}: {str(error)[:200]}") from error


def _check_table(contents: memoryview, table: str, path: Path) -> _TableFacts:
    """Check schema, sizes and every value of a table, and write it anew to `path`."""
    contract = _contract(table)
    limits = {"thrift_string_size_limit": _FOOTER_LIMIT, "thrift_container_size_limit": 1 << 16}
    source = pa.py_buffer(contents)
    try:
        _check_footer_size(contents, table)
        try:
            # Texts stay dictionaries: a text of 4 KiB in each of a million rows is one in memory.
            file = pq.ParquetFile(pa.BufferReader(source), read_dictionary=contract.texts, **limits)
        except KeyError:  # a column of texts is not there
            with pq.ParquetFile(pa.BufferReader(source), **limits) as file:
                _check_declared(file.metadata, contract)
            raise
        with file:
            _check_declared(file.metadata, contract)
            with (
                pa.output_stream(path, buffer_size=_BUFFER_BYTES) as out,
                _writer(out, contract, file.metadata.num_rows) as writer,
            ):
                return _check_rows(file, contract, writer, len(contents))
    except (pa.ArrowException, OSError, UnicodeError) as error:
        if isinstance(error, OSError) and error.errno in MACHINE_ERRORS:
            raise
        raise BadSegment(NOT_PARQUET, f"{table}: {str(error)[:200]}") from error


def _check_footer_size(contents: memoryview, table: str) -> None:
    """The footer is held in memory many times over once it is parsed."""
    if len(contents) < 12:
        raise BadSegment(NOT_PARQUET, f"{table}: it is too short")
    size_bytes = int.from_bytes(contents[-8:-4], "little")
    if size_bytes + 12 > len(contents):
        raise BadSegment(NOT_PARQUET, f"{table}: its footer is longer than the file")
    if size_bytes > _FOOTER_LIMIT:
        raise BadSegment(TOO_LARGE, f"{table}: a footer of {size_bytes} bytes")


def _check_declared(metadata: Any, contract: _Contract) -> None:
    """Check what the footer says, before anything is decoded."""
    _check_columns(metadata, contract)
    table = contract.table
    if table == "segments" and metadata.num_rows != 1:
        raise BadSegment(BAD_VALUE, f"segments has {metadata.num_rows} rows, not one")
    groups = [metadata.row_group(number) for number in range(min(metadata.num_row_groups, 10**4))]
    size_bytes = sum(group.total_byte_size for group in groups)
    if metadata.num_row_groups > _ROW_GROUPS or metadata.num_rows > TABLE_LIMIT_ROWS:
        raise BadSegment(
            TOO_LARGE, f"{table}: {metadata.num_rows} rows in {metadata.num_row_groups} row groups"
        )
    if not 0 <= size_bytes <= TABLE_LIMIT_BYTES:
        raise BadSegment(TOO_LARGE, f"{table}: {size_bytes} bytes decoded")
    if sum(group.num_rows for group in groups) != metadata.num_rows:
        raise BadSegment(
            NOT_PARQUET, f"{table}: its row groups have other rows than the footer says"
        )


def _check_columns(metadata: Any, contract: _Contract) -> None:
    """Check the names and types of the columns."""
    declared = metadata.schema.to_arrow_schema()
    if not declared.equals(contract.sent, check_metadata=False):
        raise BadSegment(WRONG_SCHEMA, f"{contract.table}: {_difference(declared, contract.sent)}")


def _difference(schema_read: Any, wanted: Any) -> str:
    for place, field in enumerate(wanted):
        if place >= len(schema_read):
            return f"column {field.name} is missing"
        if not schema_read.field(place).equals(field, check_metadata=False):
            null = "" if field.nullable else " not null"
            return f"column {place} is not {field.name} {field.type}{null}"
    return f"{len(schema_read)} columns, not {len(wanted)}"


def _writer(out: Any, contract: _Contract, rows: int) -> Any:
    """Return a writer of batches whose texts are dictionaries, which it keeps as such.

    Most segments have a few rows of each table, of which every page costs more than its values. So
    there are no statistics, which let a reader pass over row groups that these files do not have;
    numbers have a dictionary only where many repeat; and what compresses better than Snappy waits
    for compaction (bench/README.md has the sizes and times).
    """
    return pq.ParquetWriter(
        out, contract.stored, compression="snappy", store_schema=False, write_statistics=False,
        use_dictionary=contract.texts if rows < _DICTIONARY_ROWS else contract.repeating,
    )  # fmt: skip


def _check_rows(file: Any, contract: _Contract, writer: Any, sent_bytes: int) -> _TableFacts:
    """Decode everything, check each value, and write it."""
    rows, size_bytes, different_bytes, only = 0, 0, 0, None
    table = contract.table
    for batch in file.iter_batches(_BATCH_ROWS, use_threads=False):
        rows += batch.num_rows
        decoded_bytes, texts_bytes = _check_batch(batch, contract)
        size_bytes += decoded_bytes
        different_bytes += texts_bytes
        if size_bytes > TABLE_LIMIT_BYTES or rows > TABLE_LIMIT_ROWS:
            raise BadSegment(TOO_LARGE, f"{table}: more than {TABLE_LIMIT_BYTES} bytes decoded")
        if rows > _FREE_ROWS + sent_bytes:
            raise BadSegment(TOO_LARGE, f"{table}: {rows} rows in {sent_bytes} bytes")
        if different_bytes > _FREE_TEXT_BYTES + _TEXT_BYTES_A_BYTE * sent_bytes:
            raise BadSegment(
                TOO_LARGE, f"{table}: more than {_TEXT_BYTES_A_BYTE} times its size in texts"
            )
        if not batch.schema.equals(contract.stored):  # an Arrow schema may be sent along
            raise BadSegment(WRONG_SCHEMA, f"{table}: {_difference(batch.schema, contract.stored)}")
        writer.write_batch(batch)
        if table == "segments" and batch.num_rows == 1:
            [only] = batch.select(_ROW_CHECKED).to_pylist()
    if rows != file.metadata.num_rows:
        raise BadSegment(NOT_PARQUET, f"{table}: {rows} rows, not {file.metadata.num_rows}")
    return _TableFacts(rows, only)


def _check_batch(batch: Any, contract: _Contract) -> tuple[int, int]:
    """Check each value; return the bytes decoded, and those of texts that differ."""
    size_bytes = different_bytes = 0
    batch.validate(full=True)  # of dictionaries too, and that texts are UTF-8
    for column, values in zip(contract.columns, batch.columns, strict=True):
        place = f"{contract.table}.{column.name}"
        if not column.nullable and values.null_count:
            raise BadSegment(BAD_VALUE, f"{place} is null")
        if column.type == "string":
            is_dictionary = isinstance(values, pa.DictionaryArray)
            texts = values.dictionary if is_dictionary else values
            lengths = _check_texts(texts, place, column.name)
            indices = values.indices.drop_null().to_numpy() if is_dictionary else slice(None)
            size_bytes += int(lengths[indices].sum())
            different_bytes += texts.nbytes
        elif column.type == "int64":
            size_bytes += 8 * len(values)
            _check_numbers(values, column.unit, place, column.name)
    return size_bytes, different_bytes


def _check_texts(texts: Any, place: str, name: str) -> Any:
    """Return how many bytes each text has."""
    lengths = pc.binary_length(texts)
    lengths = (lengths.fill_null(0) if texts.null_count else lengths).to_numpy()
    limit = _TEXT_LIMIT_BYTES.get(name, _TEXT_BYTES)
    if lengths.max(initial=0) > limit:
        raise BadSegment(BAD_VALUE, f"{place} is longer than {limit} bytes")
    if name == "databases":
        _check_lists(texts, place)
    return lengths


def _check_lists(texts: Any, place: str) -> None:
    try:
        for text in texts:  # one at a time: all of them may be 256 MiB
            if text.is_valid:
                msgspec.json.decode(text.as_py(), type=list[str])
    except msgspec.DecodeError as error:
        raise BadSegment(BAD_VALUE, f"{place} is no list of texts in JSON") from error


def _check_numbers(values: Any, unit: str, place: str, name: str) -> None:
    values = (values.drop_null() if values.null_count else values).to_numpy()
    if not len(values):
        return
    least, most = values.min(), values.max()
    low, high = 0, _LARGEST.get(name, _LARGEST_OF_UNIT.get(unit, _LARGEST_COUNT))
    if name == "utc_offset_s":
        low, high = -_OFFSET_LIMIT_S, _OFFSET_LIMIT_S
    elif name == "minute":
        high = _LAST_MINUTE
    if least < low or most > high:
        raise BadSegment(BAD_VALUE, f"{place} is {least if least < low else most}")


_ROW_CHECKED = ["schema_version", "spool_id", "privacy", "day", "begin_boot_ns", "end_boot_ns"]


def _check_segment_row(row: dict[str, Any]) -> str:
    """Check a row of `segments`; return its day."""
    if row["schema_version"] != FLEET_SCHEMA_VERSION:
        raise BadSegment(WRONG_SCHEMA, f"schema_version is {row['schema_version']}")
    if not re.fullmatch(r"[0-9a-f]{32}", row["spool_id"]):
        raise BadSegment(BAD_VALUE, "segments.spool_id is not 32 hexadecimal digits")
    if row["privacy"] not in ("names", "hashed", "kinds"):
        raise BadSegment(BAD_VALUE, "segments.privacy is none of names, hashed, kinds")
    # The wall clock may have been set back meanwhile; that of the boot cannot be.
    if row["end_boot_ns"] < row["begin_boot_ns"]:
        raise BadSegment(BAD_VALUE, "segments.end_boot_ns is before begin_boot_ns")
    if not re.fullmatch(r"\d{4}-\d\d-\d\d", row["day"], re.ASCII):
        raise BadSegment(BAD_VALUE, "segments.day is no date")
    try:
        day = date.fromisoformat(row["day"])
    except ValueError as error:
        raise BadSegment(BAD_VALUE, "segments.day is no date") from error
    if not date(1970, 1, 1) <= day <= _LAST_DAY:
        raise BadSegment(BAD_VALUE, f"segments.day is {day}")
    return day.isoformat()
