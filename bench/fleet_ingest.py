"""Times how fast `joj fleet serve` takes segments in, beside a plain HTTP file server.

The same segments are sent to both, one after the other, in turns, and with --before to the server
of another checkout. The peer is Python's own
http.server with a PUT that writes the body to a file and syncs it and its folder: no token, no
hash, no check, and no tables. What counts is processor time, of the server with its workers: MB and
segments per second of one core. What a check of every value costs is in the ratio.
"""

from __future__ import annotations

import argparse
import hashlib
import http.client
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from datetime import date
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from urllib.parse import urlsplit

import numpy as np

from jojlab.fleet.simulation.segments import day_tables, pack
from jojlab.fleet.store.devices import enrol
from jojlab.fleet.store.objects import open_store

_TICKS = os.sysconf("SC_CLK_TCK")
# So many a device: more, and the server's limit of requests would be measured.
_SEGMENTS_A_DEVICE = 50
_PEER = "from bench.fleet_ingest import serve_files; serve_files()"


def main(arguments: Sequence[str] | None = None) -> int:
    """Print MB and segments per second of one core, and the ratio to the plain PUT, of each."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.fleet_ingest", description=__doc__.split("\n")[0]
    )
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--segments", type=int, default=200, help="of each turn and size")
    parser.add_argument("--before", help="another checkout, whose server is timed too")
    options = parser.parse_args(arguments)
    print(f"{'segments':>10} {'kB each':>8} {'':15} {'MB/s core':>10} {'/s core':>8} {'ratio':>6}")
    for a_day in (96, 1):
        segments = _simulate(min(options.segments, 96), a_day)
        _compare(segments, options.segments, options.turns, options.before)
    return 0


def _simulate(count: int, a_day: int) -> list[bytes]:
    generator = np.random.default_rng(1)
    made: list[bytes] = []
    while len(made) < count:
        spool_id = generator.bytes(16).hex()
        tables = day_tables(spool_id, date(2026, 1, 1), 0, 8, a_day, generator)
        made += [pack(each)[1] for each in tables]
    return made[:count]


def _compare(segments: Sequence[bytes], count: int, turns: int, before: str | None) -> None:
    size = sum(map(len, segments)) / len(segments)
    sides: dict[str, Callable[[Sequence[bytes], int, str], float]] = {
        "plain PUT": _time_peer,
        "joj fleet serve": _time_server,
    }
    if before:
        sides["before"] = partial(_time_server, checkout=before)
    times: dict[str, list[float]] = {name: [] for name in sides}
    for turn in range(turns):
        for name in list(sides) if turn % 2 else reversed(sides):
            with TemporaryDirectory(prefix="joj-fleet-") as folder:
                times[name].append(sides[name](segments, count, folder))
    for name, seconds in times.items():
        rate = count / median(seconds)
        ratio = median(p / o for o, p in zip(seconds, times["plain PUT"], strict=True))
        print(
            f"{count:>10} {size / 1e3:8.0f} {name:15} {rate * size / 1e6:10.1f} {rate:8.0f}"
            f" {ratio:6.2f}"
        )


def _time_server(
    segments: Sequence[bytes], count: int, folder: str, checkout: str | None = None
) -> float:
    store = open_store(folder)
    devices = -(-(count + 1) // _SEGMENTS_A_DEVICE)
    tokens = [enrol(store, f"device-{number}", 0) for number in range(devices)]
    command = ("-m", "jojlab", "fleet", "serve", "--data", folder, "--port", "0",
               "--compact-every", "0")  # fmt: skip
    return _time_uploads(command, segments, count, tokens, checkout)


def _time_peer(segments: Sequence[bytes], count: int, folder: str) -> float:
    return _time_uploads(("-c", _PEER, folder), segments, count, ["none"])


def _time_uploads(
    command: Sequence[str],
    segments: Sequence[bytes],
    count: int,
    tokens: Sequence[str],
    checkout: str | None = None,
) -> float:
    """Start a server, send, and return the processor seconds that it took for `count`."""
    server = subprocess.Popen(
        [sys.executable, *command], stdout=subprocess.PIPE, text=True, cwd=checkout
    )
    try:
        assert server.stdout is not None
        found = re.match(r"serving (http://[0-9.:]+)", server.stdout.readline())
        assert found, "the server did not start"
        place = urlsplit(found[1]).netloc
        _send(place, segments[0], tokens[-1])  # loads what is loaded once
        before_s = _cpu_s(server.pid)
        for number in range(count):
            token = tokens[min(number // _SEGMENTS_A_DEVICE, len(tokens) - 1)]
            _send(place, segments[number % len(segments)], token)
        return _cpu_s(server.pid) - before_s
    finally:
        server.kill()
        server.wait()


def _send(place: str, segment: bytes, token: str) -> None:
    connection = http.client.HTTPConnection(place, timeout=60)
    path = f"/v1/segments/{hashlib.sha256(segment).hexdigest()}"
    connection.request("PUT", path, body=segment, headers={"Authorization": f"Bearer {token}"})
    answer = connection.getresponse()
    answer.read()
    connection.close()
    assert answer.status in (200, 201), answer.status


def _cpu_s(pid: int) -> float:
    """Processor seconds of a process and of those that it started, which run on."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    threads = Path(f"/proc/{pid}/task").glob("*/children")
    children = [int(child) for thread in threads for child in thread.read_text().split()]
    return (int(fields[11]) + int(fields[12])) / _TICKS + sum(map(_cpu_s, children))


def serve_files() -> None:
    """Be the peer: write each body to a file of the folder given, and sync both."""
    folder = Path(sys.argv[1])

    class Handler(BaseHTTPRequestHandler):
        """Takes a PUT."""

        def do_PUT(self) -> None:
            """Write the body."""
            target = folder / f"{time.monotonic_ns()}"
            left = int(self.headers["Content-Length"])
            with target.open("wb") as out:
                while left:
                    block = self.rfile.read(min(left, 1 << 16))
                    out.write(block)
                    left -= len(block)
                out.flush()
                os.fsync(out.fileno())
            descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
            os.fsync(descriptor)
            os.close(descriptor)
            self.send_response(201)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Log nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    print(f"serving http://127.0.0.1:{server.server_port}", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    sys.exit(main())
