"""The HTTP service of `joj fleet serve`: its routes and its metrics."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    disable_created_metrics,
    generate_latest,
)
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from jojlab.fleet.server.access import ServerLimits
from jojlab.fleet.server.connections import Connections
from jojlab.fleet.server.upload import Uploads
from jojlab.fleet.server.workers import Workers
from jojlab.fleet.store.objects import Store

NO_SUCH_PATH = "no-such-path"  # or no such method

# Answers that are errors, by reason: all words that can stand there, so that all begin at 0.
REASONS = (
    *("no-token", "wrong-token", "revoked", "too-many-wrong-tokens", "rate", "too-many-uploads"),
    *("no-length", "bad-name", "too-large", "too-slow", "broken-off", "wrong-hash", "busy"),
    *("not-a-segment", "too-large-decoded", "not-parquet", "wrong-schema", "bad-value"),
    *("killed-its-worker", "store", NO_SUCH_PATH),
)


class Metrics:
    """Counters since the server started."""

    def __init__(self, ended_connections: Callable[[], float]) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        self.stored = self._counter("segments_stored", "Segments that were stored")
        self.known = self._counter("segments_known", "Segments that were there already")
        self.stored_bytes = self._counter("stored_bytes", "Bytes of stored segments")
        self.rows = self._counter("rows", "Rows of stored segments", "table")
        self.refused = self._counter("refused", "Uploads refused", "reason")
        self.not_kept = self._counter(
            "quarantine_full", "Refused segments that quarantine had no room for"
        )
        ended = Gauge(
            "joj_fleet_ended_connections",
            "Connections without a request that were ended to make room",
            registry=self.registry,
        )
        ended.set_function(ended_connections)
        self.compactions = self._counter("compactions", "Compactions that ended", "how")
        self.uploads = Gauge("joj_fleet_uploads", "Uploads in progress", registry=self.registry)
        self.quarantine_bytes = Gauge(
            "joj_fleet_quarantine_bytes", "Room of quarantine that is taken", registry=self.registry
        )
        self.check_seconds = Histogram(
            "joj_fleet_check_seconds",
            "Time that checking a segment took, with waiting",
            registry=self.registry,
        )
        self.put_seconds = Histogram(
            "joj_fleet_put_seconds",
            "Time until a checked segment was durable",
            registry=self.registry,
        )
        for reason in REASONS:
            self.refused.labels(reason)
        for how in ("well", "badly"):
            self.compactions.labels(how)

    def _counter(self, name: str, meaning: str, *labels: str) -> Counter:
        return Counter(f"joj_fleet_{name}", meaning, labels, registry=self.registry)


_LOG = logging.getLogger("uvicorn.error")


def application(
    store: Store,
    limits: ServerLimits,
    worker_count: int,
    compact_seconds: float,
    connections: Connections,
) -> Starlette:
    """Return the application; `compact_seconds` is the time between compactions, 0 for none."""
    metrics = Metrics(lambda: connections.ended_count)
    workers = Workers(worker_count)
    uploads = Uploads(store, limits, workers, metrics)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        compacting = asyncio.create_task(_compact_often(store, compact_seconds, metrics))
        try:
            yield
        finally:
            compacting.cancel()
            with suppress(asyncio.CancelledError):
                await compacting
            await workers.close()

    async def healthz(_: Request) -> JSONResponse:
        try:
            await asyncio.to_thread(store.check)
        except OSError as error:
            return JSONResponse({"status": "the store does not answer", "detail": str(error)}, 503)
        return JSONResponse({"status": "ok"})

    async def show_metrics(_: Request) -> Response:
        text = generate_latest(metrics.registry)
        return Response(text, media_type="text/plain; version=0.0.4; charset=utf-8")

    routes = [
        Route("/v1/segments/{sha256}", uploads.put, methods=["PUT"]),
        Route("/healthz", healthz),
        Route("/metrics", show_metrics),
    ]

    async def refuse(_: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, HTTPException)
        metrics.refused.labels(NO_SUCH_PATH).inc()
        document = {"status": "refused", "reason": NO_SUCH_PATH}
        return JSONResponse(document, error.status_code, error.headers)

    handlers = {HTTPException: refuse}
    app = Starlette(routes=routes, lifespan=lifespan, exception_handlers=handlers)
    app.router.redirect_slashes = False
    return app


async def _compact_often(store: Store, seconds: float, metrics: Metrics) -> None:
    """Compact in a process of its own, again and again."""
    while seconds:
        await asyncio.sleep(seconds)
        try:
            code = await _compact(store)
        except OSError as error:  # no process could be started
            _LOG.error("nothing is compacted: %s", error)
            code = 1
        metrics.compactions.labels("badly" if code else "well").inc()


async def _compact(store: Store) -> int:
    command = (sys.executable, "-m", "jojlab", "fleet", "compact", "--data", store.url)
    compaction = await asyncio.create_subprocess_exec(
        *command, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.DEVNULL
    )
    try:
        return await compaction.wait()
    finally:
        if compaction.returncode is None:
            compaction.terminate()
            await compaction.wait()
