"""Tests that what a process holds is its own, and not that of the process that started it."""

from __future__ import annotations

import os
import subprocess
import sys

from bench.process_memory import Memory, children, mapped_bytes, memory_of, peak_bytes

SMAPS = """\
00400000-00500000 r-xp 00000000 08:01 10 /usr/bin/joj-agent
Rss:                 800 kB
Pss:                 800 kB
7f0000000000-7f0000800000 rw-s 00000000 00:0e 11 anon_inode:bpf-map
Size:               8192 kB
Rss:                8188 kB
7f0000800000-7f0000801000 rw-s 00000000 00:0e 11 anon_inode:bpf-map
Rss:                   4 kB
7f0000900000-7f0000a00000 rw-p 00000000 00:00 0
Rss:                1024 kB
"""


def test_maps_that_are_mapped_are_found_and_counted_once() -> None:
    assert mapped_bytes(SMAPS) == 8192 << 10
    memory = Memory(100, 20, 30, 10)
    assert memory.whole_bytes == 140
    assert memory.largest(Memory(1, 50, 1, 1)) == Memory(100, 50, 30, 10)


def test_a_child_has_its_own_peak_and_not_its_parent_s() -> None:
    held = bytearray(os.urandom(1 << 20) * 64)
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        assert child.pid in children(os.getpid())
        held_by_child = peak_bytes(child.pid)
        assert 0 < held_by_child < len(held) < peak_bytes(os.getpid())
        assert held_by_child <= memory_of(os.getpid()).uploader_bytes
    assert peak_bytes(child.pid) == 0
