"""`joj verify durability` refuses what it cannot judge, with a remedy, before any guest runs."""

from __future__ import annotations

import pytest

from tests.inside import joj

PROGRAM = ("--program", "sh", "--check", "sh")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((*PROGRAM, "--faults", "short-write"), "--faults short-write: no such error"),
        (("first-look", "--faults", "no-space"), "no error is planted beneath sqlite-insert"),
        ((*PROGRAM, "--faults", "no-space", "--without-sync"), "are runs of their own"),
        (("first-look", "--generate", "3"), "--generate takes --set and no experiment or program"),
        (("--generate", "3", "--set", "filesystem=fat"), "filesystem cannot be 'fat'"),
        # Who names nothing gets the experiment power-cut.
        (("--set", "filesystem=fat"), "filesystem cannot be 'fat'"),
    ],
)
def test_what_cannot_be_judged_is_refused(arguments: tuple[str, ...], words: str) -> None:
    done = joj("verify", "durability", *arguments)
    assert done.returncode == 2
    assert words in done.stderr
    assert "remedy:" in done.stderr
