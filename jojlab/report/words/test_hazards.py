"""What is said of a risk."""

import pytest

from jojlab.analysis.run.risks import Cause, hazards
from jojlab.experiment.cases import complete
from jojlab.report.words.hazards import _SENTENCES, SHORT, named, sentences, short

RISKY = {"journal_mode": "wal", "synchronous": "normal", "databases": 2}


def test_every_cause_has_its_sentence() -> None:
    assert set(_SENTENCES) == set(Cause)
    assert set(SHORT) == {type(kind)(kind) for kind in type(next(iter(SHORT)))}


@pytest.mark.parametrize(
    ("settings", "words", "mark"),
    [
        ({"journal_mode": "delete"}, ["just after a commit"], "last commits"),
        ({"journal_mode": "off"}, ["journal_mode off: a crash or a power cut"], "database"),
        (RISKY, ["lose the last commits", "in only some of them"], "last commits, atomicity"),
        ({"synchronous": "off"}, ["lose commits and corrupt"], "last commits, database"),
        (
            {"mount_options": "nobarrier"},
            ["nobarrier: the filesystem sends no flush"],
            "last commits, database, filesystem",
        ),
        ({"workload": "file-write", "sync_every": 5}, ["one sync for 5"], "last writes"),
        (
            {"workload": "file-metadata", "sync_directory": "on", "mount_options": "nobarrier"},
            ["lose writes and names whose sync returned"],
            "last changes of names, filesystem",
        ),
        (
            {"filesystem": "f2fs"},
            ["a second power cut, in the milliseconds"],
            "last commits, database",
        ),
        (
            {"filesystem": "f2fs", "batch_atomic_write": "on"},
            ["a second power cut, in the milliseconds", "before the file's node is written"],
            "last commits, database",
        ),
        ({"filesystem": "nilfs2"}, ["goes on in the next segment"], "filesystem"),
        ({"journal_mode": "wal"}, [], ""),
    ],
)
def test_one_sentence_a_cause(settings: dict[str, str | int], words: list[str], mark: str) -> None:
    found = hazards(complete(settings))
    told = sentences(found)
    assert len(told) == len(words)
    assert all(word in sentence for word, sentence in zip(words, told, strict=True))
    assert short(found) == mark


def test_cases_are_named_or_counted() -> None:
    assert named(["a", "b"], 2) == "every case"
    assert named(["a", "b"], 3) == "a; b"
    assert named(list("abcd"), 9) == "4 of 9 cases"
