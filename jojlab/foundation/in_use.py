"""Finds out which cache entries are in use, by shared locks (flock(2)) on their folders.

A process that was given an entry holds its lock as long as it lives: a run needs its kernel, image
and snapshot to the end. Emptying the cache removes only entries that nobody holds.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import threading
from collections.abc import Iterator
from pathlib import Path

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY

# The descriptors of the held entries; a child process has none of them.
_held: dict[Path, int] = {}
_held_lock = threading.Lock()


def hold(entry: Path) -> bool:
    """Hold the folder `entry` from here on; False when there is none, or it was just removed."""
    with _held_lock:
        if entry in _held and _leads_to(entry, _held[entry]):
            return True
        descriptor = _shared(entry)
        if descriptor is None:
            return False
        if entry in _held:  # what stood there before was dropped
            os.close(_held[entry])
        _held[entry] = descriptor
        return True


@contextlib.contextmanager
def held(entry: Path) -> Iterator[bool]:
    """Hold the folder `entry` within the block alone; False when there is none."""
    descriptor = _shared(entry)
    try:
        yield descriptor is not None
    finally:
        if descriptor is not None:
            os.close(descriptor)


@contextlib.contextmanager
def unused(path: Path) -> Iterator[bool]:
    """Whether `path` is unused; within the block, no other process can take it.

    False too when it is gone. A file is as good as a folder.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:  # gone, or another user's
        yield False
        return
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        free = _leads_to(path, descriptor)
    except BlockingIOError:
        free = False
    try:
        yield free
    finally:
        os.close(descriptor)


def _shared(entry: Path) -> int | None:
    """Open the folder with a shared lock; None when there is none, or it was just removed."""
    try:
        descriptor = os.open(entry, _DIRECTORY)
    except FileNotFoundError:
        return None
    # Whoever holds it exclusively is about to move it away, which is soon done.
    fcntl.flock(descriptor, fcntl.LOCK_SH)
    if _leads_to(entry, descriptor):
        return descriptor
    os.close(descriptor)
    return None


def _leads_to(path: Path, descriptor: int) -> bool:
    """Whether the name is still that of the opened folder."""
    try:
        return os.path.samestat(path.lstat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False
