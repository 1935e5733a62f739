"""The memory model's plugin: it is compiled, and QEMU gets the sizes of a core that make tables."""

from __future__ import annotations

import ctypes
from pathlib import Path

import pytest

from jojlab.foundation.cache import Cache
from jojlab.foundation.errors import GuestError
from jojlab.guest.machine import Machine
from jojlab.guest.memory_model import CORES, WatchedBuffer, arguments, counts_of, plugin


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Cache:
    return Cache(tmp_path_factory.mktemp("cache"))


def test_the_plugin_has_what_qemu_asks_for(own: Cache) -> None:
    library = plugin(own)
    # Functions of QEMU that it calls are missing here: lazy binding, as for a plugin.
    loaded = ctypes.CDLL(str(library), mode=1)  # RTLD_LAZY
    assert ctypes.c_int.in_dll(loaded, "qemu_plugin_version").value == 1
    assert loaded.qemu_plugin_install


@pytest.mark.parametrize("name", CORES)
def test_sizes_make_sets_that_are_powers_of_two(own: Cache, name: str) -> None:
    tables = CORES[name].tables
    pairs = [
        (tables.l1_bytes // tables.line_bytes, tables.l1_ways),
        (tables.main_tlb_entries, tables.main_tlb_ways),
    ]
    if tables.l2_bytes:
        pairs.append((tables.l2_bytes // tables.line_bytes, tables.l2_ways))
    for entries, ways in pairs:
        sets, left = divmod(entries, ways)
        assert left == 0
        assert sets & (sets - 1) == 0
    word = arguments(own, CORES[name], Machine(1, 512))[1]
    assert f"l1_bytes={tables.l1_bytes}" in word
    # The last page of the hand-out memory, which follows 512 MiB and is 192 MiB long.
    assert f"marks={(512 + 192) * 1024 * 1024 - 4096}," in word


def test_qemu_gets_the_buffers_that_are_watched(own: Cache) -> None:
    watched = (WatchedBuffer("sbuf", 0xFFFFC90000A5D000, 129024),)
    word = arguments(own, CORES["arm11"], Machine(1, 512), watched)[1]
    assert ",buffer=sbuf:0xffffc90000a5d000:129024,out=" in word


def test_a_model_that_wrote_nothing_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(GuestError, match="no counts"):
        counts_of(tmp_path)
