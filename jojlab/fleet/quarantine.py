"""What was received whole and is no segment: kept apart, under quarantine/, for who looks for the
fault; bounded in bytes, for each device and for all.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from jojlab.fleet.store import Store

_FOLDER = "quarantine"
_KEY = re.compile(
    rf"{_FOLDER}/device=(?P<device>[a-z0-9][a-z0-9-]{{0,62}})/"
    r"(?P<sha256>[0-9a-f]{64})\.(?P<reason>[a-z-]+)\.tar"
)
# No device may have more than this share of the room.
_SHARE_OF_ONE = 8


@dataclass(frozen=True)
class Quarantined:
    """One file that is kept apart."""

    device: str
    sha256: str
    reason: str
    size_bytes: int

    @property
    def key(self) -> str:
        """Where it is in the store."""
        return f"{_FOLDER}/device={self.device}/{self.sha256}.{self.reason}.tar"


def quarantined(store: Store) -> Iterator[Quarantined]:
    """Yield what is kept apart."""
    for each in store.objects(_FOLDER):
        if found := _KEY.fullmatch(each.key):
            yield Quarantined(**found.groupdict(), size_bytes=each.size_bytes)


class Quarantine:
    """The room for what is kept apart."""

    def __init__(self, store: Store, room_bytes: int) -> None:
        self._store = store
        self._room_bytes = room_bytes
        self._kept = {each.key: each for each in quarantined(store)}
        self._of_device = Counter[str]()
        for each in self._kept.values():
            self._of_device[each.device] += each.size_bytes

    @property
    def size_bytes(self) -> int:
        """How much is kept apart."""
        return self._of_device.total()

    def keep(self, source: Path, device: str, sha256: str, reason: str) -> bool:
        """Put a file of the spool apart; False if there is no room for it."""
        each = Quarantined(device, sha256, reason, source.stat().st_size)
        if each.key in self._kept:
            return True
        of_device = self._of_device[device] + each.size_bytes
        whole = self.size_bytes + each.size_bytes
        if whole > self._room_bytes or of_device > self._room_bytes // _SHARE_OF_ONE:
            return False
        self._store.put([(source, each.key)])
        self._kept[each.key] = each
        self._of_device[device] = of_device
        return True
