"""Kills the real collector, its uploader and the server at random moments, while an app commits;
and fills the disk of the spool.
"""

from __future__ import annotations

import io
import json
import random
import signal
import subprocess
import sys
import tarfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from jojlab.fleet.store.dataset import live_units
from jojlab.fleet.store.objects import Store, open_store
from jojlab.foundation.places import agent_path
from tests.fleet.fleet_server import JOJ, FleetServer, segments_of, token_of
from tests.hangs import HANG_S
from tests.live.loop import Loop, mounted_loop

ROUNDS = 50  # of each seed: 200
KILLED = ("collector", "uploader", "uploader", "server", "all")

# DIRECTORY: transactions of two databases, until it is killed. It opens them again and again, as a
# collector knows no database that was open before it.
LOAD = """
import sqlite3, sys, time
while True:
    connection = sqlite3.connect(f"{sys.argv[1]}/a.db", isolation_level=None)
    connection.execute(f"ATTACH '{sys.argv[1]}/b.db' AS b")
    for name in ("main", "b"):
        connection.execute(f"CREATE TABLE IF NOT EXISTS {name}.t(x)")
    for _ in range(10):
        connection.execute("BEGIN")
        for name in ("main", "b"):
            connection.execute(f"INSERT INTO {name}.t VALUES (1)")
        connection.execute("COMMIT")
        time.sleep(0.02)
    connection.close()
"""


@pytest.fixture(scope="module")
def loop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Loop]:
    with mounted_loop("ext4", tmp_path_factory.mktemp("killed")) as loop:
        yield loop


class Device:
    """A collector with its uploader, that can be killed and started again, and its spool."""

    def __init__(self, loop: Loop, spool: Path, *options: str, seconds: int = 1) -> None:
        self.spool = spool
        self.log = spool.with_name("log")
        self.command = [str(agent_path()), "collect", "--device", loop.device, "--spool",
                         str(spool), "--segment-seconds", str(seconds), *options]  # fmt: skip
        self.process: subprocess.Popen[bytes] | None = None
        self.seen: set[str] = set()
        # Numbers that were taken when it was killed: of segments that were not closed, mostly.
        self.open: set[int] = set()

    def __enter__(self) -> Device:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    @property
    def uploader(self) -> list[str]:
        """The uploader of its spool, without a server."""
        return [str(agent_path().with_name("joj-uploader")), "--spool", str(self.spool)]

    def start(self) -> None:
        """Start it where it does not run."""
        if self.process is None:
            with self.log.open("ab") as log:
                self.process = subprocess.Popen(self.command, stderr=log)

    def await_more(self) -> None:
        """Wait until it has closed a segment."""
        before, end_s = self.next_sequence(), time.monotonic() + HANG_S
        while self.next_sequence() <= before:
            assert time.monotonic() < end_s, self.log.read_text()
            time.sleep(0.02)

    def kill(self) -> None:
        """Kill it."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None
            self.open.add(self.next_sequence() - 1)

    def kill_uploader(self) -> None:
        """Kill the uploader, which the collector starts again."""
        if self.process is None:
            return
        pid = self.process.pid
        for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
            subprocess.run(["kill", "-KILL", child], check=False)

    def end(self) -> None:
        """End it in order."""
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(timeout=HANG_S) == 0, self.log.read_text()
        self.process = None

    def next_sequence(self) -> int:
        """The number that the next segment will have."""
        try:
            return int(json.loads((self.spool / "state.json").read_text())["next_sequence"])
        except FileNotFoundError:
            return 0

    def waiting_names(self) -> set[str]:
        """The names of the segments that wait."""
        ready = self.spool / "ready"
        names = {path.name for path in ready.iterdir()} if ready.is_dir() else set()
        self.seen |= names
        return names

    @contextmanager
    def watch(self) -> Iterator[None]:
        """Look at the spool all the while."""
        over = threading.Event()

        def look() -> None:
            while not over.wait(0.005):
                self.waiting_names()

        thread = threading.Thread(target=look)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()

    def acknowledged_hashes(self) -> set[str]:
        """The hashes of segments that were seen to wait and were deleted."""
        before = set(self.seen)
        return {name[13:-4] for name in before - self.waiting_names()}


def facts_in(spool: Path) -> list[dict[str, Any]]:
    """The rows of `segments` of what waits in a spool, by their numbers."""
    rows: list[dict[str, Any]] = []
    for path in sorted((spool / "ready").iterdir()):
        with tarfile.open(path) as archive:
            member = archive.extractfile("segments.parquet")
            assert member is not None
            rows += pq.read_table(io.BytesIO(member.read())).to_pylist()
    return rows


def rows_of(store: Store, table: str) -> list[dict[str, Any]]:
    """All rows of a table that count."""
    files = [store.path(unit.key(table)) for unit in live_units(store)]
    return [row for file in files for row in pq.ParquetFile(file).read().to_pylist()]


@contextmanager
def commits(loop: Loop) -> Iterator[None]:
    """An app that commits all the while."""
    process = subprocess.Popen([sys.executable, "-c", LOAD, str(loop.directory)])
    try:
        yield
        assert process.poll() is None
    finally:
        process.kill()
        process.wait()


def await_commits(loop: Loop, count: int) -> None:
    """Wait until the app has committed so many transactions more, as the change counter of its
    database says (https://sqlite.org/fileformat2.html, section 1.3.7).
    """

    def change_counter() -> int:
        with (loop.directory / "a.db").open("rb") as database:
            return int.from_bytes(database.read(28)[24:], "big")

    _await((loop.directory / "a.db").exists)
    before = change_counter()
    _await(lambda: change_counter() >= before + count)


@pytest.mark.parametrize("seed", range(4))
def test_no_acknowledged_segment_is_lost_and_none_is_there_twice(
    loop: Loop, tmp_path: Path, seed: int
) -> None:
    data, token = str(tmp_path / "data"), tmp_path / "token"
    token.write_text(token_of(data, "phone-1") + "\n")
    store, draw = open_store(data), random.Random(seed)
    server: FleetServer | None = FleetServer(data)
    assert server is not None
    url, port = server.url, server.url.rpartition(":")[2]
    device = Device(loop, tmp_path / "spool", "--server", url, "--token-file", str(token))
    with device, device.watch(), commits(loop):
        for _ in range(ROUNDS):
            server = server or FleetServer(data, "--port", port)
            device.start()
            if draw.random() < 0.8:  # otherwise while it starts, or sends what waits
                device.await_more()
            time.sleep(draw.uniform(0, 2))
            victim = draw.choice(KILLED)
            victims = ["collector", "uploader", "server"] if victim == "all" else [victim]
            draw.shuffle(victims)
            for each in victims:
                if each == "server":
                    server.kill()
                    server.process.stdout.close()  # type: ignore[union-attr]
                else:
                    device.kill() if each == "collector" else device.kill_uploader()
                time.sleep(draw.choice((0, 0, 0.05)))
            if "server" in victims:
                server = None
            acknowledged, there = device.acknowledged_hashes(), segments_of(store)
            assert len(there) == len(set(there)), "a segment counts twice"
            assert acknowledged <= set(there), "an acknowledged segment is lost"
    with server or FleetServer(data, "--port", port), device:
        device.start()
        device.await_more()
        device.end()
        command = [*device.uploader, "--once", "--server", url, "--token-file", str(token)]
        subprocess.run(command, check=True, timeout=HANG_S)
    assert device.waiting_names() == set()
    assert not any((device.spool / "refused").iterdir())
    numbers = [row["sequence"] for row in rows_of(store, "segments")]
    assert len(numbers) == len(set(numbers)), "a number came twice"
    missing = set(range(device.next_sequence())) - set(numbers)
    assert missing <= device.open, "a closed segment is lost"
    assert {row["dropped_segments"] for row in rows_of(store, "segments")} == {0}
    journals = [row["super_journal"] for row in rows_of(store, "commits") if row["super_journal"]]
    assert len(journals) == len(set(journals)) > ROUNDS, "a transaction is there twice"
    print(f"{len(numbers)} segments, {len(missing)} under way when killed, {len(journals)} commits")


def test_a_spool_on_a_full_disk_counts_what_it_drops(loop: Loop, tmp_path: Path) -> None:
    small = tmp_path / "small"
    small.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(small)], check=True)
    try:
        device = Device(loop, small / "spool")
        device.log = tmp_path / "log"
        device.start()
        with device, commits(loop):
            device.await_more()
            filler = small / "filler"
            with filler.open("wb", buffering=0) as out, pytest.raises(OSError, match="No space"):
                while True:
                    out.write(bytes(4096))
            before = len(device.waiting_names())
            _await(lambda: device.log.read_text().count("No space left on device") >= 3)
            assert len(device.waiting_names()) == before
            filler.unlink()
            _await(lambda: len(device.waiting_names()) >= before + 2)
            device.end()
        facts = facts_in(device.spool)
    finally:
        subprocess.run(["umount", "--lazy", str(small)], check=True)
    numbers = [row["sequence"] for row in facts]
    assert numbers == sorted(set(numbers))
    dropped = sum(row["dropped_segments"] for row in facts)
    # One that could not even get a number is counted, and leaves no gap.
    assert dropped >= 1
    assert dropped >= max(numbers) + 1 - len(numbers)


def test_a_clock_that_is_set_loses_nothing(loop: Loop, tmp_path: Path) -> None:
    """Three days ahead, and back again: each time a segment ends, and the server takes all."""
    data, token = str(tmp_path / "data"), tmp_path / "token"
    token.write_text(token_of(data, "phone-1") + "\n")
    device = Device(loop, tmp_path / "spool", seconds=900)
    device.command = [sys.executable, "-m", "tests.full.set_clock", str(3 * 86400), *device.command]
    device.start()
    with device, commits(loop):
        _await(lambda: device.next_sequence() == 1)
        assert device.process is not None
        for count, number in ((1, signal.SIGUSR1), (2, signal.SIGUSR2)):
            await_commits(loop, 10)
            device.process.send_signal(number)
            _await(lambda count=count: len(device.waiting_names()) == count)  # type: ignore[misc]
        await_commits(loop, 10)
        device.end()
    facts = facts_in(device.spool)
    first, ahead, last = (date.fromisoformat(row["day"]) for row in facts)
    assert (ahead - first, last - first) == (timedelta(3), timedelta(0))
    steps = [
        (row["end_unix_ns"] - row["begin_unix_ns"] - row["end_boot_ns"] + row["begin_boot_ns"])
        for row in facts
    ]
    assert [round(step / 86400e9) for step in steps] == [3, -3, 0]
    with FleetServer(data) as server:
        command = [*device.uploader, "--once", "--server", server.url, "--token-file", str(token)]
        subprocess.run(command, check=True, timeout=HANG_S)
    rows = rows_of(open_store(data), "commits")
    journals = [row["super_journal"] for row in rows if row["super_journal"]]
    assert len(journals) == len(set(journals)) >= 20
    said = subprocess.run(
        [*JOJ, "fleet", "report", "--data", data], capture_output=True, text=True, timeout=HANG_S
    )
    assert said.returncode == 0, said
    assert "The clock was set in 2 segments." in said.stdout
    assert "1 device has days that have not come yet" in said.stdout


def _await(is_so: Callable[[], bool]) -> None:
    end_s = time.monotonic() + HANG_S
    while not is_so():
        assert time.monotonic() < end_s
        time.sleep(0.05)
