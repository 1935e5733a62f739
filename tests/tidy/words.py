"""Names that say nothing: participles and prepositions where a noun or a verb belongs.

`python -m tests.tidy.words` counts them by room; with rooms or files as arguments, such as
`jojlab/guest agent/src/lab`, it lists their places. A thing is a noun (`DiskMap`), an action is a
verb (`read_disk_map`); CONTRIBUTING.md has examples. In Python all names of modules, classes,
functions, parameters and fields are read; in Rust those of files, and of items with a keyword
before them; in C those of files. Names of tests are sentences, which begin with a subject.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]


def _set(text: str) -> frozenset[str]:
    return frozenset(text.split())


# They say nothing alone: what was told, to whom, behind what?
ALONE = _set("""
    told untold asked unasked made unmade said unsaid found unfound given kept held taken shown
    unshown known seen unseen named unnamed heard met take of by behind within beside than ours
    theirs unfit what whose which
""")
# At the beginning of a name: `told_images`. `known_files` and `HeldSignal` are an adjective and a
# noun.
AT_THE_BEGIN = _set("""
    told untold asked unasked said of by what whose which behind within beside than made
""")
# At its end: `as_given`, `FileFound`. `is_known` is a predicate, and `group_of(test)` is plain.
AT_THE_END = _set("""
    told untold asked said made found given kept held taken shown seen behind within beside than
    ours theirs what
""")
# A type is a thing, and none of these alone; most participles end with -ed.
NO_TYPE = _set("""
    left out about after before under over until without apart cut done begun written hidden drawn
    broken lost chosen torn sent built
""")
NOUNS = _set("seed speed feed need deed heed")
# A function is an action, a thing or a condition, and none of these alone; most end with -ed.
NO_FUNCTION = _set("""
    begun done written hidden drawn broken lost chosen torn sent grown gone thrown built
""")
FUNCTIONS = _set("function fn")
TYPES = _set("class struct enum union trait type")
TYPE_NAME = re.compile(r"_?[A-Z][A-Za-z]*[a-z][A-Za-z]*")  # no constant, whose name is in capitals
# asyncio calls it by this name.
GIVEN_NAMES = _set("connection_made")
PREDICATES = _set("is are was were has have had may can be needs must")

# A test's name begins with its subject, and no relative clause is one: `what_is_written_...`.
NO_SUBJECT = _set("""
    what who whose where which how nor so of by on in at as than with without behind within beside
""")

WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
RUST_TEST = re.compile(r"#\[(?:\w+::)?test\]\s*(?:#\[[^\]]*\]\s*)*(?:async\s+)?fn\s+(\w+)")
RUST_ITEM = re.compile(r"\b(fn|struct|enum|union|mod|trait|const|static|type)\s+(\w+)")
# Comments and strings hold no names.
RUST_TEXT = re.compile(r'//[^\n]*|/\*.*?\*/|\bb?r(#*)".*?"\1|b?"(?:\\.|[^"\\])*"', re.DOTALL)


class VagueName(NamedTuple):
    """One name that says nothing, and where it stands."""

    file: Path
    line: int
    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.kind} {self.name}"


def is_vague(name: str, *, is_type: bool = False) -> bool:
    """Return whether a name is, begins with or ends with a word that says nothing there."""
    words = [word.lower() for word in WORDS.findall(name)]
    if not words or name in GIVEN_NAMES:
        return False
    if is_type and all(w in NO_TYPE or (w.endswith("ed") and w not in NOUNS) for w in words):
        return True
    if len(words) == 1:
        return words[0] in ALONE
    is_predicate = words[0] in PREDICATES
    return words[0] in AT_THE_BEGIN or (words[-1] in AT_THE_END and not is_predicate)


def has_no_subject(name: str) -> bool:
    """Return whether a test's name begins as no sentence does."""
    return name.removeprefix("test_").partition("_")[0] in NO_SUBJECT


def is_participle(name: str) -> bool:
    """Return whether a function's name is one participle, as `opened` or `_written`."""
    word = name.strip("_")
    return word in NO_FUNCTION or (word.endswith("ed") and word.isalpha() and word not in NOUNS)


def is_fault(kind: str, name: str) -> bool:
    """Return whether the name of a test has no subject, or another's says nothing."""
    if kind == "test":
        return has_no_subject(name)
    if kind in FUNCTIONS and is_participle(name):
        return True
    return is_vague(name, is_type=kind in TYPES)


def python_names(text: str) -> Iterator[tuple[int, str, str]]:
    """Yield line, kind and name of what a Python file defines."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            is_test = node.name.startswith("test_")
            yield node.lineno, "test" if is_test else "function", node.name
            # The parameters of a test are fixtures, functions that are read where they stand.
            if not is_test:
                for each in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs):
                    yield each.lineno, "parameter", each.arg
        elif isinstance(node, ast.ClassDef):
            yield node.lineno, "class", node.name
            for line in node.body:
                if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name):
                    yield line.lineno, "field", line.target.id
        elif isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Name) and TYPE_NAME.fullmatch(target.id):
                    yield node.lineno, "type", target.id


def rust_names(text: str) -> Iterator[tuple[int, str, str]]:
    """Yield line, kind and name of the items that a Rust file defines, and of its tests."""

    def blank(match: re.Match[str]) -> str:
        return re.sub(r"[^\n]", " ", match[0])

    code = RUST_TEXT.sub(blank, text)
    for item in RUST_TEST.finditer(code):
        yield code.count("\n", 0, item.start(1)) + 1, "test", item[1]
    code = RUST_TEST.sub(blank, code)
    for item in RUST_ITEM.finditer(code):
        yield code.count("\n", 0, item.start()) + 1, item[1], item[2]


def vague_names(root: Path = ROOT) -> Iterator[VagueName]:
    """Yield every vague name of the files that git tracks."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=root,
        capture_output=True,
        text=True,
        check=True,
    )
    modules = set()
    for line in listed.stdout.splitlines():
        file = Path(line)
        if file.suffix not in (".py", ".rs", ".c", ".h") or not (root / file).is_file():
            continue
        text = (root / file).read_text()
        for module in (file, *file.parents):
            if module not in modules and module.name:
                modules.add(module)
                name = module.name.split(".")[0].removeprefix("test_").removesuffix("_test")
                if is_vague(name):
                    yield VagueName(file, 1, "module", name)
        read = {".py": python_names, ".rs": rust_names}.get(file.suffix)
        if read is not None:
            yield from (
                VagueName(file, line, kind, name)
                for line, kind, name in read(text)
                if is_fault(kind, name)
            )


def room_of(file: Path) -> str:
    """Return the room that a file is in: jojlab/guest, agent/src/lab, bench."""
    parts = file.parent.parts
    return "/".join(parts[: 3 if parts[:2] == ("agent", "src") else 2]) or "."


def main(places: list[str]) -> None:
    """Print counts by room, or what `places` have."""
    names = list(vague_names())
    if places:
        print(
            *(name for name in names if any(name.file.is_relative_to(p) for p in places)), sep="\n"
        )
        return
    counts = Counter(room_of(name.file) for name in names)
    for room, count in sorted(counts.items()):
        print(f"{count:5} {room}")
    print(f"{len(names):5} in all")


if __name__ == "__main__":
    main(sys.argv[1:])
