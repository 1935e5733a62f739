"""Connections of the server: their number, their time limits, and the bounded log of their
failures.

asyncio knows a connection when its handshake is done, and accepts as many as come in between until
the process has no descriptors left. Here the listening socket counts. When there are too many, the
oldest one that has not sent a whole request makes room for the newest: who only connects can keep
nobody else out.

h11 holds at most 16 KiB of a head (uvicorn's other parser any number of headers), but uvicorn waits
for its end as long as the sender likes.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import time
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

# Ended connections may keep their descriptors until the loop has come round.
ROOM_TO_END = 64


class Connections:
    """The open connections by their descriptors, the oldest first; at most so many."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._idle: OrderedDict[int, socket.socket] = OrderedDict()
        self._busy: dict[int, socket.socket] = {}
        self._ending: set[int] = set()
        self.ended_count = 0

    @property
    def may_accept(self) -> bool:
        """Return whether there are descriptors for one more."""
        open_now = len(self._idle) + len(self._busy) + len(self._ending)
        return open_now < self._limit + ROOM_TO_END

    def add(self, connection: socket.socket) -> None:
        """Take a new one; end the oldest that is idle, or the new one, where there is no room."""
        self._idle[connection.fileno()] = connection
        if len(self._idle) + len(self._busy) > self._limit:
            number, oldest = self._idle.popitem(last=False)
            self._ending.add(number)
            self.ended_count += 1
            with suppress(OSError):  # its peer may have hung up
                oldest.shutdown(socket.SHUT_RDWR)

    def set_busy(self, number: int) -> None:
        """Say that it has sent the head of a request; from now on it is not ended for others."""
        if (connection := self._idle.pop(number, None)) is not None:
            self._busy[number] = connection

    def set_idle(self, number: int) -> None:
        """Say that its request is answered."""
        if (connection := self._busy.pop(number, None)) is not None:
            self._idle[number] = connection

    def forget(self, number: int) -> None:
        """Say that it is closed."""
        self._idle.pop(number, None)
        self._busy.pop(number, None)
        self._ending.discard(number)


class CountingListener(socket.socket):
    """A listening socket whose connections are counted; `backlog` are waiting at most."""

    def __init__(self, family: int, connections: Connections, backlog: int) -> None:
        super().__init__(family, socket.SOCK_STREAM)
        self._connections = connections
        self._backlog = backlog

    def listen(self, _backlog: int = 0, /) -> None:
        """Listen; the event loop asks for another backlog."""
        super().listen(self._backlog)

    def accept(self) -> tuple[socket.socket, Any]:
        """Accept one; BlockingIOError, as where none waits, until ended ones are closed."""
        if not self._connections.may_accept:
            raise BlockingIOError
        number, address = self._accept()  # type: ignore[attr-defined]
        connection = _CountedSocket(self.family, self.type, self.proto, fileno=number)
        connection.connections = self._connections
        self._connections.add(connection)
        return connection, address


class _CountedSocket(socket.socket):
    """An accepted socket."""

    connections: Connections | None = None

    def close(self) -> None:
        number = self.fileno()
        super().close()
        if self.connections is not None:
            self.connections.forget(number)


def loop_of(handshake_seconds: float) -> asyncio.AbstractEventLoop:
    """Return an event loop whose servers wait so long for a TLS handshake (asyncio: 60 s)."""

    class Loop(asyncio.SelectorEventLoop):
        async def create_server(self, *arguments: Any, **settings: Any) -> asyncio.Server:
            if settings.get("ssl") is not None:
                settings.setdefault("ssl_handshake_timeout", handshake_seconds)
            return await super().create_server(*arguments, **settings)

    return Loop()


def guard_connections(connections: Connections, head_seconds: float) -> type[H11Protocol]:
    """Return the protocol of a server; it says which connections are busy with a request."""

    class GuardedProtocol(H11Protocol):
        _timer: asyncio.TimerHandle | None = None
        _number = -1  # of its descriptor

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self._number = transport.get_extra_info("socket").fileno()
            self._await_head()

        def handle_events(self) -> None:
            super().handle_events()
            if self.cycle is not None and not self.cycle.response_complete:
                connections.set_busy(self._number)

        def connection_lost(self, exc: Exception | None) -> None:
            if self._timer is not None:
                self._timer.cancel()
            self._number = -1  # another's from now on
            super().connection_lost(exc)

        def on_response_complete(self) -> None:
            connections.set_idle(self._number)
            super().on_response_complete()  # which may begin with the next request
            self._await_head()

        def send_400_response(self, msg: str) -> None:
            # The head was well, the body is not: what the application answers cannot be sent.
            if self.cycle is not None and not self.cycle.response_complete:
                self.cycle.disconnected = True
                self.cycle.message_event.set()
            super().send_400_response(msg)

        def _await_head(self) -> None:
            if self._timer is not None:
                self._timer.cancel()
            self._timer = self.loop.call_later(head_seconds, self._end_without_head)

        def _end_without_head(self) -> None:
            if self.cycle is None or self.cycle.response_complete:
                self.transport.abort()

    return GuardedProtocol


LINES = 5
SECONDS = 60.0
_KINDS = 256


class LogRate(logging.Filter):
    """Lets LINES of a kind through in SECONDS; the next that passes says how many did not."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._kinds: dict[tuple[str, str], tuple[float, int]] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether a record is written. Lines are of one kind that one statement writes."""
        kind = record.name, str(record.msg).splitlines()[0][:80] if record.msg else ""
        now_s = self._clock()
        since_s, count = self._kinds.get(kind, (now_s, 0))
        if now_s - since_s >= SECONDS:
            if count > LINES:
                record.msg = f"{record.msg} ({count - LINES} more like it before)"
            since_s, count = now_s, 0
        if kind not in self._kinds and len(self._kinds) >= _KINDS:
            self._kinds.clear()
        self._kinds[kind] = since_s, count + 1
        return count < LINES


def bound_log() -> None:
    """Bound what uvicorn and asyncio write."""
    for name in ("uvicorn.error", "asyncio"):
        logging.getLogger(name).addFilter(LogRate())
