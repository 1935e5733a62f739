"""Bounds the lines of the server's log, whatever strangers do: of equal ones some, and a count."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

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
