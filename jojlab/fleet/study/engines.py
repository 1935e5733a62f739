"""Gives the engine that a user names: DuckDB, or Apache Spark. Loads that one only."""

from __future__ import annotations

from enum import StrEnum

from jojlab.fleet.study.dataset import FleetEngine, FleetFiles


class EngineName(StrEnum):
    """DuckDB reads a fleet in this process; Spark on a cluster that runs Spark Connect."""

    duckdb = "duckdb"
    spark = "spark"


def fleet_engine(name: EngineName, files: FleetFiles, remote: str | None) -> FleetEngine:
    """Return the engine over `files`; `remote` is Spark's address (sc://HOST:15002)."""
    if name is EngineName.spark:
        from jojlab.fleet.study.spark_engine import SparkEngine

        return SparkEngine(files, remote)
    from jojlab.fleet.study.duckdb_engine import DuckDbEngine

    return DuckDbEngine(files)
