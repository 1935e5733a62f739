"""A state is found by its hash, or as the worst; anything else is refused with a remedy."""

from __future__ import annotations

from pathlib import Path

import pytest

from jojlab.campaign.state_image import WORST, find_state
from jojlab.foundation.errors import UseError
from jojlab.trace.run_folder import RunFolder
from tests.captures import make_run
from tests.power_cut_answers import cut, state

WAL = "filesystem=ext4,journal_mode=wal"


def cut_run(folder: Path) -> RunFolder:
    run = make_run(folder, seeds=[1], transactions=2)
    states = [
        state(1, hash="ab10"),
        state(2, outcome="lost", hash="ab20"),
        state(3, outcome="lost", lost=2, hash="cd30"),
    ]
    cut(run, WAL, states)
    return run


def test_a_state_is_named_by_the_beginning_of_its_hash_or_as_the_worst(tmp_path: Path) -> None:
    run = cut_run(tmp_path / "run")
    assert find_state(run, "ab2").state.hash == "ab20"
    found = find_state(run, WORST)
    assert (found.state.hash, found.entry.case_id, found.answer.seed) == ("cd30", WAL, 1)


@pytest.mark.parametrize(
    ("name", "words"), [("ab", "several states"), ("ee", "no state that power cuts left")]
)
def test_no_state_and_several_are_told_apart(name: str, words: str, tmp_path: Path) -> None:
    with pytest.raises(UseError, match=words):
        find_state(cut_run(tmp_path / "run"), name)


def test_a_run_without_power_cuts_or_harm_has_no_worst_state(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", seeds=[1], transactions=2)
    with pytest.raises(UseError, match="was not cut"):
        find_state(run, WORST)
    cut(run, WAL, [state(1)])
    with pytest.raises(UseError, match="no state did harm"):
        find_state(run, WORST)
