"""The questions about a fleet have the same rows by Spark, on two workers, as by DuckDB."""

from __future__ import annotations

import json
import math
import subprocess
import sys

import pytest

from jojlab.fleet.simulation.segments import SimulatedFleet, write_fleet
from jojlab.fleet.store.objects import open_store
from jojlab.fleet.study.dataset import FleetFiles, Row, fleet_ask, fleet_files
from jojlab.fleet.study.engines import DuckDbEngine, SparkEngine
from jojlab.fleet.study.test_questions import QUESTIONS
from tests.spark_cluster import WORKERS, spark_cluster, why_not, workers_that_ran

pytestmark = pytest.mark.skipif(bool(why_not()), reason=why_not())


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> FleetFiles:
    folder = tmp_path_factory.mktemp("fleet")
    for _ in write_fleet(SimulatedFleet(devices=3, days=4, segments_a_day=2), folder):
        pass
    return fleet_files(open_store(str(folder)))


def test_every_question_has_the_same_rows(
    files: FleetFiles, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("spark")
    here = DuckDbEngine(files)
    with spark_cluster(folder) as address:
        there = SparkEngine(files, address)
        for question in QUESTIONS:
            asked = parameters(question)
            expected = fleet_ask(here, question, **asked)
            assert same(fleet_ask(there, question, **asked), expected), question
            assert expected or question == "reasons", question
        assert workers_that_ran(folder) == WORKERS
        command = [sys.executable, "-m", "jojlab", "fleet", "report", "--data"]
        command += [files.store.url, "--json", "--engine"]
        by_spark = subprocess.check_output([*command, "spark", "--spark-remote", address])
    by_duckdb = subprocess.check_output([*command, "duckdb"])
    assert list(json.loads(by_spark)) == list(json.loads(by_duckdb))
    assert json.loads(by_spark)["users"] == json.loads(by_duckdb)["users"]


def parameters(question: str) -> dict[str, str]:
    if question.startswith("day_"):
        return {"device": "made-0002", "day": "2026-01-03"}
    return {"device": "made-0002"} if question == "observed_days" else {}


def same(answers: list[Row], expected: list[Row]) -> bool:
    """Return whether the rows are equal, in order; averages and percentiles in all but their last
    bits.
    """
    return len(answers) == len(expected) and all(
        list(one) == list(other)
        and all(
            math.isclose(value, other[name], rel_tol=1e-12)
            if isinstance(value, float)
            else value == other[name]
            for name, value in one.items()
        )
        for one, other in zip(answers, expected, strict=True)
    )
