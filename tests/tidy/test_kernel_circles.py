"""No source file of C uses another in a circle: by what it includes, and, in the flash module, by
the functions that it calls.
"""

from __future__ import annotations

import re
from pathlib import Path

from tests.tidy.test_tidy import circle, tracked

# The model calls it, and whoever links the model gives it: a kernel's division, or a program's.
GIVEN_FROM_ABOVE = {"flash_divide"}
NO_CODE = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\])*"', re.DOTALL)


def included(sources: list[Path]) -> dict[Path, set[Path]]:
    """For each file, those of `sources` that it includes."""
    found = {}
    for path in sources:
        names = re.findall(r'(?m)^\s*#\s*include\s+"([^"]+)"', path.read_text())
        found[path] = {(path.parent / name).resolve() for name in names} & set(sources)
    return found


def called(sources: list[Path]) -> dict[Path, set[Path]]:
    """For each file, those of `sources` that define a function it calls."""
    code = {path: NO_CODE.sub("", path.read_text()) for path in sources}
    defined = {
        name: path
        for path, text in code.items()
        for name in re.findall(r"(?m)^(?!static\b)\w[\w\s*]*?\b(flash_\w+)\([^;{}]*\)\s*\{", text)
    }
    assert defined
    calls = {
        path: set(re.findall(r"\b(flash_\w+)\s*\(", text)) - GIVEN_FROM_ABOVE
        for path, text in code.items()
    }
    return {
        path: {defined[name] for name in names & defined.keys()} - {path}
        for path, names in calls.items()
    }


def test_files_include_each_other_in_no_circle() -> None:
    uses = included(tracked(".c", ".h"))
    assert sum(map(len, uses.values())) > 50
    assert not circle(uses)


def test_files_of_the_flash_module_call_each_other_in_no_circle() -> None:
    sources = [*tracked(".c", under="kernel/flash"), *tracked(".c", under="kernel/nand")]
    uses = called([path for path in sources if "test" not in path.parts])
    assert sum(map(len, uses.values())) > 20
    assert not circle(uses)


def test_a_circle_is_found(tmp_path: Path) -> None:
    model, nand = tmp_path / "model.c", tmp_path / "nand.c"
    model.write_text('#include "nand.c"\nint flash_a(void)\n{\n\treturn flash_b();\n}\n')
    nand.write_text('#include "model.c"\nint flash_b(int *x)\n{\n\treturn flash_a();\n}\n')
    assert circle(included([model, nand])) == {model, nand}
    assert circle(called([model, nand])) == {model, nand}
    nand.write_text("/* flash_a() */\nint flash_b(int *x)\n{\n\treturn flash_divide();\n}\n")
    assert not circle(included([model, nand]))
    assert not circle(called([model, nand]))
