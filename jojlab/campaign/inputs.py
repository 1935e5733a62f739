"""What of this machine goes into the guest with a case: its files, folders, and its program with
all that this needs.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from jojlab.experiment.cases import Case
from jojlab.foundation.cache import Cache
from jojlab.guest.given import INPUTS
from jojlab.lab.job import Input
from jojlab.lab.tree import members_of, size_bytes
from jojlab.model.field import Kind
from jojlab.model.fields import BY_NAME
from jojlab.program.needs import found_program, needs

# Of an input file, what the guest's memory holds: the file, and what is made of it.
_COPIES = 2
_IN_GUEST = re.compile(rf"{re.escape(INPUTS)}/([a-z_]+)\b(/?)")


class CaseInputs:
    """The inputs of cases; what several cases name is read once."""

    def __init__(self, cache: Cache) -> None:
        self._cache = cache
        self._read: dict[tuple[str, Path, object], Input] = {}

    def of(self, case: Case) -> tuple[Input, ...]:
        """Return those of a case; UseError where one cannot be read, or is too large."""
        return tuple(self._input(case, name, path) for name, path in case.inputs.items())

    def _input(self, case: Case, name: str, path: Path) -> Input:
        key = (name, path, case.settings.get("other_programs"))
        if key not in self._read:
            members = _members(case, name, path)
            if members is None:
                self._read[key] = Input.of(self._cache, name, path)
            else:
                self._read[key] = Input.of_tree(
                    self._cache, name, members, is_shared=BY_NAME[name].kind is Kind.PROGRAM
                )
        return self._read[key]


def named_here(text: str, case: Case) -> str:
    """Return what a guest says of a case, with its input files by their names on this machine.

    The folder in which a guest has a program is none of this machine.
    """

    def here(found: re.Match[str]) -> str:
        name, slash = found.groups()
        is_known = name in case.inputs and not (slash and BY_NAME[name].kind is Kind.PROGRAM)
        return f"{case.inputs[name]}{slash}" if is_known else found[0]

    return _IN_GUEST.sub(here, text)


def inputs_bytes(case: Case) -> int:
    """Return what the guest's memory holds of a case's inputs, at most."""
    trees = [(_members(case, name, path), path) for name, path in case.inputs.items()]
    sizes = [path.stat().st_size if tree is None else size_bytes(tree) for tree, path in trees]
    return _COPIES * sum(sizes)


def _members(case: Case, name: str, path: Path) -> Mapping[str, Path | str] | None:
    """Return the tree that a field's value stands for; None where it is one file."""
    if BY_NAME[name].kind is Kind.FOLDER:
        return members_of(path)
    if BY_NAME[name].kind is not Kind.PROGRAM:
        return None
    others = BY_NAME["other_programs"].words(str(case.settings["other_programs"]), case.case_id)
    return needs(path, [found_program(other, "other_programs = ") for other in others])
