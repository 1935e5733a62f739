"""The room for what is no segment, and what it may take."""

from __future__ import annotations

from pathlib import Path

import pytest

from jojlab.fleet.store.objects import open_store
from jojlab.fleet.store.quarantine import Quarantine

ROOM_BYTES = 1 << 20  # of which one device may have 128 KiB


@pytest.mark.parametrize(("size_bytes", "fit"), [(0, 8), (1, 8), (32 << 10, 4), (129 << 10, 0)])
def test_the_room_of_a_device_has_an_end(tmp_path: Path, size_bytes: int, fit: int) -> None:
    store = open_store(str(tmp_path / "data"), create=True)

    def keep(quarantine: Quarantine, number: int) -> bool:
        source = store.spool / "segment.tar"
        source.write_bytes(bytes(size_bytes))
        return quarantine.keep(source, "a", f"{number:064x}", "not-a-segment")

    quarantine = Quarantine(store, ROOM_BYTES)
    assert [keep(quarantine, number) for number in range(10)] == [n < fit for n in range(10)]
    again = Quarantine(store, ROOM_BYTES)
    assert again.size_bytes == quarantine.size_bytes
    assert not keep(again, 10)
