"""Signals while DuckDB computes."""

from __future__ import annotations

import signal
from typing import NoReturn

import duckdb
import pytest

from jojlab.foundation.signals import SignalReceived, interruptible

# DuckDB looks for signals between its tasks: this one ends late in the query, or after it.
QUERY = "SELECT count(*) FROM range(100_000_000) t(a) WHERE a % 7 = 3"


def end(number: int, _: object) -> NoReturn:
    raise SignalReceived(number)


def raise_as_ctrl_c(_: int, __: object) -> NoReturn:
    raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("handler", "number"), [(end, signal.SIGALRM), (raise_as_ctrl_c, signal.SIGINT)]
)
def test_a_signal_ends_a_query_as_itself(handler: signal.Handlers, number: int) -> None:
    own = signal.signal(signal.SIGALRM, handler)
    try:
        with (
            duckdb.connect() as connection,
            pytest.raises(KeyboardInterrupt) as ended,
            interruptible(),
        ):
            signal.setitimer(signal.ITIMER_REAL, 0.05)
            connection.execute(QUERY).fetchall()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, own)
        SignalReceived.last = 0
    assert SignalReceived(ended.value).number == number


def test_an_error_that_no_signal_raised_stays() -> None:
    with pytest.raises(RuntimeError, match="else"), interruptible():
        raise RuntimeError("something else")
