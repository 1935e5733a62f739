"""Reads with ast which files of a Python package import which: at the top of a file, in functions,
and below `if TYPE_CHECKING`; also by importlib.import_module with a name that is written out.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path


def package_imports(package: Path, *, tests: bool = False) -> dict[str, set[str]]:
    """Return for every module below `package`, such as jojlab.trace.capture, those it imports.

    `from jojlab.trace import capture` imports both jojlab.trace and jojlab.trace.capture.
    """
    files = {
        _module(package, path): path
        for path in sorted(package.rglob("*.py"))
        if tests or not path.name.startswith("test_")
    }
    return {
        module: {name for name in _names(module, path) if name in files} - {module}
        for module, path in files.items()
    }


def _module(package: Path, path: Path) -> str:
    parts = path.relative_to(package.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _names(module: str, path: Path) -> Iterator[str]:
    above = module.split(".") if path.name == "__init__.py" else module.split(".")[:-1]
    for node in ast.walk(ast.parse(path.read_text(), str(path))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            start = above[: len(above) - node.level + 1] if node.level else []
            base = ".".join([*start, *filter(None, [node.module])])
            yield base
            yield from (f"{base}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module"):
            yield from (a.value for a in node.args
                        if isinstance(a, ast.Constant) and isinstance(a.value, str))  # fmt: skip
