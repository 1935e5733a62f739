"""The script that replays are compared by."""

from __future__ import annotations

from bench.replay import CALLS, INTERVAL_US, MIX, random_script


def test_a_script_has_so_many_calls_of_one_thread_on_files_of_its_own() -> None:
    lines = [line.split() for line in random_script(MIX, CALLS, INTERVAL_US)]
    assert len(lines) == CALLS
    assert [int(line[1]) for line in lines] == [number * INTERVAL_US for number in range(CALLS)]
    assert {line[0] for line in lines} == {"0"}
    opened = {line[5] for line in lines if line[2] == "open"}
    assert {line[3] for line in lines if line[2] != "open"} == opened
    # The times of these two files' contents are those of the first write and of the last.
    written = [(number, line) for number, line in enumerate(lines) if line[3] in ("100", "101")]
    assert [(number, line[2]) for number, line in written] == [(1, "write"), (CALLS - 1, "write")]
    assert list(random_script(MIX, 300, 0)) == list(random_script(MIX, 300, 0))
