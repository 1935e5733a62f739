"""The same on a bucket: a server of the S3 protocol on loopback."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from moto.server import ThreadedMotoServer

from jojlab.fleet.simulation.segments import SimulatedFleet, pack, write_fleet
from jojlab.fleet.store.compaction import compact
from jojlab.fleet.store.dataset import live_units
from jojlab.fleet.store.devices import devices, enrol, revoke
from jojlab.fleet.store.objects import open_store
from jojlab.fleet.store.quarantine import list_quarantine
from jojlab.fleet.study.dataset import fleet_files
from jojlab.fleet.study.device_day import device_day, device_day_json
from jojlab.fleet.study.engines import DuckDbEngine
from jojlab.fleet.study.study import fleet_json, fleet_study
from jojlab.foundation.errors import UseError
from jojlab.foundation.printable import json_text
from tests.fleet.fleet_server import (
    JOJ,
    FleetServer,
    rows_in,
    rows_of,
    segments_of,
    simulated_tables,
)

BUCKET = "s3://bucket/of/a-fleet"
ANOTHER = "s3://bucket/of/another-fleet"  # moto keeps what was put


@pytest.fixture
def settings(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, str]]:
    """The environment in which the bucket is found."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    found = {
        "AWS_ENDPOINT_URL": f"http://{host}:{port}",
        "AWS_ACCESS_KEY_ID": "key",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_REGION": "us-east-1",
        "AWS_EC2_METADATA_DISABLED": "true",
    }
    for name, value in found.items():
        monkeypatch.setenv(name, value)
    import boto3

    client = boto3.client("s3", endpoint_url=found["AWS_ENDPOINT_URL"])
    client.create_bucket(Bucket="bucket")
    yield found
    server.stop()


def test_a_bucket_is_as_good_as_a_folder(settings: dict[str, str]) -> None:
    store = open_store(BUCKET)
    token = enrol(store, "phone-1", 0)
    made = simulated_tables(4)
    segments = [pack(tables)[1] for tables in made]
    with FleetServer(BUCKET) as server:
        for segment in segments:
            assert server.put(segment, token).answer == (201, "stored")
        assert server.put(b"no segment", token).answer == (422, "not-a-segment")
        assert rows_of(store) == rows_in(made)
        assert compact(store, 2e9, grace_s=0, all_days=True).segments == 4
        assert compact(store, 2e9, grace_s=0).deleted_files == 20
        assert server.put(segments[0], token).answer == (200, "known")
    [unit] = live_units(store)
    assert unit.is_compacted
    assert len(segments_of(store)) == 4
    assert rows_of(store) == rows_in(made)
    assert [each.reason for each in list_quarantine(store)] == ["not-a-segment"]
    revoke(store, "phone-1", 1)
    assert [(each.name, each.revoked_s) for each in devices(store)] == [("phone-1", 1)]


@pytest.mark.full
def test_a_report_of_a_bucket_is_that_of_a_folder(settings: dict[str, str], tmp_path: Path) -> None:
    for _ in write_fleet(SimulatedFleet(devices=2, days=2, segments_a_day=2), tmp_path):
        pass
    bucket, folder = open_store(ANOTHER), open_store(str(tmp_path))
    for path in sorted(tmp_path.rglob("*.parquet")):
        bucket.put_bytes(str(path.relative_to(tmp_path)), path.read_bytes())

    def run_joj(*arguments: str) -> Any:
        ran = subprocess.run([*JOJ, *arguments, "--json"], capture_output=True, check=True)
        return json.loads(ran.stdout)

    here = DuckDbEngine(fleet_files(folder))
    report = run_joj("fleet", "report", "--data", ANOTHER)
    assert report.pop("in_short")
    assert report == json_value(fleet_json(fleet_study(here)))
    day = json_value(device_day_json(device_day(here, "made-0002", "2026-01-02")))
    asked = ("made-0002", "--day", "2026-01-02")
    assert run_joj("fleet", "device", *asked, "--data", ANOTHER) == day
    sql = "SELECT device, day, count(super_journal) AS n FROM commits GROUP BY ALL ORDER BY ALL"
    assert run_joj("query", ANOTHER, sql) == here.rows(sql) != []
    compact(bucket, 2e9, grace_s=0, all_days=True)
    assert run_joj("query", ANOTHER, sql) == here.rows(sql)


def json_value(document: object) -> Any:
    """A document as a reader of JSON has it."""
    return json.loads(json_text(document))


def test_a_store_that_is_none(settings: dict[str, str]) -> None:
    for url in ("s3://none", "s3://", "http://x/y"):
        with pytest.raises(UseError, match=url):
            open_store(url)
