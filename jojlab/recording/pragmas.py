"""What a script may do with each PRAGMA: the list that the agent plays by."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from jojlab.foundation.places import PRAGMAS


@cache
def _list() -> dict[str, str]:
    """The names, each with the word that says what may be done."""
    lines = PRAGMAS.read_text(encoding="utf-8").splitlines()
    rows = (line.split() for line in lines if line and not line.startswith("#"))
    return {row[0]: row[1] for row in rows}


def name_and_value(words: Sequence[str]) -> tuple[str, str | None]:
    """Return the name that the first tokens behind PRAGMA say, and the value that is set."""
    words = words[2:] if words[1:2] == ["."] else words
    name, *behind = words or [""]
    value = behind[1] if len(behind) > 1 and behind[0] in ("=", "(") else None
    return name, value


def refused(words: Sequence[str]) -> str:
    """Return why no script has a PRAGMA, of which these are the first tokens; empty if one may."""
    name, value = name_and_value(words)
    may = _list().get(name)
    if may == "any" or (may in ("read", "field") and value is None):
        return ""
    if may == "field":
        return f"PRAGMA {name} with a value: a field of the case"
    if may == "read":
        return f"PRAGMA {name} with a value, which no script may set"
    return f"PRAGMA {name}, which no script may use"
