"""The start of User Mode Linux: nothing of this machine may show in its answers."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

from jojlab.foundation.cache import Cache
from jojlab.guest.user_mode import _has_changed, _own_processor, _same_each_time

# linux/personality.h
_ADDR_NO_RANDOMIZE = 0x0040000


def _words(command: list[str], program: str) -> list[str]:
    whole = [*command, sys.executable, "-c", program]
    return subprocess.run(whole, check=True, capture_output=True, text=True).stdout.split()


def test_its_addresses_are_the_same_each_time() -> None:
    program = "print(open('/proc/self/personality').read(), open('/proc/self/maps').read())"
    processor = min(os.sched_getaffinity(0))
    for command in (_same_each_time(None), _same_each_time(processor)):
        personality, *maps = _words(command, program)
        assert int(personality, 16) & _ADDR_NO_RANDOMIZE
        assert maps[0] == _words(command, program)[1]


def test_each_judge_has_a_processor_of_its_own_as_long_as_there_are_some(tmp_path: Path) -> None:
    cache, there = Cache(tmp_path), sorted(os.sched_getaffinity(0))
    with ExitStack() as held:
        own = [held.enter_context(_own_processor(cache)) for _ in there]
        assert own == there
        with _own_processor(cache) as none:
            assert none is None
    with _own_processor(cache) as first:
        program = "import os; print(*os.sched_getaffinity(0))"
        assert _words(_same_each_time(first), program) == [str(there[0])]


def test_a_source_with_other_texts_stays_as_it_is(tmp_path: Path) -> None:
    file = tmp_path / "process.c"
    file.write_text("put(fp); get(fp);")
    assert not _has_changed(tmp_path, file.name, ("put(fp)", "put()"), ("take(fp)", "take()"))
    assert file.read_text() == "put(fp); get(fp);"
    assert _has_changed(tmp_path, file.name, ("put(fp)", "put()"), ("get(fp)", "get()"))
    assert file.read_text() == "put(); get();"
