"""Keeps apart, under quarantine/, what was received whole and is no segment, for the person who
looks for the fault; bounded in bytes, for each device and for all.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from threading import Lock

from jojlab.fleet.store.objects import Store

_FOLDER = "quarantine"
_KEY = re.compile(
    rf"{_FOLDER}/device=(?P<device>[a-z0-9][a-z0-9-]{{0,62}})/"
    r"(?P<sha256>[0-9a-f]{64})\.(?P<reason>[a-z-]+)\.tar"
)
# No device may have more than this share of the room.
_SHARE_OF_ONE = 8
# A file counts as so much at least: a name takes memory, and an inode.
_LEAST_BYTES = 16 << 10


@dataclass(frozen=True)
class QuarantinedFile:
    """One file that is kept apart."""

    device: str
    sha256: str
    reason: str
    size_bytes: int

    @property
    def key(self) -> str:
        """Return its key in the store."""
        return f"{_FOLDER}/device={self.device}/{self.sha256}.{self.reason}.tar"


def list_quarantine(store: Store) -> Iterator[QuarantinedFile]:
    """Yield what is kept apart."""
    for each in store.objects(_FOLDER):
        if found := _KEY.fullmatch(each.key):
            yield QuarantinedFile(**found.groupdict(), size_bytes=each.size_bytes)


class Quarantine:
    """The room for what is kept apart."""

    def __init__(self, store: Store, room_bytes: int) -> None:
        self._store = store
        self._room_bytes = room_bytes
        self._kept = set[str]()
        self._of_device = Counter[str]()
        self._lock = Lock()  # uploads keep theirs in threads of their own
        for each in list_quarantine(store):
            self._kept.add(each.key)
            self._of_device[each.device] += _room_of(each)

    @property
    def size_bytes(self) -> int:
        """Return how much of the room is taken."""
        return self._of_device.total()

    def keep(self, source: Path, device: str, sha256: str, reason: str) -> bool:
        """Put a file of the spool apart; False if there is no room for it."""
        each = QuarantinedFile(device, sha256, reason, source.stat().st_size)
        with self._lock:
            if each.key in self._kept:
                return True
            of_device = self._of_device[device] + _room_of(each)
            whole = self.size_bytes + _room_of(each)
            if whole > self._room_bytes or of_device > self._room_bytes // _SHARE_OF_ONE:
                return False
            self._kept.add(each.key)
            self._of_device[device] = of_device
        try:
            self._store.put([(source, each.key)])
        except BaseException:
            with self._lock:
                self._kept.remove(each.key)
                self._of_device[device] -= _room_of(each)
            raise
        return True


def _room_of(each: QuarantinedFile) -> int:
    return max(each.size_bytes, _LEAST_BYTES)
