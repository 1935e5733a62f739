"""What kind of file a name tells of, by the table schema/file_kinds.toml that the agent has too."""

from __future__ import annotations

import fnmatch
from collections.abc import Collection
from functools import cache

from msgspec import Struct

from jojlab.foundation.document import checked, read_toml
from jojlab.foundation.errors import MachineError, UseError
from jojlab.foundation.places import SCHEMA

_TABLE = SCHEMA / "file_kinds.toml"
_FORM = "restore the schema folder from the repository"


def file_kind(path: str, paths: Collection[str]) -> str:
    """Return the kind of `path`; `paths` are all that are known, for kinds told by a neighbour."""
    name = path.rpartition("/")[2]
    for rule in _rules():
        if name and any(f"{path}{ending}" in paths for ending in rule.beside):
            return rule.name
        if name and any(_fits(name, pattern) for pattern in rule.names):
            return rule.name
    return "other"


def _fits(name: str, pattern: str) -> bool:
    """Whether a name fits; only a pattern with a capital letter tells capitals from small ones."""
    return fnmatch.fnmatchcase(name.lower() if pattern == pattern.lower() else name, pattern)


class _Rule(Struct, forbid_unknown_fields=True):
    """A kind, and the names and neighbours that tell of it."""

    name: str
    meaning: str = ""
    names: list[str] = []
    beside: list[str] = []


class _Document(Struct):
    """The table."""

    kind: list[_Rule]


@cache
def _rules() -> list[_Rule]:
    """Read the table; raises MachineError when it is missing or malformed."""
    try:
        return checked(read_toml(_TABLE, _FORM)[1], _Document, str(_TABLE), _FORM).kind
    except UseError as error:
        raise MachineError(error.message, _FORM) from error
