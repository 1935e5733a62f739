"""Names are nouns and verbs (tests/tidy/words.py), and a basename says where one is."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.tidy.test_tidy import ROOT, tracked_files
from tests.tidy.words import (
    has_no_subject,
    is_fault,
    is_participle,
    is_vague,
    python_names,
    rust_names,
    vague_names,
)

# Languages give these names.
EVERYWHERE = {"__init__.py", "__main__.py", "mod.rs", "main.rs", "conftest.py", "README.md"}
MOST_OF_A_NAME = 3

# A sentence that begins so has no subject, but a question does: "What does one commit cost?"
NO_SUBJECT = r"(?:Who|Whose|How|Which|When|What|Where|Why|Of)\b(?!(?:[^.]|\.\w)*\?)"
RUST_DOCUMENT = re.compile(r"(?m)^[ \t]*//[/!] .*\n(?:[ \t]*//[/!].*\n)*")
RUST_MARK = re.compile(r"(?m)^[ \t]*//[/!] ?")
RUST_FUNCTION = re.compile(
    r"(?:\s*#\[.*\]\n)*[ \t]*(?:pub(?:\([a-z]+\))? )?(?:(?:const|unsafe|async) )*fn "
)


def test_every_name_says_something() -> None:
    assert [str(name) for name in vague_names()] == []


@pytest.mark.parametrize("name", ["told", "Named", "told_images", "FileFound", "of_kind", "given"])
def test_a_name_that_says_nothing_is_told(name: str) -> None:
    assert is_vague(name)


@pytest.mark.parametrize("name", ["Listed", "Cut", "Until", "LeftOut", "_Decoded"])
def test_a_type_that_is_a_participle_or_a_preposition_alone_is_told(name: str) -> None:
    assert is_vague(name, is_type=True)
    assert not is_vague(name)


@pytest.mark.parametrize("name", ["opened", "_written", "torn", "unfinished"])
def test_a_function_that_is_a_participle_alone_is_told(name: str) -> None:
    assert is_participle(name)
    assert is_fault("function", name)
    assert not any(map(is_participle, ("feed", "read", f"note_{name}", f"is_{name}", "cut")))


@pytest.mark.parametrize("name", ["Seed", "DecodedCall", "FailedJob", "Run", "CutMoment"])
def test_nouns_are_names_of_types(name: str) -> None:
    assert not is_vague(name, is_type=True)


@pytest.mark.parametrize("name", ["read_disk_map", "is_known", "known_files", "group_of", "_", "T"])
def test_nouns_verbs_and_predicates_are_no_vague_names(name: str) -> None:
    assert not is_vague(name)


def test_definitions_of_both_languages_are_read() -> None:
    python = "class Told:\n    asked: int\ndef made(given): ...\ndef test_told(kept): ...\n"
    python += "Said = Found = tuple[int]\nKEPT = 1\n"
    names = [(kind, name) for _, kind, name in python_names(python)]
    assert names[:2] == [("class", "Told"), ("field", "asked")]
    assert names[2:5] == [("function", "made"), ("parameter", "given"), ("test", "test_told")]
    assert names[5:] == [("type", "Said"), ("type", "Found")]
    rust = 'struct Told;\n// fn said\n#[test]\nfn told() { let s = "fn of"; }\nfn take() {}\n'
    assert list(rust_names(rust)) == [(4, "test", "told"), (1, "struct", "Told"), (5, "fn", "take")]


@pytest.mark.parametrize("name", ["test_what_is_kept", "who_waits_stops", "of_many_the_last_stays"])
def test_a_tests_name_begins_with_its_subject(name: str) -> None:
    assert has_no_subject(name)
    assert not has_no_subject("test_a_link_that_leads_out_is_refused")


def test_a_basename_is_in_three_places_at_most() -> None:
    places: dict[str, list[Path]] = defaultdict(list)
    for path in tracked_files(".py", ".rs", ".c", ".h"):
        places[path.name].append(path)
    often = {
        name: [str(path.relative_to(ROOT)) for path in paths]
        for name, paths in places.items()
        if len(paths) > MOST_OF_A_NAME and name not in EVERYWHERE
    }
    assert often == {}


def python_documents(text: str) -> Iterator[tuple[str, bool]]:
    """Yield every docstring of a Python file, and whether it is a function's."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            is_function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            yield ast.get_docstring(node) or "", is_function


def rust_documents(text: str) -> Iterator[tuple[str, bool]]:
    """Yield every doc comment of a Rust file, and whether it is a function's."""
    for found in RUST_DOCUMENT.finditer(text):
        yield RUST_MARK.sub("", found[0]), RUST_FUNCTION.match(text, found.end()) is not None


def has_subject(document: str, is_function: bool) -> bool:
    """Return whether a document opens as a sentence; a function's does not with Whether either."""
    if is_function and document.startswith("Whether "):
        return False
    return re.match(NO_SUBJECT, document) is None


def test_every_document_of_code_opens_as_a_sentence() -> None:
    read = {".py": python_documents, ".rs": rust_documents}
    faults = [
        f"{path.relative_to(ROOT)}: {document.splitlines()[0]}"
        for path in tracked_files(*read)
        for document, is_function in read[path.suffix](path.read_text())
        if not has_subject(document, is_function)
    ]
    assert faults == []


def test_documents_without_a_subject_are_found() -> None:
    rust = (
        "//! Which disks.\n\n/// Whether it is.\n#[inline]\npub(crate) const fn a() {}\n"
        "/// Return it.\n/// How it is.\nfn b() {}\n/// Whether it is.\nis_it: bool,\n"
    )
    assert [has_subject(*each) for each in rust_documents(rust)] == [False, False, True, True]
    python = '"""What does it cost? This."""\ndef a():\n    """Of one app: a name."""\n'
    assert [has_subject(*each) for each in python_documents(python)] == [True, False]
