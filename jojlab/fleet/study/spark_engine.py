"""Runs SQL over the tables of a fleet by Apache Spark, on a cluster that runs Spark Connect.

Each table is a view on its files, which all machines of the cluster see under one path (a shared
folder, or a bucket by s3a). Questions are DuckDB's SQL, which sqlglot translates.
"""

from __future__ import annotations

import os

from jojlab.fleet.study.dataset import FleetFiles, Row
from jojlab.foundation.errors import MachineError, UseError
from jojlab.trace.schema import FLEET_TABLES, table_schema

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
            answer = self._session.sql(translated(sql), args=parameters or {})
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


def translated(sql: str) -> str:
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
