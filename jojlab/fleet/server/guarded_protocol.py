"""HTTP/1.1 as uvicorn and h11 speak it, with a limit of time for a head.

h11 holds at most 16 KiB of a head (uvicorn's other parser any number of headers), but uvicorn waits
for its end as long as the sender likes.
"""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

from jojlab.fleet.server.connections import Connections


def guarded(connections: Connections, head_seconds: float) -> type[H11Protocol]:
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
