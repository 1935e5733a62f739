"""Starts the server of a fleet, makes segments for it, and sends them."""

from __future__ import annotations

import hashlib
import http.client
import json
import os
import re
import signal
import ssl
import subprocess
import sys
from collections.abc import Mapping, Sequence
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any, TextIO
from urllib.parse import urlsplit

import numpy as np

from jojlab.fleet.simulation.segments import Tables, day_tables, pack
from jojlab.fleet.store.dataset import live_units, segment_hashes
from jojlab.fleet.store.devices import enrol
from jojlab.fleet.store.objects import Store, open_store
from jojlab.trace.schema import FLEET_TABLES
from tests.hangs import HANG_S

JOJ = (sys.executable, "-m", "jojlab")
DAY = date(2026, 1, 1)


@cache
def simulated_tables(count: int, seed: int = 1, day: date = DAY) -> list[Tables]:
    """The tables of so many segments of one day."""
    generator = np.random.default_rng(seed)
    return list(day_tables(generator.bytes(16).hex(), day, 0, 8, count, generator))


def simulated_segments(count: int, seed: int = 1, day: date = DAY) -> dict[str, bytes]:
    """Return so many segments of one day, by their names."""
    return dict(map(with_name, (pack(tables)[1] for tables in simulated_tables(count, seed, day))))


def with_name(segment: bytes) -> tuple[str, bytes]:
    """A segment with its name."""
    return hashlib.sha256(segment).hexdigest(), segment


def token_of(data: str, device: str) -> str:
    """Enrol a device, and return its token."""
    return enrol(open_store(data, create=True), device, 0)


class Answer:
    """The answer of the server."""

    def __init__(self, response: http.client.HTTPResponse) -> None:
        self.status = response.status
        self.headers = response.headers
        body = response.read()
        is_json = response.headers.get_content_type() == "application/json"  # uvicorn's own are not
        self.document: dict[str, Any] = json.loads(body) if is_json else {}

    def __repr__(self) -> str:
        return f"{self.status} {self.document}"

    @property
    def answer(self) -> tuple[int, str]:
        """The status, and the reason of a refusal."""
        return self.status, str(self.document.get("reason", self.document.get("status")))


class FleetServer:
    """A server on a free port of loopback."""

    def __init__(
        self,
        data: str,
        *options: str,
        authority: Path | None = None,
        env: Mapping[str, str] = {},
        stderr: TextIO | None = None,
    ) -> None:
        self.process = subprocess.Popen(
            [*JOJ, "fleet", "serve", "--data", data, "--port", "0", "--compact-every", "0",
             *options], stdout=subprocess.PIPE, stderr=stderr, text=True,
            env={**os.environ, **env},
        )  # fmt: skip
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        found = re.match(r"serving (\S+), data in", line)
        assert found, line
        self.url = found[1]
        self._authority = authority

    def connection(self) -> http.client.HTTPConnection:
        """A new connection."""
        place = urlsplit(self.url).netloc
        if self._authority is None:
            return http.client.HTTPConnection(place, timeout=HANG_S)
        context = ssl.create_default_context(cafile=str(self._authority))
        return http.client.HTTPSConnection(place, timeout=HANG_S, context=context)

    def put(
        self,
        segment: bytes,
        token: str | None,
        *,
        name: str | None = None,
        headers: Mapping[str, str] = {},
    ) -> Answer:
        """Send a segment by its own name or another."""
        path = f"/v1/segments/{with_name(segment)[0] if name is None else name}"
        wanted = {**({} if token is None else {"Authorization": f"Bearer {token}"}), **headers}
        connection = self.connection()
        try:
            connection.request("PUT", path, body=segment, headers=wanted)
            return Answer(connection.getresponse())
        finally:
            connection.close()

    def metric(self, line: str) -> float:
        """The value of one line of /metrics."""
        connection = self.connection()
        connection.request("GET", "/metrics")
        text = connection.getresponse().read().decode()
        connection.close()
        return float(re.search(rf"(?m)^{re.escape(line)} (\S+)$", text)[1])  # type: ignore[index]

    def refused_uploads(self, reason: str) -> float:
        """Return how many uploads were refused for this reason."""
        return self.metric(f'joj_fleet_refused_total{{reason="{reason}"}}')

    def kill(self) -> None:
        """Kill it, as nothing that ends in order would be."""
        self.process.kill()
        self.process.wait()

    def __enter__(self) -> FleetServer:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(timeout=HANG_S) in (0, -signal.SIGKILL)
        assert self.process.stdout is not None
        self.process.stdout.close()


def segments_of(store: Store) -> list[str]:
    """The names of the segments that count, each as often as it does."""
    return sorted(name for unit in live_units(store) for name in segment_hashes(store, unit))


def rows_of(store: Store) -> dict[str, int]:
    """Return how many rows count of each table, read from the files."""
    import pyarrow.parquet as pq

    return {
        table: sum(
            pq.read_table(store.path(unit.key(table)), filesystem=store.filesystem).num_rows
            for unit in live_units(store)
        )
        for table in FLEET_TABLES
    }


def rows_in(tables: Sequence[Tables]) -> dict[str, int]:
    """Return how many rows these segments have of each table."""
    return {table: sum(each[table].num_rows for each in tables) for table in FLEET_TABLES}
