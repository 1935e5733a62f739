"""The ASGI application, its routes and what runs beside them; uvicorn runs it until a signal."""

from __future__ import annotations

import asyncio
import fcntl
import logging
import os
import resource
import socket
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path

import uvicorn
from prometheus_client import generate_latest
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from jojlab.fleet.server.access import ServerLimits
from jojlab.fleet.server.connections import (
    ROOM_TO_END,
    Connections,
    CountingListener,
    bound_log,
    guard_connections,
    loop_of,
)
from jojlab.fleet.server.upload import NO_SUCH_PATH, UPLOAD, Metrics, Uploads
from jojlab.fleet.server.workers import Workers
from jojlab.fleet.store.objects import Store
from jojlab.foundation.errors import MachineError, UseError

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
            await asyncio.to_thread(workers.close)

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


_END_SECONDS = 10
_BACKLOG = 2048
_LEAST_CONNECTIONS = 16


@dataclass(frozen=True)
class Listening:
    """The address where the server listens, and its certificate; None for plain HTTP."""

    host: str
    port: int
    certificate: Path | None
    key: Path | None


def serve(
    store: Store, listening: Listening, limits: ServerLimits, workers: int, compact_seconds: float
) -> None:
    """Serve until SIGINT or SIGTERM, which return; uploads in progress are given 10 s to end."""
    _check(listening)
    lock = _lock(store)
    store.empty_spool(f"{UPLOAD}*", time.time())  # what was in progress was not acknowledged
    # Of each connection a descriptor; of each upload its tables and a folder.
    connections = Connections(_raise_descriptor_limit(limits.connections, limits.uploads))
    config = uvicorn.Config(
        application(store, limits, workers, compact_seconds, connections),
        http=guard_connections(connections, limits.head_seconds),
        ws="none",
        lifespan="on",
        access_log=False,
        log_level="warning",
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=_END_SECONDS,
        ssl_certfile=listening.certificate,
        ssl_keyfile=listening.key,
    )
    try:
        config.load()
    except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
        raise UseError(
            f"--certificate, --key: {error}", "name PEM files of a certificate and its key"
        ) from error
    bound_log()
    listener = _listen(listening, connections)
    scheme = "https" if listening.certificate else "http"
    host = f"[{listening.host}]" if ":" in listening.host else listening.host
    print(f"serving {scheme}://{host}:{listener.getsockname()[1]}, data in {store.url}", flush=True)
    try:
        with asyncio.Runner(loop_factory=lambda: loop_of(limits.head_seconds)) as runner:
            runner.run(uvicorn.Server(config).serve(sockets=[listener]))
    except KeyboardInterrupt:  # uvicorn ended in order, and hands the signal on
        print("ended")
    finally:
        listener.close()
        store.close()
        if lock is not None:
            os.close(lock)


def _check(listening: Listening) -> None:
    if (listening.certificate is None) != (listening.key is None):
        raise UseError("TLS needs a certificate and its key", "give --certificate and --key")
    try:
        is_loopback = ip_address(listening.host).is_loopback
    except ValueError as error:
        raise UseError(f"--host {listening.host}: no address", "such as 127.0.0.1 or ::") from error
    if listening.certificate is None and not is_loopback:
        raise UseError(
            f"--host {listening.host}: without TLS, everybody on the way could read tokens",
            "give --certificate and --key, or listen on 127.0.0.1 behind a proxy that has TLS",
        )


def _lock(store: Store) -> int | None:
    """Hold a folder, so that no second server empties this one's spool."""
    if store.folder is None:
        return None
    descriptor = os.open(store.folder / ".server.lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        os.close(descriptor)
        raise UseError(f"--data {store.url}: a server runs on it", "end that one") from error
    return descriptor


def _listen(listening: Listening, connections: Connections) -> socket.socket:
    family = socket.AF_INET6 if ":" in listening.host else socket.AF_INET
    listener = CountingListener(family, connections, _BACKLOG)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((listening.host, listening.port))
        listener.listen()  # who connects before uvicorn accepts waits, and is not refused
    except OSError as error:
        listener.close()
        raise MachineError(
            f"cannot listen on {listening.host} port {listening.port}: {error.strerror}",
            "name another --host or --port",
        ) from error
    return listener


def _raise_descriptor_limit(connections: int, uploads: int) -> int:
    """Return how many connections there can be, as far as the limit of descriptors can be raised.

    Raises MachineError where these are not even a few.
    """
    others = 128 + ROOM_TO_END + 6 * uploads
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = connections + others
    if soft < wanted:
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (min(wanted, hard), hard))
        soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if soft < others + _LEAST_CONNECTIONS:
        raise MachineError(
            f"{soft} open files are too few for a server",
            f"ulimit -Hn {wanted}, or LimitNOFILE= of systemd",
        )
    return min(connections, soft - others)
