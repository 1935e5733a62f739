"""joj-uploader: what it does with a spool where the server, the token or a disk is not as it should
be. `make collector` builds it.
"""

from __future__ import annotations

import json
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from jojlab.fleet.store.objects import open_store
from jojlab.fleet.store.quarantine import list_quarantine
from jojlab.foundation.places import agent_path
from tests.fleet.fleet_server import (
    FleetServer,
    segments_of,
    simulated_segments,
    token_of,
    with_name,
)
from tests.hangs import HANG_S

UPLOADER = agent_path().with_name("joj-uploader")


class Spool:
    """A spool with segments, as a collector leaves it, and the token of its device."""

    def __init__(self, folder: Path, token: str) -> None:
        self.folder = folder
        self.ready, self.refused = folder / "ready", folder / "refused"
        for each in (self.ready, self.refused):
            each.mkdir(parents=True)
        self.token_file = folder.with_name("token")
        self.token_file.write_text(token + "\n")
        self._count = 0

    def put(self, *segments: bytes) -> None:
        """Add segments, the newest last."""
        for segment in segments:
            name = f"{self._count:012}-{with_name(segment)[0]}.tar"
            (self.ready / name).write_bytes(segment)
            self._count += 1

    def command(self, url: str) -> list[str]:
        """The uploader of this spool."""
        options = {"--server": url, "--token-file": self.token_file, "--spool": self.folder}
        return [str(UPLOADER), *(str(word) for pair in options.items() for word in pair)]

    def send(self, url: str, code: int = 0) -> str:
        """Send what there is; it must end with this code. Return what was said."""
        ran = subprocess.run(
            [*self.command(url), "--once"], capture_output=True, text=True, timeout=HANG_S
        )
        assert ran.returncode == code, ran
        return ran.stderr

    @property
    def state(self) -> dict[str, Any]:
        """Return how sending goes."""
        found: dict[str, Any] = json.loads((self.folder / "uploader.json").read_text())
        return found

    def waiting_count(self) -> int:
        """Return how many segments wait."""
        return len(list(self.ready.iterdir()))


@pytest.fixture
def spool(tmp_path: Path) -> Spool:
    """Three segments of phone-1."""
    found = Spool(tmp_path / "spool", token_of(str(tmp_path / "data"), "phone-1"))
    found.put(*simulated_segments(3).values())
    return found


def test_a_refused_segment_is_kept_and_can_be_sent_once_more(spool: Spool, tmp_path: Path) -> None:
    spool.put(b"no segment")
    data = str(tmp_path / "data")
    with FleetServer(data) as server:
        said = spool.send(server.url)
        assert "not-a-segment" in said
        assert str(spool.refused) in said
        assert spool.state["sending"] == "refused"
        assert spool.waiting_count() == 0
        assert len(segments_of(open_store(data))) == 3
        assert [each.reason for each in list_quarantine(open_store(data))] == ["not-a-segment"]
        [kept] = spool.refused.iterdir()
        kept.rename(spool.ready / kept.name)
        spool.send(server.url)
    assert [path.name for path in spool.refused.iterdir()] == [kept.name]


@contextmanager
def other_server(status: int, body: bytes) -> Iterator[str]:
    """A server of something else, which answers the same to all."""

    class Handler(BaseHTTPRequestHandler):
        def do_PUT(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(status)
            self.send_header("Location", "https://login.example/")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.mark.parametrize("status", [200, 201, 302, 400, 401, 403, 404, 413, 422])
def test_a_server_of_something_else_gets_nothing_deleted(spool: Spool, status: int) -> None:
    with other_server(status, b"<html>please log in</html>") as url:
        said = spool.send(url, code=3)
    assert f"{url} answered {status}, and not as the server of a fleet does" in said
    assert (spool.waiting_count(), list(spool.refused.iterdir())) == (3, [])
    assert (spool.state["sending"], spool.state["server"]) == ("wrong-server", url)


def test_an_address_with_a_path_too_many(spool: Spool, tmp_path: Path) -> None:
    data = str(tmp_path / "data")
    with FleetServer(data) as server:
        assert "is --server right?" in spool.send(f"{server.url}/fleet", code=3)
        assert (spool.waiting_count(), spool.state["sending"]) == (3, "wrong-server")
        spool.send(server.url)
    assert spool.state["sending"] == "well"
    assert (spool.waiting_count(), len(segments_of(open_store(data)))) == (0, 3)


def test_no_server_and_another_ones_certificate(spool: Spool) -> None:
    said = spool.send("http://127.0.0.1:1", code=3)
    assert "http://127.0.0.1:1: " in said
    assert "refused" in said
    assert spool.state["sending"] == "later"
    said = spool.send("https://does-not-exist.invalid", code=3)
    assert said.startswith("joj-uploader: https://does-not-exist.invalid: ")
    assert spool.waiting_count() == 3


def test_a_token_that_was_revoked_keeps_everything(spool: Spool, tmp_path: Path) -> None:
    data = str(tmp_path / "data")
    good = spool.token_file.read_text()
    with FleetServer(data) as server:
        spool.token_file.write_text(token_of(data, "phone-2")[:-1] + "_")
        assert "wrong-token" in spool.send(server.url, code=3)
        assert (spool.waiting_count(), spool.state["sending"]) == (3, "wrong-token")
        spool.token_file.write_text(good)
        spool.send(server.url)
    assert (spool.waiting_count(), spool.state["sending"]) == (0, "well")


def test_a_server_with_a_full_disk_loses_nothing(spool: Spool, tmp_path: Path) -> None:
    data = tmp_path / "small"
    data.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(data)], check=True)
    try:
        spool.token_file.write_text(token_of(str(data), "phone-1") + "\n")
        with FleetServer(str(data)) as server:
            filler = data / "filler"
            with filler.open("wb", buffering=0) as out, pytest.raises(OSError, match="No space"):
                while True:
                    out.write(bytes(4096))
            process = subprocess.Popen(
                spool.command(server.url), stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True
            )
            _await(lambda: (spool.folder / "uploader.json").exists())
            assert (spool.state["sending"], spool.waiting_count()) == ("later", 3)
            assert "507" in spool.state["reason"]
            assert segments_of(open_store(str(data))) == []
            filler.unlink()
            _await(lambda: spool.waiting_count() == 0)  # it asks again after five seconds
            _await(lambda: spool.state["sending"] == "well")
            said = process.communicate()[1]  # its input ends
            assert process.returncode == 0
            assert "takes segments" in said
            assert len(segments_of(open_store(str(data)))) == 3
            assert server.refused_uploads("store") >= 1
    finally:
        subprocess.run(["umount", str(data)], check=True)


def _await(is_so: Callable[[], bool]) -> None:
    end_s = time.monotonic() + HANG_S
    while not is_so():
        assert time.monotonic() < end_s
        time.sleep(0.05)
