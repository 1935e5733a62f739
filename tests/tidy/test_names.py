"""One name, one thing: no two types of the agent share a name, and no two classes of jojlab.

Names of tests, and of what one Python file keeps to itself (_Document), are free.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from tests.tidy.rust import without_tests

ROOT = Path(__file__).resolve().parents[2]
TYPE = re.compile(
    r"(?m)^[ \t]*(?:pub(?:\([^)]*\))?\s+)?(?:unsafe\s+)?(?:struct|enum|union|trait)\s+(\w+)"
)
# A subcommand of the agent is one file with its own command line.
SHARED = {"Arguments"}


def types_of_rust(folder: Path) -> Iterator[tuple[str, Path]]:
    for path in sorted(folder.rglob("*.rs")):
        if not path.name.endswith("_test.rs"):
            yield from ((name, path) for name in TYPE.findall(without_tests(path.read_text())))


def classes_of_python(folder: Path) -> Iterator[tuple[str, Path]]:
    for path in sorted(folder.rglob("*.py")):
        if not path.name.startswith("test_"):
            for node in ast.walk(ast.parse(path.read_text(), str(path))):
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                    yield node.name, path


def shared_names(types: Iterator[tuple[str, Path]]) -> dict[str, list[str]]:
    places: dict[str, list[str]] = defaultdict(list)
    for name, path in types:
        places[name].append(str(path))
    return {name: paths for name, paths in places.items() if len(paths) > 1}


def test_no_two_types_of_the_agent_share_a_name() -> None:
    shared = shared_names(types_of_rust(ROOT / "agent/src"))
    assert {name: paths for name, paths in shared.items() if name not in SHARED} == {}
    assert set(shared) == SHARED  # no line of the list is left over


def test_no_two_classes_of_jojlab_share_a_name() -> None:
    assert shared_names(classes_of_python(ROOT / "jojlab")) == {}


def test_shared_names_are_found(tmp_path: Path) -> None:
    (tmp_path / "a.rs").write_text("pub struct Plan;\n#[cfg(test)]\nmod tests { struct Own; }\n")
    (tmp_path / "b.rs").write_text("    pub(crate) enum Plan { A }\nstruct Own;\ntrait Other {}\n")
    (tmp_path / "b_test.rs").write_text("struct Other;\n")
    assert set(shared_names(types_of_rust(tmp_path))) == {"Plan"}
    (tmp_path / "a.py").write_text("class Step: ...\nclass _Own: ...\n")
    (tmp_path / "b.py").write_text("def f():\n    class Step: ...\nclass _Own: ...\n")
    (tmp_path / "test_b.py").write_text("class Step: ...\n")
    assert set(shared_names(classes_of_python(tmp_path))) == {"Step"}
