"""Tests what is said of a risk."""

import pytest

from jojlab.analysis.run.risks import hazards, unknowns
from jojlab.analysis.run.summary import CaseSummary
from jojlab.experiment.cases import complete
from jojlab.model.hazards import Doubt, ModeCounts, Observation
from jojlab.report.hazards import (
    _UNKNOWN,
    SHORT,
    doubt_sentences,
    hazard_sentences,
    manuals,
    risk_mark,
    risk_words,
    summarise_labels,
)

RISKY = {"journal_mode": "wal", "synchronous": "normal", "databases": 2}


def test_every_doubt_and_harm_has_its_words() -> None:
    assert set(_UNKNOWN) == set(Doubt)
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
    told = hazard_sentences(found)
    assert len(told) == len(words)
    assert all(word in sentence for word, sentence in zip(words, told, strict=True))
    assert risk_words(found) == mark


def test_cases_are_named_or_counted() -> None:
    assert summarise_labels(["a", "b"], 2) == "every case"
    assert summarise_labels(["a", "b"], 3) == "a; b"
    assert summarise_labels(list("abcd"), 9) == "4 of 9 cases"


def program_words(observation: Observation) -> CaseSummary:
    case = complete({"workload": "program"})
    found = hazards(case, observation=observation)
    return CaseSummary(
        "a", "a", case, "ok", "", hazards=found, unknowns=unknowns(case, observation)
    )


def test_too_little_is_not_called_safe() -> None:
    nothing = program_words(Observation(modes={}))
    assert (manuals(nothing), risk_mark(nothing)) == ("not known", "safety: not known")
    assert doubt_sentences(nothing.unknowns) == (
        "no SQLite was seen in it: what it promises of its files is not known",
    )
    some = Observation(
        modes={"wal": ModeCounts(68, end_unsynced=62)}, found_databases=2, lost_calls=True
    )
    found = program_words(some)
    assert manuals(found) == "last commits; else not known"
    assert risk_mark(found) == "at risk: last commits; else not known"
    assert hazard_sentences(found.hazards) == (
        "62 of 68 commits (WAL) returned before the frames were synced, as with synchronous "
        "NORMAL: a power cut may lose the last commits",
    )
    whole = program_words(Observation(modes={"wal": ModeCounts(68)}, found_databases=2))
    assert (manuals(whole), risk_mark(whole)) == ("no warning", "")


def test_a_lacking_sync_is_told_with_its_journal_mode() -> None:
    modes = {"delete": ModeCounts(3, end_unsynced=2), "wal": ModeCounts(49)}
    case = program_words(Observation(modes=modes, found_databases=1))
    assert hazard_sentences(case.hazards) == (
        "2 of 52 commits (DELETE) returned before the end of the journal was synced: a power cut "
        "just after such a commit may undo it",
    )
    assert manuals(case) == "last commits"
    assert manuals(case, has_room=True) == "last commits in 2 of 52 commits (DELETE)"
    one = Observation(modes={"delete": ModeCounts(1, end_unsynced=1)}, found_databases=1)
    alone = manuals(program_words(one), has_room=True)
    assert alone == "last commits in 1 of 1 commit (DELETE)"


def test_one_number_alone_is_told_of_the_commits_at_risk() -> None:
    modes = {"delete": ModeCounts(3, end_unsynced=2), "wal": ModeCounts(49, end_unsynced=40)}
    case = program_words(Observation(modes=modes, found_databases=1))
    assert manuals(case, has_room=True) == "last commits"
