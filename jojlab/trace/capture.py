"""Opens one capture (a folder of Parquet files), and refuses it unless it keeps the contract.

Reads TABLE.parquet for every table that the capture's manifest declares, and what a live tracing
wrote of it before as it went: the segments TABLE/000000.parquet and so on, and the parts
TABLE/now-000000.parquet of files. Every file must be what its checksum says, and have exactly the
schema's columns and types, with no null where the schema allows none; that is in its footer. Only
where there are no checksums, as of a tracing cut short, are the rows decoded to be checked, some at
a time.

`NamedCapture` is a capture among others: the keys that name it there, and its files, which are not
read before somebody asks. `capture_hash` is of what the tables say, not of how Parquet stores it:
row groups, compression, dictionaries and chunks do not matter; every value, null, name, type and
the order of rows do. Paths, times of files and the wall clock of the host are no part of a table.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jojlab.foundation.cache import Cache, Sources, sha256
from jojlab.foundation.document import Mismatch, conform
from jojlab.foundation.errors import DataError
from jojlab.foundation.lazy import np, pa, pc, pq
from jojlab.trace.checksums import check, hashes_of, program, read_checksums
from jojlab.trace.manifest import Manifest
from jojlab.trace.schema import SCHEMA_VERSION, TABLES, table_schema

if TYPE_CHECKING:
    from hashlib import _Hash

    import numpy.typing as npt

_BATCH_ROWS = 16_384
_REMEDY = "run the case again: joj run EXPERIMENT --no-cache"


@dataclass(frozen=True)
class Capture:
    """One checked capture: where it is, how many rows each table has, and its manifest."""

    folder: Path
    row_counts: Mapping[str, int]
    manifest: Mapping[str, Any]

    @classmethod
    def open(
        cls, folder: Path, hashes: Mapping[Path, str] | None = None, cache: Cache | None = None
    ) -> Capture:
        """Check every table; raises DataError naming the file that is wrong.

        `hashes` are those of all its files, where they were read already. Files of the same names
        and hashes that were found good before, by what the cache knows, are not read.
        """
        if not folder.is_dir():
            raise DataError(f"{folder}: no such capture", _REMEDY)
        checksums = read_checksums(folder)
        present = [t for t in TABLES if t == "manifest" or _whole(folder, t).is_file()]
        paths = {table: _paths(folder, table) for table in present}
        if hashes is None and checksums is not None:
            hashes = _hashes_of(folder)
        for path in chain.from_iterable(paths.values()):
            if checksums is not None and hashes is not None:
                check(path, checksums, hashes)

        def inspect(_: Sources) -> _Contents:
            return _inspect(paths, decode=checksums is None)

        if cache is None or hashes is None:
            contents = inspect(Sources())
        else:
            key = _key(folder, hashes, checksums)
            contents = cache.value("analyses", key, _Contents, inspect)
        opened = cls(folder, contents.row_counts, contents.manifest)
        for table in opened.tables:
            _paths(folder, table)  # refuses one that is declared and missing
        if undeclared := sorted(set(present) - set(opened.tables)):
            raise DataError(
                f"{folder}: has {undeclared}, which its manifest does not name", _REMEDY
            )
        return opened

    @property
    def tables(self) -> tuple[str, ...]:
        """The tables that the capture has, in the order of TABLES."""
        return tuple(table for table in TABLES if table in self.manifest["tables"])

    def paths(self, table: str) -> list[Path]:
        """Return the files of `table`: its segments, oldest first, and the one of the whole.

        None where the capture does not have the table.
        """
        return _paths(self.folder, table) if table in self.tables else []

    def read(self, table: str) -> pa.Table:
        """Return one table's rows; DataError when it breaks the contract, or is not there."""
        if table not in self.tables:
            known = ", ".join(self.tables)
            raise DataError(
                f"{self.folder}: this capture has no table {table}; it has {known}",
                "ask a capture that has it, such as one of joj run",
            )
        return pa.concat_tables(_read(path, table) for path in self.paths(table))

    def rows(self, table: str) -> Iterator[dict[str, Any]]:
        """Yield one table's rows in their order; one batch is in memory."""
        for path in self.paths(table):
            with _open_table(path) as file:
                for batch in file.iter_batches(_BATCH_ROWS):
                    yield from batch.to_pylist()

    @property
    def lost_events(self) -> int:
        """Events that the tracer dropped; none where there was no tracer."""
        return int(self.manifest.get("lost_events", 0))

    @property
    def unattributed_bytes(self) -> int:
        """Bytes of requests whose owner the tracer does not know."""
        return int(self.manifest.get("unattributed_bytes", 0))

    @property
    def is_incomplete(self) -> bool:
        """Return whether anything is missing: by the capture's own word, or by its counts."""
        return bool(self.manifest["incomplete"] or self.lost_events or self.unattributed_bytes)


@dataclass(frozen=True)
class _Contents:
    """Facts that were found in the files of a capture."""

    row_counts: dict[str, int]
    manifest: dict[str, Any]


def _hashes_of(folder: Path) -> dict[Path, str]:
    try:
        return hashes_of(folder)
    except OSError as error:
        raise DataError(f"{error.filename}: damaged: {error.strerror}", _REMEDY) from error


def _key(folder: Path, hashes: Mapping[Path, str], checksums: object) -> str:
    """Return the hash of what was found in a capture depends on: this program, and the files."""
    files = sorted((path.relative_to(folder).as_posix(), found) for path, found in hashes.items())
    return sha256(f"capture {program()} {checksums is None} {json.dumps(files)}".encode())


def _inspect(paths: Mapping[str, list[Path]], *, decode: bool) -> _Contents:
    """Check the schema of every table, and with `decode` all values."""
    counts = {
        table: sum(_check(path, table, decode=decode) for path in paths[table]) for table in paths
    }
    [path] = paths["manifest"]
    return _Contents(counts, _manifest(path, _read(path, "manifest")))


def _check_columns(path: Path, table: str, schema: pa.Schema) -> None:
    wanted = table_schema(table).arrow()
    if schema.names != wanted.names:
        missing = sorted(set(wanted.names) - set(schema.names))
        extra = sorted(set(schema.names) - set(wanted.names))
        order = "" if missing or extra else "; same columns in another order"
        raise DataError(
            f"{path}: columns differ from schema/{table}.toml: "
            f"missing {missing}, not in the schema {extra}{order}",
            "use the joj and joj-agent of one and the same version",
        )
    for field in wanted:
        if schema.field(field.name).type != field.type:
            raise DataError(
                f"{path}: column {field.name} is {schema.field(field.name).type}, "
                f"schema/{table}.toml says {field.type}",
                "use the joj and joj-agent of one and the same version",
            )


def _whole(folder: Path, table: str) -> Path:
    return folder / f"{table}.parquet"


def _paths(folder: Path, table: str) -> list[Path]:
    whole = _whole(folder, table)
    if not whole.is_file():
        raise DataError(f"{whole}: missing table", _REMEDY)
    segments = (folder / table).glob("*.parquet")
    # By number, whose digits are six or more.
    return [*sorted(segments, key=lambda path: (len(path.name), path.name)), whole]


@contextmanager
def _open_table(path: Path) -> Iterator[Any]:
    """Open a Parquet file; what is wrong with it is a DataError."""
    try:
        with pq.ParquetFile(path, page_checksum_verification=True) as file:
            yield file
    except (pa.ArrowException, OSError) as error:
        raise DataError(f"{path}: damaged or cut short: {error}", _REMEDY) from error


def _read(path: Path, table: str) -> pa.Table:
    _check(path, table, decode=True)
    with _open_table(path) as file:
        return file.read()


def _check(path: Path, table: str, *, decode: bool) -> int:
    """Check one file, with `decode` every value of it; return how many rows it has."""
    with _open_table(path) as file:
        _check_columns(path, table, file.schema_arrow)
        if decode:
            for batch in file.iter_batches():
                batch.validate(full=True)  # offsets in range, strings valid UTF-8
        for place, column in enumerate(table_schema(table).columns):
            if column.nullable or not file.schema_arrow.field(place).nullable:
                continue
            if nulls := _nulls(file, place):
                raise DataError(
                    f"{path}: column {column.name} has {nulls} nulls; "
                    f"schema/{table}.toml allows none",
                    _REMEDY,
                )
        return int(file.metadata.num_rows)


def _nulls(file: Any, place: int) -> int:
    """Return how many nulls a column has: by the footer, or where that does not say, by itself."""
    groups = [file.metadata.row_group(number) for number in range(file.metadata.num_row_groups)]
    statistics = [group.column(place).statistics for group in groups]
    if all(each is not None and each.has_null_count for each in statistics):
        return sum(each.null_count for each in statistics)
    name = file.schema_arrow.names[place]
    return sum(batch.column(0).null_count for batch in file.iter_batches(columns=[name]))


def _manifest(path: Path, content: pa.Table) -> dict[str, Any]:
    manifest: dict[str, Any] = {}
    for row in content.to_pylist():
        try:
            manifest[row["key"]] = json.loads(row["value"])
        except (json.JSONDecodeError, RecursionError) as error:
            raise DataError(f"{path}: key {row['key']}: not JSON: {error}", _REMEDY) from error
    if (version := manifest.get("schema_version", SCHEMA_VERSION)) != SCHEMA_VERSION:
        raise DataError(
            f"{path}: schema_version {version}, this joj reads {SCHEMA_VERSION}",
            "use the joj that wrote the run, or run the experiment again",
        )
    try:
        conform(manifest, Manifest)
    except Mismatch as error:
        raise DataError(f"{path}: {error}", _REMEDY) from error
    if unknown := [table for table in manifest["tables"] if table not in TABLES]:
        raise DataError(f"{path}: tables: {unknown} are not of schema/", _REMEDY)
    manifest.setdefault("incomplete", False)
    return manifest


@dataclass(frozen=True)
class NamedCapture:
    """A capture among others, with the keys that name it there."""

    run: str
    case_id: str
    seed: int
    folder: Path
    # Where this process has checked it already.
    checked: Capture | None = None

    @cached_property
    def hashes(self) -> dict[Path, str]:
        """The hash of every file, or raise OSError when one cannot be read."""
        return hashes_of(self.folder)

    @cached_property
    def capture(self) -> Capture:
        """The capture, checked, or raise DataError when it is damaged."""
        try:
            return self.checked or Capture.open(self.folder, self.hashes)
        except OSError:
            return Capture.open(self.folder)  # which says what is wrong


def capture_hash(capture: Capture) -> str:
    """Return the sha256 of one capture's tables, in hexadecimal."""
    digest = hashlib.sha256()
    for table in capture.tables:
        content = capture.read(table)
        if table == "manifest":  # a set of keys: their order says nothing
            content = content.sort_by("key")
        _frame(digest, f"table {table} {content.num_rows}".encode())
        for name in content.column_names:
            _hash_column(digest, name, content.column(name).combine_chunks())
    return digest.hexdigest()


def _frame(digest: _Hash, data: bytes | memoryview) -> None:
    """Feed `data` with its length before it, so that no two sequences look alike."""
    digest.update(len(data).to_bytes(8, "little"))
    digest.update(data)


def _hash_column(digest: _Hash, name: str, column: pa.Array) -> None:
    _frame(digest, f"column {name} {column.type}".encode())
    _frame(digest, np.packbits(_numbers(pc.is_valid(column), bool)).tobytes())
    if pa.types.is_string(column.type):
        filled = pc.fill_null(column, "")
        lengths = _numbers(pc.binary_length(filled), np.int64)
        _frame(digest, lengths.astype("<i8").tobytes())
        _frame(digest, "".join(filled.to_pylist()).encode())
    elif pa.types.is_boolean(column.type):
        _frame(digest, np.packbits(_numbers(pc.fill_null(column, False), bool)).tobytes())
    else:
        _frame(digest, _numbers(pc.fill_null(column, 0), np.int64).astype("<i8").tobytes())


def _numbers(array: pa.Array, dtype: type[np.generic] | type[bool]) -> npt.NDArray[Any]:
    numbers: npt.NDArray[Any] = array.to_numpy(zero_copy_only=False)
    return numbers.astype(dtype)
