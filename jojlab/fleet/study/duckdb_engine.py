"""Runs SQL over the tables of a fleet by DuckDB, in this process.

Each table is a view on its files; the columns `device` and `day` are those of the files' folders.
DuckDB reads files of a folder itself, those of a bucket as an Arrow dataset.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

import duckdb
import pyarrow as pa
import pyarrow.dataset as ds

from jojlab.fleet.study.dataset import FleetFiles, Row, UnreadableError
from jojlab.foundation.errors import MachineError, UseError
from jojlab.foundation.interruptible import interruptible
from jojlab.trace.schema import FLEET_TABLES, table_schema

# What needs more is put on the disk for a while.
_MEMORY = "3GB"
_KEYS = {"device": "VARCHAR", "day": "VARCHAR"}


# By what a file may make a query fail; Thrift's errors are plain ones.
_OF_A_FILE = (duckdb.IOException, duckdb.InvalidInputException, duckdb.OutOfRangeException)


class DuckDbEngine:
    """One connection over the files of each table."""

    def __init__(self, files: FleetFiles) -> None:
        self._files = files
        self._connection = duckdb.connect()
        self._connection.execute(f"SET memory_limit = '{_MEMORY}'")
        self._connection.execute("SET temp_directory = $1", [tempfile.gettempdir()])
        self._connection.execute("SET preserve_insertion_order = false")
        self._connection.execute("SET parquet_metadata_cache = true")
        for table in FLEET_TABLES if files.units else ():
            with _readable():
                if files.store.folder is None:
                    self._connection.register(table, _arrow(files, table))
                else:
                    self._view(table)

    def rows(self, sql: str, parameters: Row | None = None) -> list[Row]:
        """Return the rows of one SELECT; `parameters` stand in it as $NAME."""
        with _readable(), interruptible():
            answer = self._connection.execute(sql, parameters)
            names = [column[0] for column in answer.description or ()]
            return [dict(zip(names, row, strict=True)) for row in answer.fetchall()]

    def why_unreadable(self, path: str) -> str:
        """Return why it cannot decode every value of a file; empty if it can, or not by itself."""
        if self._files.store.folder is None:
            return ""
        try:
            with interruptible():
                self._connection.execute(
                    "SELECT bit_xor(hash(COLUMNS(*))) FROM read_parquet($1)", [[path]]
                ).fetchall()
        except duckdb.Error as error:
            return str(error).splitlines()[0][:200]
        return ""

    def query(self, sql: str) -> pa.Table:
        """Return what a user's SELECT gives; raises UseError where it is none, or is refused.

        From then on the connection reads nothing but the dataset's files.
        """
        try:
            kinds = [each.type for each in self._connection.extract_statements(sql)]
            if kinds != [duckdb.StatementType.SELECT]:
                raise UseError(
                    "a query is one statement that reads: SELECT, WITH, DESCRIBE, SUMMARIZE",
                    "leave out other statements and further semicolons",
                )
            readable = [path for paths in self._files.paths.values() for path in paths]
            self._connection.execute("SET allowed_paths = $1", [readable])
            self._connection.execute("SET enable_external_access = false")
            self._connection.execute("SET python_enable_replacements = false")
            self._connection.execute("SET lock_configuration = true")
            with interruptible():
                return self._connection.sql(sql).to_arrow_table()
        except duckdb.Error as error:
            remedy = "the tables: " + ", ".join(FLEET_TABLES) + "; DESCRIBE TABLE has the columns"
            failed = UseError(f"the query failed: {error}", remedy)
            if isinstance(error, _OF_A_FILE) or type(error) is duckdb.Error:
                raise UnreadableError(failed.message) from failed
            raise failed from error

    def _view(self, table: str) -> None:
        # A list of its own for each table: a view cannot take parameters.
        name = f"files_of_{table}"
        self._connection.execute(f"SET VARIABLE {name} = $1", [list(self._files.paths[table])])
        self._connection.execute(
            f"CREATE VIEW {table} AS SELECT * FROM read_parquet(getvariable('{name}'), "
            f"hive_partitioning = true, hive_types = {_KEYS})"
        )


@contextmanager
def _readable() -> Iterator[None]:
    """Raise UnreadableError where DuckDB fails within it, but for want of memory."""
    try:
        yield
    except duckdb.OutOfMemoryException as error:
        raise MachineError(
            f"the dataset does not fit into {_MEMORY} of memory: {error}",
            "--engine spark asks a cluster",
        ) from error
    except duckdb.Error as error:
        is_io = isinstance(error, duckdb.IOException | duckdb.InvalidInputException)
        raise UnreadableError(
            f"a file of the dataset cannot be read: {error}",
            "ask again, as compaction may have replaced it; otherwise restore it",
        ) from (None if is_io else error)


def _arrow(files: FleetFiles, table: str) -> ds.Dataset:
    """Return a table of a bucket, with the columns of its folders' names."""
    keys = pa.schema([("day", pa.string()), ("device", pa.string())])
    columns = [field for field in table_schema(f"fleet/{table}").arrow() if field.name != "day"]
    return ds.dataset(
        list(files.paths[table]),
        schema=pa.schema([*columns, *keys]),
        format="parquet",
        filesystem=files.store.filesystem,
        partitioning=ds.partitioning(keys, flavor="hive"),
    )
