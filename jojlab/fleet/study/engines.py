"""The engines that run SQL over the tables of a fleet: DuckDB on this machine, and Apache Spark.

Each table is a view on its files; the columns `device` and `day` are those of the files' folders.
DuckDB reads files of a folder itself, those of a bucket as an Arrow dataset. Of Spark all machines
of the cluster see the files under one path (a shared folder, or a bucket by s3a). Questions are
DuckDB's SQL, which sqlglot translates.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

import duckdb
import pyarrow as pa
import pyarrow.dataset as ds

from jojlab.fleet.study.dataset import EngineName, FleetEngine, FleetFiles, Row, UnreadableError
from jojlab.foundation.errors import MachineError, UseError
from jojlab.foundation.signals import interruptible
from jojlab.trace.schema import FLEET_TABLES, table_schema
from jojlab.trace.sql import MEMORY_LIMIT, connect, lock_down, refuse_unless_one_select

_KEYS = {"device": "VARCHAR", "day": "VARCHAR"}


# By what a file may make a query fail; Thrift's errors are plain ones.
_OF_A_FILE = (duckdb.IOException, duckdb.InvalidInputException, duckdb.OutOfRangeException)


class DuckDbEngine:
    """One connection over the files of each table."""

    def __init__(self, files: FleetFiles) -> None:
        self._files = files
        self._connection = connect()
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
            refuse_unless_one_select(self._connection, sql)
            lock_down(
                self._connection, [path for paths in self._files.paths.values() for path in paths]
            )
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
            f"the dataset does not fit into {MEMORY_LIMIT} of memory: {error}",
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


_INFERENCE = "spark.sql.sources.partitionColumnTypeInference.enabled"
# How many tasks list the files of a table: by default one each (PartitioningAwareFileIndex and
# HadoopFSUtils of Spark), which for small files takes longer than to read them.
_LISTING = "spark.sql.sources.parallelPartitionDiscovery.parallelism"
_FILES_LISTED = 200
_TYPES = {"int64": "BIGINT", "string": "STRING", "bool": "BOOLEAN"}


class SparkEngine:
    """One session of a Spark Connect server, with a temporary view for each table."""

    def __init__(self, files: FleetFiles, remote: str | None = None) -> None:
        """Connect to `remote`, or to $SPARK_REMOTE.

        Raises UseError where neither is given, and MachineError where pyspark or the server is
        missing.
        """
        address = remote or os.environ.get("SPARK_REMOTE")
        if not address:
            raise UseError(
                "--engine spark: no Spark Connect server is named",
                "--spark-remote sc://HOST:15002, or SPARK_REMOTE in the environment",
            )
        try:
            from pyspark.sql import SparkSession
        except ImportError as error:
            raise MachineError(
                "--engine spark: pyspark is not installed", "pip install 'jojlab[spark]'"
            ) from error
        try:
            self._session = SparkSession.builder.remote(address).getOrCreate()
            # Days are texts, as they are for DuckDB.
            self._session.conf.set(_INFERENCE, "false")
            count = max(len(paths) for paths in files.paths.values())
            self._session.conf.set(_LISTING, str(-(-count // _FILES_LISTED)))
            for table in FLEET_TABLES:
                self._view(files, table)
        except Exception as error:  # pyspark's own classes, those of gRPC, and ValueError
            raise MachineError(
                f"--engine spark: {address}: {_first_line(error)}",
                "is the server up, and do its machines see the files?",
            ) from error

    def rows(self, sql: str, parameters: Row | None = None) -> list[Row]:
        """Return the rows of one SELECT; `parameters` stand in it as $NAME."""
        try:
            answer = self._session.sql(translate(sql), args=parameters or {})
            return [row.asDict() for row in answer.collect()]
        except Exception as error:
            raise MachineError(
                f"--engine spark: {_first_line(error)}", "the server's log has the rest"
            ) from error

    def why_unreadable(self, path: str) -> str:
        """Return why it cannot read a file: not asked of a cluster, which reads many at once."""
        del path
        return ""

    def _view(self, files: FleetFiles, table: str) -> None:
        scheme = "file://" if files.store.folder is not None else "s3a://"
        paths = [scheme + path for path in files.paths[table]]
        columns = table_schema(f"fleet/{table}").columns
        types = {column.name: _TYPES[column.type] for column in columns}
        types |= {"day": "STRING", "device": "STRING"}
        schema = ", ".join(f"`{name}` {kind}" for name, kind in types.items())
        root = paths[0].split(f"/{table}/day=")[0]
        reader = self._session.read.schema(schema).option("basePath", f"{root}/{table}")
        reader.parquet(*paths).createOrReplaceTempView(table)


def translate(sql: str) -> str:
    """Return a question in Spark's SQL."""
    import sqlglot
    from sqlglot import exp

    def exact(node: exp.Expression) -> exp.Expression:
        # sqlglot makes PERCENTILE_APPROX of it; PERCENTILE interpolates as DuckDB does.
        if isinstance(node, exp.WithinGroup) and isinstance(node.this, exp.PercentileCont):
            value = node.expression.expressions[0].this
            return exp.Anonymous(this="PERCENTILE", expressions=[value, node.this.this])
        return node

    [question] = sqlglot.parse(sql, read="duckdb")
    assert question is not None
    return question.transform(exact).sql("spark", unsupported_level=sqlglot.ErrorLevel.RAISE)


def _first_line(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".splitlines()[0][:300]


def fleet_engine(name: EngineName, files: FleetFiles, remote: str | None) -> FleetEngine:
    """Return the engine over `files`; `remote` is Spark's address (sc://HOST:15002)."""
    if name is EngineName.spark:
        return SparkEngine(files, remote)
    return DuckDbEngine(files)
