"""Signals that ask to end, held until a safe point of what they would interrupt.

A handler that raises does so between any two instructions of Python. Within concurrent.futures.wait
that leaves the locks of futures taken, which the thread of the executor then waits for without end:
a run that Ctrl-C interrupted there never ended.

A signal while DuckDB computes: DuckDB ends the query, and forgets what the signal had raised. Where
a handler raises, PyErr_CheckSignals() fails, and DuckDB raises RuntimeError in place of it.
"""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from jojlab.foundation.errors import EndAsked

# What the keyboard, kill(1) and a closed terminal send.
ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class HeldSignal:
    """The first signal that was held; see `held_signals`."""

    def __init__(self) -> None:
        self._number = 0
        self._handlers: dict[int, Callable[[int, FrameType | None], Any]] = {}

    def release(self) -> None:
        """Call the handler that the held signal would have had, which raises as a rule."""
        if self._number:
            number, self._number = self._number, 0
            self._handlers[number](number, None)

    def _hold(self, number: int, _: FrameType | None) -> None:
        self._number = self._number or number

    def _begin(self) -> None:
        for number in ENDING:
            handler = signal.getsignal(number)
            if callable(handler):  # neither ignored nor deadly
                self._handlers[number] = handler
                signal.signal(number, self._hold)

    def _end(self) -> None:
        for number, handler in self._handlers.items():
            signal.signal(number, handler)


@contextlib.contextmanager
def held_signals() -> Iterator[HeldSignal]:
    """Hold signals that ask to end until `release`, or the end of the block.

    Python handles signals in the main thread alone: in others nothing is held.
    """
    held = HeldSignal()
    is_main = threading.current_thread() is threading.main_thread()
    if is_main:
        held._begin()
    try:
        yield held
    finally:
        if is_main:
            held._end()
        held.release()


_DUCKDB_MESSAGE = "Query interrupted"


@contextmanager
def interruptible() -> Iterator[None]:
    """Raise again what a signal raised within it: EndAsked, or KeyboardInterrupt of Ctrl-C."""
    before = EndAsked.last
    try:
        yield
    except RuntimeError as error:
        if str(error) != _DUCKDB_MESSAGE:
            raise
        asked = EndAsked.last
        raise EndAsked(asked) if asked and asked != before else KeyboardInterrupt from None
