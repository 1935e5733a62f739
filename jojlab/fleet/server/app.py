"""The ASGI application: its routes, and what runs beside them as long as it is up."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from prometheus_client import generate_latest
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from jojlab.fleet.server.access import ServerLimits
from jojlab.fleet.server.connections import Connections
from jojlab.fleet.server.metrics import NO_SUCH_PATH, Metrics
from jojlab.fleet.server.upload import Uploads
from jojlab.fleet.server.workers import Workers
from jojlab.fleet.store.objects import Store

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
