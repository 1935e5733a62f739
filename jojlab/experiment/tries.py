"""Runs guests in threads: each once, and a second time if this machine may have caused the failure.

A guest that died or returned nothing may have been killed for lack of memory; a missing file may
have been removed from outside. A failure that the guest itself reports is not retried: the result
is a pure function of the case, so a second guest would report the same.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from typing import Any, TypeVar

from jojlab.foundation.errors import JojError
from jojlab.guest.errors import GuestError
from jojlab.guest.process import kill_all

_Name = TypeVar("_Name")
_Result = TypeVar("_Result")


def tried(
    pool: Executor,
    tasks: Iterable[tuple[_Name, Callable[[], _Result]]],
    again: Callable[[_Name, str], None],
) -> Generator[tuple[_Name, Future[_Result]], None, None]:
    """Run every task, and yield its name and its last try, done; `again` hears of a second try.

    When it is closed, or fails, the tasks that wait are dropped and the guests killed: close it.
    """
    futures: dict[Future[_Result], tuple[_Name, Callable[[], _Result]]] = {}
    first: set[_Name] = set()
    try:
        for name, task in tasks:
            futures[pool.submit(task)] = (name, task)
            first.add(name)
        while futures:
            for future in wait(futures, return_when=FIRST_COMPLETED).done:
                name, task = futures.pop(future)
                error = future.exception()
                if name in first and worth_another_try(error):
                    first.discard(name)
                    again(name, failure(error))
                    futures[pool.submit(task)] = (name, task)
                else:
                    yield name, future
    finally:
        abandon(futures)


def worth_another_try(error: BaseException | None) -> bool:
    """Whether a second try may end otherwise."""
    return isinstance(error, OSError) or (isinstance(error, GuestError) and not error.final)


def failure(error: BaseException | None) -> str:
    """Say why a case failed: an error of a file with the file, and in words."""
    if isinstance(error, OSError) and not isinstance(error, JojError):
        where = f"{error.filename}: " if error.filename else ""
        return f"this machine failed: {where}{error.strerror or type(error).__name__}"
    return str(error)


def abandon(futures: Iterable[Future[Any]]) -> None:
    """Drop the cases that wait, and kill guests until none runs: one may be about to start."""
    running = [future for future in futures if not future.cancel()]
    while running:
        kill_all()
        running = list(wait(running, timeout=0.1).not_done)
