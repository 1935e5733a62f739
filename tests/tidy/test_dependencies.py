"""pyproject.toml declares the libraries that jojlab imports, and no others: a wheel brings them."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from importlib.metadata import packages_distributions

from tests.tidy.test_tidy import ROOT, tracked


def canonical(name: str) -> str:
    """A distribution's name as PEP 503 compares it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def imported() -> set[str]:
    """The distributions whose modules the product imports, in functions too."""
    modules = set()
    for path in tracked(".py", under="jojlab"):
        if path.name.startswith("test_"):
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                modules |= {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                modules.add(node.module.split(".")[0])
    known = packages_distributions()
    others = modules - set(sys.stdlib_module_names) - {"jojlab"}
    # pyspark is half a gigabyte, and not everywhere: its module has the distribution's name.
    return {canonical(known.get(module, [module])[0]) for module in others}


def test_what_is_imported_is_declared_and_what_is_declared_is_imported() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    groups = ("cluster", "fleet", "spark")
    lines = [*project["dependencies"], *(line for name in groups for line in extras[name])]
    declared = {canonical(re.split(r"[\[<>=~! ]", line)[0]) for line in lines}
    assert imported() == declared
