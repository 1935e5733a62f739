"""Finds circles among files that use one another."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TypeVar

File = TypeVar("File", str, Path)


def circles(uses: Mapping[File, set[File]]) -> list[set[File]]:
    """Groups of files each of which uses, in some steps, every other (Tarjan 1972)."""
    number: dict[File, int] = {}
    lowest: dict[File, int] = {}
    stack: list[File] = []
    found: list[set[File]] = []

    def visit(file: File) -> None:
        number[file] = lowest[file] = len(number)
        stack.append(file)
        for used in sorted(uses.get(file, ())):
            if used not in number:
                visit(used)
                lowest[file] = min(lowest[file], lowest[used])
            elif used in stack:
                lowest[file] = min(lowest[file], number[used])
        if lowest[file] == number[file]:
            group = set(stack[stack.index(file) :])
            del stack[stack.index(file) :]
            if len(group) > 1:
                found.append(group)

    for file in sorted(uses):
        if file not in number:
            visit(file)
    return found
