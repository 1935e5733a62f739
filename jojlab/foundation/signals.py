"""Signals that ask to end: the one exception that they are, and where they are raised, held and
passed on.

A handler that raises does so between any two instructions of Python. Within concurrent.futures.wait
that leaves the locks of futures taken, which the thread of the executor then waits for without end:
a run that Ctrl-C interrupted there never ended.

While DuckDB computes, a signal ends the query, and DuckDB forgets what the signal had raised: where
a handler raises, PyErr_CheckSignals() fails, and DuckDB raises RuntimeError in place of it.
"""

from __future__ import annotations

import contextlib
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping
from types import FrameType
from typing import Any, NoReturn

from jojlab.foundation.errors import with_remedy

# What the keyboard, kill(1) and a closed terminal send.
ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
Handler = Callable[[int, FrameType | None], Any] | signal.Handlers
_DUCKDB_MESSAGE = "Query interrupted"


class SignalReceived(KeyboardInterrupt):
    """A signal asked to end, as Ctrl-C does; `rest` says what became of the work.

    `cause` is the number of the signal, or what it had raised, such as the KeyboardInterrupt of
    Ctrl-C. `last` is the number of the last one, 0 before any: DuckDB forgets it.
    """

    last = 0

    def __init__(self, cause: int | KeyboardInterrupt, rest: str = "", remedy: str = "") -> None:
        if isinstance(cause, KeyboardInterrupt):
            number: int = cause.number if isinstance(cause, SignalReceived) else int(signal.SIGINT)
        else:
            number = cause
        how = "interrupted" if number == signal.SIGINT else f"ended by {signal_name(number)}"
        self.message = f"{how}; {rest}" if rest else how
        self.remedy = remedy
        super().__init__(self.message)
        self.number: int = number
        SignalReceived.last = number
        self.exit_code = 128 + number  # as a shell reports it

    def __str__(self) -> str:
        return with_remedy(self.message, self.remedy)


def signal_name(number: int) -> str:
    """Return a signal's name, such as SIGTERM."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def raise_at_signals() -> None:
    """Have SIGTERM and SIGHUP raise SignalReceived, as SIGINT raises KeyboardInterrupt."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:  # as nohup(1) has it
            signal.signal(number, _raise)


def _raise(number: int, _: FrameType | None) -> NoReturn:
    """Raise what a signal asks for, once: a second signal must not interrupt the clean-up."""
    for each in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(each, signal.SIG_IGN)
    raise SignalReceived(number)


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


@contextlib.contextmanager
def interruptible() -> Iterator[None]:
    """Raise SignalReceived or KeyboardInterrupt again, which a signal raised as DuckDB computed."""
    before = SignalReceived.last
    try:
        yield
    except RuntimeError as error:
        if str(error) != _DUCKDB_MESSAGE:
            raise
        number = SignalReceived.last
        raise SignalReceived(number) if number and number != before else KeyboardInterrupt from None


@contextlib.contextmanager
def handled_signals(handlers: Mapping[int, Handler]) -> Iterator[None]:
    """Have signals handled by these handlers; what is ignored stays so."""
    before = {
        number: signal.signal(number, handler)
        for number, handler in handlers.items()
        if signal.getsignal(number) is not signal.SIG_IGN
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class SignalRelay:
    """Hands signals on to a process, once it is known; `number` is the first one, 0 before any."""

    def __init__(self) -> None:
        self.number = 0
        self._process: subprocess.Popen[str] | None = None

    def forward_to(self, process: subprocess.Popen[str]) -> None:
        """Send the process what has come already, and what comes from now on."""
        self._process = process
        if self.number:
            process.send_signal(self.number)

    def handle(self, number: int, _: FrameType | None) -> None:
        """Hand a signal on."""
        self.number = self.number or number
        if self._process:
            self._process.send_signal(number)


@contextlib.contextmanager
def relayed_signals() -> Iterator[SignalRelay]:
    """Yield what hands signals that ask to end on to a process."""
    relay = SignalRelay()
    with handled_signals(dict.fromkeys(ENDING, relay.handle)):
        yield relay
