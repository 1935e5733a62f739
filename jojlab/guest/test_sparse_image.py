"""The reader of sparse images, which does not trust the guest."""

from __future__ import annotations

import struct
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jojlab.foundation.errors import GuestError
from jojlab.guest.handout import unpack

RAW, HOLE = 0xCAC1, 0xCAC3


def image(chunks: list[tuple[int, int]], blocks: int) -> bytes:
    out = struct.pack("<IHHHHIIII", 0xED26FF3A, 1, 0, 28, 12, 4096, blocks, len(chunks), 0)
    for kind, count in chunks:
        content = b"".join(bytes([number % 255 + 1]) * 4096 for number in range(count))
        content = content if kind == RAW else b""
        out += struct.pack("<HHII", kind, 0, count, 12 + len(content)) + content
    return out


def test_holes_and_blocks_come_back(tmp_path: Path) -> None:
    out = tmp_path / "disk"
    unpack(image([(HOLE, 3), (RAW, 2), (HOLE, 1)], 6), out)
    assert out.read_bytes() == bytes(3 * 4096) + b"\1" * 4096 + b"\2" * 4096 + bytes(4096)


@pytest.mark.parametrize("chunks", [[(RAW, 7)], [(HOLE, 5)], [(0xCAC2, 6)], [(RAW, 1), (HOLE, 6)]])
def test_chunks_that_do_not_fit_are_refused(chunks: list[tuple[int, int]], tmp_path: Path) -> None:
    with pytest.raises(GuestError):
        unpack(image(chunks, 6), tmp_path / "disk")


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=200), st.integers(0, 140), st.booleans())
def test_damage_is_an_error_and_no_crash(noise: bytes, at: int, cut: bool) -> None:
    sound = image([(HOLE, 1), (RAW, 1)], 2)
    damaged = sound[:at] + noise + (b"" if cut else sound[at + len(noise) :])
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "disk"
        try:
            unpack(damaged, out)
        except GuestError:
            return
        assert out.stat().st_size % 4096 == 0
