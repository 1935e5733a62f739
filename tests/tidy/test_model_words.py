"""Facts of workloads and filesystems stand in jojlab/model: no other file names one in its text.

So an addition touches its own record alone. Documents of modules and functions may name one.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from jojlab.model.filesystems import FILESYSTEMS
from jojlab.model.workloads import WORKLOADS

ROOT = Path(__file__).resolve().parents[2]

# The words of these workloads are also those of other things: the field `program` and its part of a
# bill, the part `replay` of a manifest, and SQL, which is a column, a folder and a format. Of them
# only what is said of the field `workload` is refused.
AMBIGUOUS = {"program", "replay", "sql"}
WORDS = re.compile(
    r"(?<![\w-])(?:mkfs\.)?(?:"
    + "|".join(re.escape(each) for each in {*FILESYSTEMS, *WORKLOADS} - AMBIGUOUS)
    + r")(?![\w-])"
)
# The command line's help gives examples that a reader can type, and names the workload that plays
# what is imported.
ALLOWED = {"jojlab/cli.py"}


def literals(tree: ast.AST) -> Iterator[ast.Constant]:
    """Yield the text of a file but for its documents."""
    documents = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        if node.body and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and id(node) not in documents:
            yield node


def workload_values(tree: ast.AST) -> Iterator[ast.Constant]:
    """Yield the text that is given to a field `workload`, or that one is compared with."""
    for node in ast.walk(tree):
        values: list[ast.AST] = []
        match node:
            case ast.Dict():
                pairs = zip(node.keys, node.values, strict=True)
                values = [value for key, value in pairs if key and is_workload(key)]
            case ast.Compare() if is_workload(node):
                values = [node.left, *node.comparators]
            case ast.Assign() if is_workload(node.targets[0]):
                values = [node.value]
            case ast.keyword(arg=str(name)) if "workload" in name:
                values = [node.value]
        for value in values:
            some = value.elts if isinstance(value, ast.Tuple | ast.List | ast.Set) else [value]
            for each in some:
                if isinstance(each, ast.Constant):
                    yield each


def is_workload(node: ast.AST) -> bool:
    """Return whether an expression speaks of a workload."""
    return "workload" in ast.unparse(node)


def named_places(text: str) -> Iterator[tuple[int, str]]:
    """Yield line and text of each literal that names a workload or a filesystem."""
    tree = ast.parse(text if WORDS.search(text) or "workload" in text else "")
    for node in literals(tree):
        if isinstance(node.value, str) and WORDS.search(node.value):
            yield node.lineno, str(node.value)
    for node in workload_values(tree):
        if node.value in AMBIGUOUS:
            yield node.lineno, str(node.value)


def test_no_file_outside_the_model_names_a_workload_or_a_filesystem() -> None:
    found = [
        f"{name}:{line}: {text}"
        for path in sorted((ROOT / "jojlab").rglob("*.py"))
        if not path.name.startswith("test_") and path.name != "conftest.py"
        if not (name := str(path.relative_to(ROOT))).startswith("jojlab/model/")
        if name not in ALLOWED
        for line, text in named_places(path.read_text())
    ]
    assert found == []


def test_literals_that_name_a_workload_or_a_filesystem_are_found() -> None:
    text = (
        '"""It is for ext4."""\n'
        'run("mkfs.ext4")\n'
        'fields = {"workload": "program"}\n'
        'fields["workload"] = "sql"\n'
        'if workload in ("replay", other):\n    """A note of xfs."""\n'
        'make(workload="replay")\n'
        'hint = f"add {name} file-write"\n'
        'known = {"program": 1}, "fs-journal", "sqlite"\n'
    )
    assert sorted(named_places(text)) == [
        (2, "mkfs.ext4"),
        (3, "program"),
        (4, "sql"),
        (5, "replay"),
        (6, "A note of xfs."),
        (7, "replay"),
        (8, " file-write"),
    ]
