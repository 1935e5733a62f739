"""Every command line that Mobibench takes is a case that the agent takes, or is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jojlab.foundation.errors import UseError
from jojlab.live.mobibench import _NUMBERS, read_flags
from jojlab.live.runner import live_settings
from jojlab.model.fields import BY_NAME

NUMBERS = st.dictionaries(st.sampled_from(sorted(_NUMBERS)), st.integers(-3, 5000))


@given(NUMBERS, st.booleans())
def test_numbers_make_a_case_or_an_error(numbers: dict[str, int], quiet: bool) -> None:
    flags = [f"-{letter}{number}" for letter, number in numbers.items()]
    try:
        asked = read_flags(["-p", "here", *flags, *(["-q"] if quiet else [])])
    except UseError as error:
        assert "joj bench mobibench: " in error.message
        return
    assert asked
    assert asked.quiet == quiet
    case = live_settings(asked.settings, "test")
    for name, value in case.items():
        if name != "file_bytes":  # here the disk is the limit, and not the lab's memory
            BY_NAME[name].check(value, "test")


def test_the_flags_mean_what_they_mean() -> None:
    asked = read_flags(["-p", "d", "-d", "2", "-n", "100", "-j", "3", "-s", "1", "-D", "2", "-i5"])
    assert asked
    case = asked.settings
    assert case["workload"] == "sqlite-delete"
    assert (case["transactions"], case["journal_mode"], case["synchronous"]) == (
        100,
        "wal",
        "normal",
    )
    assert (case["tables"], case["statements"], case["databases"]) == (3, 3, 2)
    assert (case["interval_us"], case["key_order"]) == (5000, "random")
    asked = read_flags(["-f", "1024", "-r", "8", "-t", "4", "-a", "3", "-y", "3", "-v", "20"])
    assert asked
    case = asked.settings
    assert (case["workload"], case["read_mode"]) == ("file-read", "o_direct")
    assert (case["access"], case["overlap_percent"]) == ("shuffled", 20)
    assert (case["record_bytes"], case["file_bytes"], case["transactions"]) == (8192, 262144, 128)


def test_a_script_is_all_there_is_to_a_replay(tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text("1 0 close 3\n")
    asked = read_flags(["-p", "d", "-d", "0", "-q", "-g", str(script)])
    assert asked
    assert asked.quiet
    assert asked.settings == {
        "workload": "replay",
        "recording": str(script),
        "recorded_root": "/",
        "timing": "recorded",
        "timing_percent": 100,
        "background": "none",
    }
    with pytest.raises(UseError, match="no such file"):
        read_flags(["-g", str(tmp_path)])
