"""Server, uploader and compaction are killed at random moments: no acknowledged segment is lost,
and none is there twice.
"""

from __future__ import annotations

import random
import subprocess
import sys
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from jojlab.fleet.simulation.segments import Tables, pack
from jojlab.fleet.store.objects import open_store
from tests.fleet.fleet_server import (
    DAY,
    JOJ,
    FleetServer,
    rows_in,
    rows_of,
    segments_of,
    simulated_tables,
    token_of,
    with_name,
)
from tests.hangs import HANG_S

_SEGMENTS_A_ROUND = 10


@pytest.mark.parametrize(("rounds", "seed"), [(3, 1), pytest.param(200, 2, marks=pytest.mark.full)])
def test_no_acknowledged_segment_is_lost(tmp_path: Path, rounds: int, seed: int) -> None:
    """Each segment is there exactly once after so many kills, whole."""
    data, spool, log = tmp_path / "data", tmp_path / "spool", tmp_path / "acknowledged"
    spool.mkdir()
    log.touch()
    draw = random.Random(seed)
    token = token_of(str(data), "phone-1")
    made: list[Tables] = []
    for number in range(-(-rounds * _SEGMENTS_A_ROUND // 96)):
        made += simulated_tables(96, seed=number, day=DAY + timedelta(days=number))
    made = made[: rounds * _SEGMENTS_A_ROUND]
    names = set()
    for tables in made:
        name, segment = with_name(pack(tables)[1])
        (spool / f"{name}.tar").write_bytes(segment)
        names.add(name)

    store = open_store(str(data))

    def uploader(url: str) -> subprocess.Popen[bytes]:
        arguments = (url, token, str(spool), str(log), str(draw.randrange(2**32)))
        return subprocess.Popen([sys.executable, "-m", "tests.fleet.uploader", *arguments])

    def compaction() -> subprocess.Popen[bytes]:
        command = [*JOJ, "fleet", "compact", "--data", str(data), "--all", "--grace", "0"]
        return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    for _ in range(rounds):
        server = FleetServer(str(data))
        killed: list[subprocess.Popen[Any]] = [server.process, uploader(server.url), compaction()]
        if draw.random() < 0.7:  # otherwise while they start
            _await_more(log)
        time.sleep(draw.uniform(0, 0.7))
        draw.shuffle(killed)
        for process in killed:
            process.kill()
            time.sleep(draw.choice((0, 0, 0.05)))
        for process in killed:
            process.wait()
        assert server.process.stdout is not None
        server.process.stdout.close()
        there = segments_of(store)
        assert len(there) == len(set(there)), "a segment counts twice"
        assert set(log.read_text().split()) <= set(there), "an acknowledged segment is lost"

    assert set(there), "the rounds were too short to store anything"
    with FleetServer(str(data)) as server:
        assert uploader(server.url).wait(timeout=HANG_S) == 0
    assert compaction().wait(timeout=HANG_S) == 0
    assert segments_of(store) == sorted(names)
    assert rows_of(store) == rows_in(made)


def _await_more(log: Path) -> None:
    """Wait until a segment is acknowledged, or for 20 s at the most: the kill comes anyway."""
    before, end_s = log.stat().st_size, time.monotonic() + 20
    while log.stat().st_size == before and time.monotonic() < end_s:
        time.sleep(0.01)
