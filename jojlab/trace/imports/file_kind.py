"""What kind of file a name tells of, by the table schema/file_kinds.toml that the agent has too."""

from __future__ import annotations

import fnmatch
import tomllib
from collections.abc import Collection
from functools import cache

from jojlab.foundation.errors import MachineError
from jojlab.foundation.places import SCHEMA

_TABLE = SCHEMA / "file_kinds.toml"


def file_kind(path: str, paths: Collection[str]) -> str:
    """Return the kind of `path`; `paths` are all that are known, for kinds told by a neighbour."""
    name = path.rpartition("/")[2]
    for kind, names, beside in _rules():
        if name and any(f"{path}{ending}" in paths for ending in beside):
            return kind
        if name and any(_fits(name, pattern) for pattern in names):
            return kind
    return "other"


def _fits(name: str, pattern: str) -> bool:
    """Whether a name fits; only a pattern with a capital letter tells capitals from small ones."""
    return fnmatch.fnmatchcase(name.lower() if pattern == pattern.lower() else name, pattern)


@cache
def _rules() -> tuple[tuple[str, tuple[str, ...], tuple[str, ...]], ...]:
    """Read the table; raises MachineError when it is missing or malformed."""
    try:
        entries = tomllib.loads(_TABLE.read_text(encoding="utf-8"))["kind"]
        return tuple(
            (entry["name"], tuple(entry.get("names", ())), tuple(entry.get("beside", ())))
            for entry in entries
        )
    except (OSError, tomllib.TOMLDecodeError, KeyError, TypeError) as error:
        raise MachineError(
            f"{_TABLE}: not readable as kinds of files: {error}",
            "restore the schema folder from the repository",
        ) from error
