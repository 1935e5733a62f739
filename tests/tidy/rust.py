"""Finds which source file of a Rust crate uses which: reads the files, follows modules and
re-exports.

A `use` of a re-exported item counts as a use of the file that defines it, so a `mod.rs` that only
collects the items of its children imports nothing. Tests (`#[cfg(test)]`, files of tests) count
for nothing. Not known to this reader: macros that expand to paths, and two items of one name in
one module (a type and a function).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

Name = tuple[str, ...]
Uses = dict[Path, set[Path]]

# What may hold text that looks like code: comments, strings, characters (and not lifetimes).
NO_CODE = re.compile(
    r'//[^\n]*|/\*.*?\*/|\bb?r(#*)".*?"\1|b?"(?:\\.|[^"\\])*"|b?\'(?:\\[^\']+|[^\'\\])\'',
    re.DOTALL,
)
USE = re.compile(r"(?m)^\s*(pub(?:\([^)]*\))?\s+)?use\s+([^;]+);")
INLINE = re.compile(r"(?<![\w:])((?:\w+::)+)(\w+)")


@dataclass
class Module:
    """One file: its own name, its children, and what it calls by which name."""

    file: Path
    name: Name
    code: str
    children: set[str] = field(default_factory=set)
    names: dict[str, Name] = field(default_factory=dict)


@cache  # copies of the crate differ in one file
def without_tests(text: str) -> str:
    """The code that is built without tests; comments, strings and characters are blank."""
    code = NO_CODE.sub(lambda found: '""' if '"' in found[0] else " ", text)
    while found := re.search(r"#\[cfg\(test\)\]", code):
        end = found.end()
        depth = 0
        for end in range(found.end(), len(code)):
            depth += {"{": 1, "}": -1}.get(code[end], 0)
            if depth == 0 and code[end] in "};":
                break
        code = code[: found.start()] + code[end + 1 :]
    return code


def leaves(tree: str, before: Name = ()) -> Iterator[tuple[Name, str]]:
    """Paths of a use declaration, each with the name that it gives: `a::{b, c as d}`."""
    tree = tree.strip()
    if found := re.fullmatch(r"((?:\w+::)*)\{(.*)\}", tree, re.DOTALL):
        prefix = (*before, *(part for part in found[1].split("::") if part))
        depth, begin = 0, 0
        for at, character in enumerate(found[2] + ","):
            depth += {"{": 1, "}": -1}.get(character, 0)
            if character == "," and depth == 0:
                if found[2][begin:at].strip():
                    yield from leaves(found[2][begin:at], prefix)
                begin = at + 1
        return
    path, _, alias = (part.strip() for part in re.sub(r"\s+as\s+", "@", tree).partition("@"))
    parts = (*before, *path.split("::"))
    if parts[-1] == "self":
        parts = parts[:-1]
    yield parts, alias or parts[-1]


class Crate:
    """The modules below a crate's root file, and the uses between their files."""

    def __init__(self, root: Path) -> None:
        self.folder = root.parent
        self.modules: dict[Name, Module] = {}
        self._read(root, ())

    def _read(self, file: Path, name: Name) -> None:
        code = without_tests(file.read_text())
        module = self.modules[name] = Module(file, name, code)
        below = self.folder.joinpath(*name)
        for child in re.findall(r"(?m)^\s*(?:pub(?:\([^)]*\))?\s+)?mod\s+(\w+)\s*;", code):
            module.children.add(child)
            found = [p for p in (below / f"{child}.rs", below / child / "mod.rs") if p.exists()]
            assert len(found) == 1, f"{file}: mod {child}: {found}"
            self._read(found[0], (*name, child))
        for _, tree in USE.findall(code):
            for path, given in leaves(tree):
                if (full := self._full(module, path)) is not None:
                    module.names[given] = full

    def _full(self, module: Module, path: Name) -> Name | None:
        """A path as of the crate's root; None where it leads out of the crate."""
        first, rest = path[0], path[1:]
        if first == "crate":
            return rest
        if first == "self":
            return (*module.name, *rest)
        if first == "super":
            above = module.name
            while path and path[0] == "super":
                above, path = above[:-1], path[1:]
            return (*above, *path)
        if first in module.children:
            return (*module.name, *path)
        return None

    def _definer(self, path: Name, visited: frozenset[Name] = frozenset()) -> Name:
        """The module that defines what a full path names, or the module that it names."""
        module: Name = ()
        rest = path
        while rest and rest[0] in self.modules[module].children:
            module, rest = (*module, rest[0]), rest[1:]
        onwards = self.modules[module].names.get(rest[0]) if rest else None
        if onwards is None or path in visited:
            return module
        return self._definer((*onwards, *rest[1:]), visited | {path})

    def uses(self) -> Uses:
        """Return the files that each file uses."""
        return {
            module.file: {self.modules[used].file for used in self._used_names(module)}
            - {module.file}
            for module in self.modules.values()
        }

    def _used_names(self, module: Module) -> Iterator[Name]:
        body = USE.sub("", module.code)
        words = set(re.findall(r"\w+", body))
        for is_public, tree in USE.findall(module.code):
            for path, given in leaves(tree):
                full = self._full(module, path)
                if full is None:
                    continue
                definer = self._definer(full)
                # A module is used by what is taken from it: see below.
                if not (is_public and given not in words) and definer != full:
                    yield definer
        for prefix, last in INLINE.findall(body):
            path = (*(part for part in prefix.split("::") if part), last)
            alias = module.names.get(path[0])
            full = (*alias, *path[1:]) if alias is not None else self._full(module, path)
            if full is not None:
                yield self._definer(full)
