"""Counts connections from the moment they are accepted, before TLS, and ends the idle ones first.

asyncio knows a connection when its handshake is done, and accepts as many as come in between until
the process has no descriptors left. Here the listening socket counts. When there are too many, the
oldest one that has not sent a whole request makes room for the newest: who only connects can keep
nobody else out.
"""

from __future__ import annotations

import asyncio
import socket
from collections import OrderedDict
from contextlib import suppress
from typing import Any

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
        """Whether there are descriptors for one more."""
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
        connection = _Counted(self.family, self.type, self.proto, fileno=number)
        connection.connections = self._connections
        self._connections.add(connection)
        return connection, address


class _Counted(socket.socket):
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
