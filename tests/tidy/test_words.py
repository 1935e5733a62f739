"""Names are nouns and verbs (tests/tidy/words.py), and a basename says where one is."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import pytest

from tests.tidy.test_tidy import ROOT, tracked
from tests.tidy.words import is_vague, python_names, rust_names, vague_names

# Languages give these names.
EVERYWHERE = {"__init__.py", "__main__.py", "mod.rs", "main.rs", "conftest.py", "README.md"}
MOST_OF_A_NAME = 3
BASENAMES_LEFT = 2  # this number only falls


def test_every_name_says_something() -> None:
    assert [str(name) for name in vague_names()] == []


@pytest.mark.parametrize("name", ["told", "Named", "told_images", "FileFound", "of_kind", "given"])
def test_a_name_that_says_nothing_is_told(name: str) -> None:
    assert is_vague(name)


@pytest.mark.parametrize("name", ["read_disk_map", "is_known", "known_files", "group_of", "_", "T"])
def test_nouns_verbs_and_predicates_are_no_vague_names(name: str) -> None:
    assert not is_vague(name)


def test_definitions_of_both_languages_are_read() -> None:
    python = "class Told:\n    asked: int\ndef made(given): ...\ndef test_told(kept): ...\n"
    assert [name for _, _, name in python_names(python)] == ["Told", "asked", "made", "given"]
    rust = 'struct Told;\n// fn said\n#[test]\nfn told() { let s = "fn of"; }\nfn take() {}\n'
    assert [name for _, _, name in rust_names(rust)] == ["Told", "take"]


def test_a_basename_is_in_three_places_at_most() -> None:
    places: dict[str, list[Path]] = defaultdict(list)
    for path in tracked(".py", ".rs", ".c", ".h"):
        places[path.name].append(path)
    often = {
        name: [str(path.relative_to(ROOT)) for path in paths]
        for name, paths in places.items()
        if len(paths) > MOST_OF_A_NAME and name not in EVERYWHERE
    }
    assert len(often) <= BASENAMES_LEFT, often
