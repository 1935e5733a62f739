"""One upload: its body goes into the spool, is compared with its name, checked, and put.

The body is read in a stream that is bounded in bytes and in time, so that a connection holds some
hundred KiB of memory, whatever is sent. The answer 200 or 201 is given when the segment is durable.
What the server counts of uploads, /metrics shows in the text format of Prometheus.
"""

from __future__ import annotations

import asyncio
import collections
import errno
import hashlib
import logging
import math
import os
import re
import shutil
import uuid
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path
from typing import TypeVar

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    disable_created_metrics,
)
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse

from jojlab.fleet.server.access import AccessControl, AccessDenied, ServerLimits
from jojlab.fleet.server.workers import Workers
from jojlab.fleet.store.dataset import store_segment
from jojlab.fleet.store.objects import Store
from jojlab.fleet.store.quarantine import Quarantine
from jojlab.fleet.store.segment import SEGMENT_LIMIT_BYTES, BadSegment, CheckedSegment
from jojlab.foundation.errors import DataError

NO_SUCH_PATH = "no-such-path"  # or no such method

# Answers that are errors, by reason: all words that can stand there, so that all begin at 0.
REASONS = (
    *("no-token", "wrong-token", "revoked", "too-many-wrong-tokens", "rate", "too-many-uploads"),
    *("no-length", "bad-name", "too-large", "too-slow", "broken-off", "wrong-hash", "busy"),
    *("not-a-segment", "too-large-decoded", "not-parquet", "wrong-schema", "bad-value"),
    *("killed-its-worker", "store", NO_SUCH_PATH),
)


_Metric = TypeVar("_Metric", Counter, Gauge, Histogram)


class Metrics:
    """Counters since the server started."""

    def __init__(self, ended_connections: Callable[[], float]) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        self.stored = self._new(Counter, "segments_stored", "Segments that were stored")
        self.known = self._new(Counter, "segments_known", "Segments that were there already")
        self.stored_bytes = self._new(Counter, "stored_bytes", "Bytes of stored segments")
        self.rows = self._new(Counter, "rows", "Rows of stored segments", "table")
        self.refused = self._new(Counter, "refused", "Uploads refused", "reason")
        self.not_kept = self._new(
            Counter, "quarantine_full", "Refused segments that quarantine had no room for"
        )
        ended = "Connections without a request that were ended to make room"
        self._new(Gauge, "ended_connections", ended).set_function(ended_connections)
        self.compactions = self._new(Counter, "compactions", "Compactions that ended", "how")
        self.uploads = self._new(Gauge, "uploads", "Uploads in progress")
        self.quarantine_bytes = self._new(
            Gauge, "quarantine_bytes", "Room of quarantine that is taken"
        )
        self.check_seconds = self._new(
            Histogram, "check_seconds", "Time that checking a segment took, with waiting"
        )
        self.put_seconds = self._new(
            Histogram, "put_seconds", "Time until a checked segment was durable"
        )
        for reason in REASONS:
            self.refused.labels(reason)
        for how in ("well", "badly"):
            self.compactions.labels(how)

    def _new(self, kind: type[_Metric], name: str, meaning: str, *labels: str) -> _Metric:
        return kind(f"joj_fleet_{name}", meaning, labels, registry=self.registry)


UPLOAD = "upload-"  # the folders of the spool that have one each
_BUSY_SECONDS = 5.0
_LOG = logging.getLogger("uvicorn.error")


class Uploads:
    """Takes uploads; one object serves all of them."""

    def __init__(
        self, store: Store, limits: ServerLimits, workers: Workers, metrics: Metrics
    ) -> None:
        self._store = store
        self._limits = limits
        self._workers = workers
        self._metrics = metrics
        self._gate = AccessControl(store, limits)
        self._quarantine = Quarantine(store, limits.quarantine_bytes)
        self._of_device = collections.Counter[str]()
        self._threads = ThreadPoolExecutor(limits.uploads)
        self._folders: list[Path] = []  # of the spool, that no upload has now
        metrics.quarantine_bytes.set(self._quarantine.size_bytes)

    async def put(self, request: Request) -> JSONResponse:
        """Answer PUT /v1/segments/SHA256."""
        try:
            return await self._put(request)
        except AccessDenied as denied:
            headers = {"connection": "close"}
            if denied.retry_after_s is not None:
                headers["retry-after"] = str(math.ceil(denied.retry_after_s))
            if denied.status == 401:
                headers["www-authenticate"] = "Bearer"
            return self._refuse(denied.status, denied.reason, headers)
        except BadSegment as refused:
            return self._refuse(422, refused.reason, {}, refused.detail)

    async def _put(self, request: Request) -> JSONResponse:
        address = request.client.host if request.client else ""
        authorization = request.headers.get("authorization")
        try:
            device = await self._gate.admit(authorization, address)
        except (OSError, DataError) as error:
            raise _store_fails(error) from error
        sha256 = request.path_params["sha256"]
        if not re.fullmatch(r"[0-9a-f]{64}", sha256):
            raise AccessDenied(400, "bad-name")
        length = request.headers.get("content-length", "")
        if not re.fullmatch(r"[0-9]{1,18}", length) or "transfer-encoding" in request.headers:
            raise AccessDenied(411, "no-length")
        if int(length) > SEGMENT_LIMIT_BYTES:
            raise AccessDenied(413, "too-large")
        async with self._place(device):
            self._gate.count_request(device, int(length))
            try:
                return await self._accept(request, device, sha256, int(length))
            except (OSError, DataError) as error:
                raise _store_fails(error) from error

    @asynccontextmanager
    async def _place(self, device: str) -> AsyncIterator[None]:
        """One of the places for uploads at once, of which a device may have some."""
        if self._of_device[device] >= self._limits.device_uploads:
            raise AccessDenied(429, "too-many-uploads", _BUSY_SECONDS)
        if self._of_device.total() >= self._limits.uploads:
            raise AccessDenied(503, "busy", _BUSY_SECONDS)
        self._of_device[device] += 1
        self._metrics.uploads.inc()
        try:
            yield
        finally:
            self._metrics.uploads.dec()
            self._of_device[device] -= 1
            if not self._of_device[device]:
                del self._of_device[device]

    async def _accept(
        self, request: Request, device: str, sha256: str, length_bytes: int
    ) -> JSONResponse:
        folder = self._folder()
        body = folder / "segment.tar"
        with _removal_after_error(folder):
            try:
                async with asyncio.timeout(self._limits.upload_deadline_s(length_bytes)):
                    found = await _receive(request, body, length_bytes)
            except TimeoutError:
                raise AccessDenied(408, "too-slow") from None
            except ClientDisconnect:
                raise AccessDenied(400, "broken-off") from None
            if found != sha256:
                raise AccessDenied(400, "wrong-hash")
        work = partial(self._check_and_store, body, device, sha256)
        checked = await asyncio.get_running_loop().run_in_executor(self._threads, work)
        if checked is None:
            self._metrics.known.inc()
            return JSONResponse({"status": "known"}, 200)
        self._metrics.stored.inc()
        self._metrics.stored_bytes.inc(length_bytes)
        for table, rows in checked.rows.items():
            self._metrics.rows.labels(table).inc(rows)
        return JSONResponse({"status": "stored"}, 201)

    def _check_and_store(self, body: Path, device: str, sha256: str) -> CheckedSegment | None:
        """Return what was stored, None if it was there; leave the folder empty, or remove it."""
        folder = body.parent
        with _removal_after_error(folder):
            try:
                with self._metrics.check_seconds.time():
                    checked = self._workers.check(body, folder)
            except BadSegment as refused:
                if not self._quarantine.keep(body, device, sha256, refused.reason):
                    self._metrics.not_kept.inc()
                self._metrics.quarantine_bytes.set(self._quarantine.size_bytes)
                raise
            except TimeoutError:
                raise AccessDenied(503, "busy", _BUSY_SECONDS) from None
            with self._metrics.put_seconds.time():
                is_new = store_segment(self._store, device, sha256, checked, folder)
            os.truncate(body, 0)
        if not is_new:
            shutil.rmtree(folder, ignore_errors=True)
            return None
        self._folders.append(folder)
        return checked

    def _folder(self) -> Path:
        """Return a new folder of the spool, or one that another upload has emptied.

        ext4 takes long to find an inode where many were deleted lately (recently_deleted() in
        fs/ext4/ialloc.c).
        """
        if self._folders:
            return self._folders.pop()
        folder = self._store.spool / f"{UPLOAD}{uuid.uuid4().hex}"
        folder.mkdir(mode=0o700)
        return folder

    def _refuse(
        self, status: int, reason: str, headers: dict[str, str], detail: str = ""
    ) -> JSONResponse:
        self._metrics.refused.labels(reason).inc()
        document = {"status": "refused", "reason": reason}
        return JSONResponse(document | ({"detail": detail} if detail else {}), status, headers)


@contextmanager
def _removal_after_error(folder: Path) -> Iterator[None]:
    """Remove the folder if what is done in it fails."""
    try:
        yield
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def _store_fails(error: OSError | DataError) -> AccessDenied:
    """Tell who runs the server why, and the sender to come again."""
    _LOG.error("the store fails: %s", error)
    is_full = isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)
    return AccessDenied(507 if is_full else 503, "store", _BUSY_SECONDS)


async def _receive(request: Request, path: Path, length_bytes: int) -> str:
    """Write the body to `path`, and return its SHA-256. Never writes more than its length."""
    digest = hashlib.sha256()
    left_bytes = length_bytes
    with path.open("wb", buffering=0) as out:
        async for block in request.stream():
            left_bytes -= len(block)
            if left_bytes < 0:
                raise AccessDenied(400, "broken-off")
            digest.update(block)
            out.write(block)
    if left_bytes:
        raise AccessDenied(400, "broken-off")
    return digest.hexdigest()
