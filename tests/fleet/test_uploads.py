"""Tests the server's answers to right and to hostile uploads; it counts both, and stays small."""

from __future__ import annotations

import contextlib
import io
import re
import resource
import socket
import subprocess
import tarfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import trustme

from jojlab.fleet.simulation.segments import pack
from jojlab.fleet.store.devices import revoke
from jojlab.fleet.store.objects import open_store
from jojlab.fleet.store.quarantine import list_quarantine
from jojlab.fleet.store.segment import SEGMENT_LIMIT_BYTES
from jojlab.fleet.store.worker import MEMORY_BYTES
from jojlab.trace.schema import FLEET_TABLES, table_schema
from tests.fleet.fleet_server import (
    JOJ,
    FleetServer,
    segments_of,
    simulated_segments,
    simulated_tables,
    token_of,
)
from tests.hangs import HANG_S
from tests.this_process import joj

UPLOAD_SECONDS = 2.0
# What uploads may add to a server with nothing to do, which has some 125 MB: less than the four
# bodies of 16 MiB that one device may send at once.
UPLOADS_LIMIT_BYTES = 48 << 20
WORKER_LIMIT_BYTES = MEMORY_BYTES + (200 << 20)  # its libraries have 100 MB


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(tmp_path_factory.mktemp("fleet") / "data")


@pytest.fixture(scope="module")
def token(data: str) -> str:
    return token_of(data, "phone-1")


@pytest.fixture(scope="module")
def server(
    data: str, token: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[FleetServer]:
    folder = tmp_path_factory.mktemp("tls")
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(folder / "ca.pem"))
    own = authority.issue_cert("127.0.0.1")
    own.private_key_and_cert_chain_pem.write_to_path(str(folder / "server.pem"))
    files = ("--certificate", str(folder / "server.pem"), "--key", str(folder / "server.pem"))
    with FleetServer(
        data, *files, "--upload-seconds", str(UPLOAD_SECONDS), authority=folder / "ca.pem"
    ) as server:
        yield server


def parquet(table: pa.Table, **settings: Any) -> bytes:
    file = io.BytesIO()
    pq.write_table(table, file, **settings)
    return file.getvalue()


def tar(members: dict[str, bytes], kind: bytes = tarfile.REGTYPE) -> bytes:
    whole = io.BytesIO()
    with tarfile.open(fileobj=whole, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name, contents in members.items():
            member = tarfile.TarInfo(name)
            member.size, member.type = len(contents), kind
            archive.addfile(member, io.BytesIO(contents))
    return whole.getvalue()


def members(**changed: bytes) -> dict[str, bytes]:
    """The files of a good segment, some of them changed."""
    files, _ = pack(simulated_tables(96)[0])
    return {f"{table}.parquet": changed.get(table, files[table]) for table in FLEET_TABLES}


def bomb(rows: int, text_bytes: int) -> bytes:
    """A table `file_sums` with the same long text in each row: small in the file, huge decoded."""
    of = table_schema("fleet/file_sums").arrow()
    texts = pa.DictionaryArray.from_arrays(
        pa.array([0] * rows, pa.int32()), ["x" * text_bytes]
    ).cast(pa.string())
    columns = [
        texts if field.name == "path" else pa.array([1] * rows) if field.type == "int64"
        else pa.array(["x"] * rows) for field in of
    ]  # fmt: skip
    return parquet(pa.table(columns, schema=of), compression="zstd", store_schema=False)


def commits_of_databases(text: str) -> bytes:
    """A table `commits` with this text for a list of databases."""
    table = simulated_tables(1)[0]["commits"]
    place = table.schema.get_field_index("databases")
    texts = pa.array([text] * table.num_rows)
    return parquet(table.set_column(place, table.schema.field(place), texts), store_schema=False)


def test_a_segment_is_stored_once(server: FleetServer, data: str, token: str) -> None:
    [(name, segment)] = simulated_segments(1, seed=2).items()
    assert server.put(segment, token).answer == (201, "stored")
    assert server.put(segment, token).answer == (200, "known")
    assert segments_of(open_store(data)) == [name]
    assert server.metric("joj_fleet_segments_known_total") == 1


def test_an_upload_without_a_valid_token_is_refused(
    server: FleetServer, data: str, token: str
) -> None:
    segment = members()["segments.parquet"]
    assert server.put(segment, None).answer == (401, "no-token")
    for wrong in ("x", "phone-1", "phone-9." + token.split(".")[1], token[:-1] + "_", "../a.b"):
        assert server.put(segment, wrong).answer == (401, "wrong-token")
    other = token_of(data, "phone-2")
    revoke(open_store(data), "phone-2", 0)
    assert server.put(segment, other).answer == (403, "revoked")
    assert server.refused_uploads("no-token") == 1
    assert server.refused_uploads("wrong-token") == 5
    assert server.refused_uploads("revoked") == 1


def test_guessing_tokens_is_slowed_down(tmp_path: Path) -> None:
    token_of(str(tmp_path), "phone-1")
    with FleetServer(str(tmp_path)) as server:
        answers = [server.put(b"", f"phone-1.{'x' * 43}") for _ in range(30)]
    assert answers[0].status == 401
    assert answers[-1].answer == (429, "too-many-wrong-tokens")
    assert int(answers[-1].headers["retry-after"]) >= 1


@pytest.mark.parametrize(
    ("segment", "reason"),
    # Each is made where it is sent: every process of the tests reads this, and some take long.
    [
        (lambda: b"", "not-a-segment"),
        (lambda: b"x" * 5000, "not-a-segment"),
        (lambda: tar(members())[:-20_000], "not-a-segment"),
        (lambda: tar({**members(), "../../etc/evil": b"x"}), "not-a-segment"),
        (lambda: tar({f"../{name}": each for name, each in members().items()}), "not-a-segment"),
        (lambda: tar({f"/tmp/{name}": each for name, each in members().items()}), "not-a-segment"),
        (lambda: tar(dict.fromkeys(members(), b""), tarfile.SYMTYPE), "not-a-segment"),
        (lambda: tar(dict(reversed(members().items()))), "not-a-segment"),
        (lambda: tar(members(commits=b"PAR1" * 100)), "not-parquet"),
        (lambda: tar(members(commits=b"")), "not-parquet"),
        (lambda: tar(members(commits=members()["io_sums.parquet"])), "wrong-schema"),
        (lambda: tar(members(commits=parquet(pa.table({"a": [1]})))), "wrong-schema"),
        (lambda: tar(members(file_sums=bomb(200_000, 4_000))), "too-large-decoded"),
        (lambda: tar(members(file_sums=bomb(2_000_000, 4))), "too-large-decoded"),
        (lambda: tar(members(file_sums=bomb(10, 100_000))), "bad-value"),
        (lambda: tar(members(commits=commits_of_databases('{"no": "list"}'))), "bad-value"),
        (lambda: tar(members(commits=commits_of_databases("/a.db"))), "bad-value"),
    ],
)
def test_an_upload_that_is_no_segment_is_kept_apart(
    server: FleetServer, data: str, token: str, segment: Callable[[], bytes], reason: str
) -> None:
    before = server.refused_uploads(reason)
    count = len(list(list_quarantine(open_store(data))))
    assert server.put(segment(), token).answer == (422, reason)
    assert server.refused_uploads(reason) == before + 1
    assert len(list(list_quarantine(open_store(data)))) == count + 1


def test_bytes_of_a_page_that_are_wrong_are_found(server: FleetServer, token: str) -> None:
    whole = bytearray(members()["io_sums.parquet"])
    for place in range(100, 400):  # of the pages, which come before the footer
        whole[place] ^= 0x5A
    assert server.put(tar(members(io_sums=bytes(whole))), token).status == 422


@pytest.mark.parametrize(
    ("column", "value", "reason"),
    [
        ("day", "../../../etc", "bad-value"),
        ("day", "2026-02-30", "bad-value"),
        ("day", "2116-02-21", "bad-value"),
        ("day", "9999-01-01", "bad-value"),
        ("schema_version", 2, "wrong-schema"),
        ("read_bytes", -1, "bad-value"),
        ("spool_id", "..", "bad-value"),
    ],
)
def test_a_segment_says_what_can_be(
    server: FleetServer, token: str, column: str, value: object, reason: str
) -> None:
    tables = simulated_tables(96)[0]
    row = tables["segments"].to_pylist()[0] | {column: value}
    changed = pa.Table.from_pylist([row], schema=tables["segments"].schema)
    segment = tar(members(segments=parquet(changed, store_schema=False)))
    assert server.put(segment, token).answer == (422, reason)


def test_a_clock_that_is_years_ahead_loses_nothing(server: FleetServer, token: str) -> None:
    tables = simulated_tables(96)[1]
    row = tables["segments"].to_pylist()[0] | {"day": "2080-07-05"}
    changed = pa.Table.from_pylist([row], schema=tables["segments"].schema)
    segment = tar(members(segments=parquet(changed, store_schema=False)))
    assert server.put(segment, token).answer == (201, "stored")


def test_a_minute_is_one_of_a_day(server: FleetServer, token: str) -> None:
    sums = simulated_tables(96)[48]["io_sums"]
    late = sums.set_column(0, sums.schema.field("minute"), pa.array([1440] * sums.num_rows))
    segment = tar(members(io_sums=parquet(late, store_schema=False)))
    assert server.put(segment, token).answer == (422, "bad-value")


def test_an_upload_with_a_wrong_name_or_length_is_refused(server: FleetServer, token: str) -> None:
    segment = tar(members())
    for name in ("x", "A" * 64, "0" * 63 + "/", "..%2f..%2fdevices%2fphone-1.json", "%00" * 64):
        assert server.put(segment, token, name=name).status in (400, 404)
    assert server.refused_uploads("no-such-path") + server.refused_uploads("bad-name") == 5
    assert server.put(segment, token, name="0" * 64).answer == (400, "wrong-hash")
    assert server.put(segment, token, headers={"Transfer-Encoding": "chunked"}).status in (400, 411)
    large = {"Content-Length": str(SEGMENT_LIMIT_BYTES + 1)}
    assert server.put(b"x", token, name="0" * 64, headers=large).answer == (413, "too-large")
    assert server.put(b"x", token, name="0" * 64, headers={"Content-Length": "9" * 30}).status in (
        400,
        411,
    )


def _sent_slowly(server: FleetServer, head: bytes) -> bytes:
    """Return the answer to a head and a byte every tenth of a second; empty: it hung up."""
    connection = server.connection()
    connection.connect()
    assert isinstance(connection.sock, socket.socket)
    connection.sock.sendall(head)
    connection.sock.settimeout(0.1)
    end_s = time.monotonic() + HANG_S
    try:
        while time.monotonic() < end_s:
            try:
                return connection.sock.recv(4096)
            except TimeoutError:
                # It may have answered and hung up just now: then its answer comes next.
                with contextlib.suppress(ConnectionError):
                    connection.sock.sendall(b"x")
        pytest.fail(f"the server still listens after {HANG_S} s")
    except (ConnectionError, OSError):
        return b""
    finally:
        connection.close()


def test_slow_and_endless_senders_are_cut_off(server: FleetServer, token: str) -> None:
    head = (
        f"PUT /v1/segments/{'0' * 64} HTTP/1.1\r\nHost: {urlsplit(server.url).netloc}\r\n"
        f"Authorization: Bearer {token}\r\nContent-Length: 10000\r\n\r\n"
    ).encode()
    assert b" 408 " in _sent_slowly(server, head)
    assert server.refused_uploads("too-slow") == 1
    # Neither a head that never ends nor one that is endless is waited for.
    assert b" 200 " not in _sent_slowly(server, head[:40])
    assert b" 400 " in _sent_slowly(server, b"PUT / HTTP/1.1\r\n" + b"a: b\r\n" * 10_000)


def test_an_upload_that_is_broken_off_leaves_nothing(
    server: FleetServer, data: str, token: str
) -> None:
    before = segments_of(open_store(data))
    connection = server.connection()
    headers = {"Authorization": f"Bearer {token}", "Content-Length": "100000"}
    connection.request("PUT", f"/v1/segments/{'0' * 64}", body=b"x" * 5000, headers=headers)
    connection.close()
    end_s = time.monotonic() + HANG_S
    while server.refused_uploads("broken-off") < 1 and time.monotonic() < end_s:
        time.sleep(0.05)
    assert server.refused_uploads("broken-off") >= 1
    assert segments_of(open_store(data)) == before
    left = (Path(data) / ".incoming").rglob("*")
    assert [path for path in left if path.is_file() and path.stat().st_size] == []


def test_a_store_that_refuses(server: FleetServer, data: str, token: str) -> None:
    [segment] = simulated_segments(1, seed=3).values()
    unlimited = resource.RLIM_INFINITY
    assert server.put(b"x", token).status == 422  # the worker runs
    for pid in (server.process.pid, *workers_of(server)):
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (10_000, unlimited))
        try:
            answer = server.put(segment, token)
        finally:
            resource.prlimit(pid, resource.RLIMIT_FSIZE, (unlimited, unlimited))
        assert answer.answer == (503, "store")
        assert int(answer.headers["retry-after"]) >= 1
    assert server.put(segment, token).answer == (201, "stored")


def test_health_is_that_of_the_store(server: FleetServer, data: str) -> None:
    assert health_of(server) == 200
    spool = Path(data) / ".incoming"
    spool.rename(spool.with_name("away"))
    assert health_of(server) == 503
    spool.with_name("away").rename(spool)
    assert health_of(server) == 200


@contextlib.contextmanager
def idle_connections(server: FleetServer, count: int) -> Iterator[list[socket.socket]]:
    """Yield so many connections on which nothing is sent."""
    place = urlsplit(server.url)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, count + 512)), hard))
    with contextlib.ExitStack() as stack:
        yield [
            stack.enter_context(socket.create_connection((place.hostname, place.port or 0)))
            for _ in range(count)
        ]


def test_idle_connections_keep_nobody_out(tmp_path: Path) -> None:
    """1,600 of them, without a TLS handshake; the server may open 1,024 files."""
    data = tmp_path / "data"
    token = token_of(str(data), "phone-1")
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    own = authority.issue_cert("127.0.0.1")
    own.private_key_and_cert_chain_pem.write_to_path(str(tmp_path / "server.pem"))
    files = ("--certificate", str(tmp_path / "server.pem"), "--key", str(tmp_path / "server.pem"))
    with (
        (tmp_path / "log").open("w") as log,
        FleetServer(str(data), *files, authority=tmp_path / "ca.pem", stderr=log) as server,
    ):
        resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE, (1024, 1024))
        with idle_connections(server, 1600):
            assert health_of(server) == 200
            for segment in simulated_segments(3).values():
                assert server.put(segment, token).answer == (201, "stored")
            assert server.metric("joj_fleet_ended_connections") >= 1600 - 512
        assert health_of(server) == 200
    lines = (tmp_path / "log").read_text().splitlines()
    assert len(lines) < 200, lines[:20]


def test_a_handshake_that_does_not_come_is_not_waited_for(server: FleetServer) -> None:
    with idle_connections(server, 1) as [connection]:
        connection.settimeout(HANG_S)
        assert connection.recv(1) == b""


def health_of(server: FleetServer) -> int:
    """Return what /healthz answers."""
    connection = server.connection()
    connection.request("GET", "/healthz")
    status = connection.getresponse().status
    connection.close()
    return status


def workers_of(server: FleetServer) -> list[int]:
    threads = Path(f"/proc/{server.process.pid}/task").glob("*/children")
    children = [int(child) for thread in threads for child in thread.read_text().split()]
    assert children
    return children


def peak_bytes(pid: int) -> int:
    """The most memory that a process has held."""
    status = Path(f"/proc/{pid}/status").read_text()
    found = re.search(r"VmHWM:\s+(\d+) kB", status)
    assert found
    return int(found[1]) * 1024


def test_large_uploads_take_little_memory_of_the_server(server: FleetServer, token: str) -> None:
    """Many large uploads at once, of which a device may have four: the server holds none whole."""
    idle_bytes = peak_bytes(server.process.pid)
    body = bytes(SEGMENT_LIMIT_BYTES)
    statuses: list[int] = []

    def send() -> None:
        for _ in range(2):
            try:
                statuses.append(server.put(body, token).status)
            except OSError:  # it hung up before the body's end
                statuses.append(429)

    threads = [threading.Thread(target=send) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(statuses) <= {422, 429}
    assert 422 in statuses
    assert peak_bytes(server.process.pid) - idle_bytes < UPLOADS_LIMIT_BYTES
    for worker in workers_of(server):  # it has decoded the bombs of the tests before, if they ran
        assert peak_bytes(worker) < WORKER_LIMIT_BYTES


def test_wrong_options_of_joj_fleet_are_refused(tmp_path: Path) -> None:
    def serve(*arguments: str) -> str:  # in its own process: if it listens, the test shall end
        command = [*JOJ, "fleet", "serve", *arguments]
        ran = subprocess.run(command, capture_output=True, text=True, timeout=HANG_S)
        assert ran.returncode == 2, ran
        return ran.stderr

    def refuse(*arguments: str) -> str:
        ran = joj("fleet", *arguments)
        assert ran.returncode == 2, ran
        return ran.stderr

    data = ("--data", str(tmp_path / "new"))
    there = ("--data", str(tmp_path))
    assert "without TLS" in serve(*there, "--host", "0.0.0.0")
    assert "needs a certificate and its key" in serve(*there, "--key", "x")
    assert "no such folder" in serve(*data)
    assert "no such folder" in refuse("devices", "--data", str(tmp_path / "none"))
    assert "cannot be named" in refuse("enrol", "../a", *data)
    assert "no device" in refuse("revoke", "../a", *data)
