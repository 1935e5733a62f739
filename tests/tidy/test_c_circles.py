"""No source file of C uses another in a circle: by what it includes, or by the functions that it
calls.
"""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path

import pytest

from tests.tidy.test_tidy import circle, tracked_files

# What is linked together; tests apart.
PROGRAMS = (
    ("kernel/flash", "kernel/nand"),
    ("kernel/bpf", "kernel/block", "kernel/calls", "kernel/recorder"),
    ("kernel/memory_model",),
    ("agent/preload",),
    ("vfs",),
)
# What calls it is linked to a part that gives it: a kernel's division, or a program's; what a user
# has to know goes to SQLite's log, or to the terminal.
GIVEN_FROM_ABOVE = {"flash_divide", "report"}
NO_CODE = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\])*"', re.DOTALL)
# The functions of a header of BPF are static, and called by other files all the same.
FUNCTION = r"(?m)^{}\w[\w\s*]*?\b(\w+)\([^;{{}}]*\)\s*\{{"
DEFINED = {".c": FUNCTION.format(r"(?!static\b)"), ".h": FUNCTION.format("")}
# Not `library->step(`, which calls what a field points to.
CALLED = r"(?<![\w.>])(\w+)\s*\("


def included_files(sources: list[Path]) -> dict[Path, set[Path]]:
    """Return those of `sources` that each file includes."""
    found = {}
    for path in sources:
        names = re.findall(r'(?m)^\s*#\s*include\s+"([^"]+)"', path.read_text())
        found[path] = {(path.parent / name).resolve() for name in names} & set(sources)
    return found


def called_files(sources: list[Path]) -> dict[Path, set[Path]]:
    """Return those of `sources` that define a function which each file calls."""
    code = {path: NO_CODE.sub("", path.read_text()) for path in sources}
    defined = defaultdict(set)
    for path, text in code.items():
        for name in re.findall(DEFINED[path.suffix], text):
            defined[name].add(path)
    return {
        path: {
            each
            for name in set(re.findall(CALLED, text)) - GIVEN_FROM_ABOVE
            if path not in defined[name]
            for each in defined[name]
        }
        for path, text in code.items()
    }


def test_files_include_each_other_in_no_circle() -> None:
    uses = included_files(tracked_files(".c", ".h"))
    assert sum(map(len, uses.values())) > 50
    assert not circle(uses)


@pytest.mark.parametrize("folders", PROGRAMS, ids=lambda folders: folders[0])
def test_files_that_are_linked_together_call_each_other_in_no_circle(
    folders: tuple[str, ...],
) -> None:
    sources = [path for folder in folders for path in tracked_files(".c", ".h", under=folder)]
    sources = [path for path in sources if path.name.endswith((".c", ".bpf.h"))]
    uses = called_files([path for path in sources if not {"test", "figures"} & set(path.parts)])
    assert any(uses.values())
    assert not circle(uses)


def test_a_circle_is_found(tmp_path: Path) -> None:
    model, nand = tmp_path / "model.c", tmp_path / "nand.c"
    model.write_text('#include "nand.c"\nint flash_a(void)\n{\n\treturn flash_b();\n}\n')
    nand.write_text('#include "model.c"\nint flash_b(int *x)\n{\n\treturn flash_a();\n}\n')
    assert circle(included_files([model, nand])) == {model, nand}
    assert circle(called_files([model, nand])) == {model, nand}
    nand.write_text("/* flash_a() */\nint flash_b(int *x)\n{\n\treturn flash_divide();\n}\n")
    assert not circle(included_files([model, nand]))
    assert not circle(called_files([model, nand]))
    nand.write_text("int flash_b(int *x)\n{\n\treturn x->flash_a();\n}\n")
    assert not circle(called_files([model, nand]))
