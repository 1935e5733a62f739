"""Signals that are held: nothing is interrupted before the safe point, and none is lost."""

from __future__ import annotations

import os
import signal
import threading

import pytest

from jojlab.foundation.signals import ENDING, SignalReceived, held_signals


def _handlers() -> list[object]:
    return [signal.getsignal(number) for number in ENDING]


def test_a_signal_waits_for_the_safe_point() -> None:
    before = _handlers()
    done = []
    with pytest.raises(KeyboardInterrupt), held_signals() as held:
        held.release()
        os.kill(os.getpid(), signal.SIGINT)
        done.append("not interrupted")
        held.release()
        done.append("unreachable")
    assert done == ["not interrupted"]
    assert _handlers() == before


def test_a_signal_without_a_safe_point_is_raised_at_the_end() -> None:
    done = []
    with pytest.raises(KeyboardInterrupt), held_signals():
        os.kill(os.getpid(), signal.SIGINT)
        done.append("not interrupted")
    assert done == ["not interrupted"]


def test_the_first_of_two_signals_counts_and_its_own_handler_is_called(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def end(number: int, _: object) -> None:
        raise SignalReceived(number)

    monkeypatch.setattr(SignalReceived, "last", 0)
    before = signal.signal(signal.SIGTERM, end)
    try:
        with pytest.raises(SignalReceived) as raised, held_signals():
            os.kill(os.getpid(), signal.SIGTERM)
            os.kill(os.getpid(), signal.SIGINT)
        assert raised.value.number == signal.SIGTERM
    finally:
        signal.signal(signal.SIGTERM, before)


def test_an_ignored_signal_stays_ignored() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with held_signals() as held:
            os.kill(os.getpid(), signal.SIGHUP)
            held.release()
    finally:
        signal.signal(signal.SIGHUP, before)


def test_another_thread_holds_no_signals() -> None:
    before = _handlers()
    inside: list[object] = []

    def run() -> None:
        with held_signals():
            inside.extend(_handlers())

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert inside == before
