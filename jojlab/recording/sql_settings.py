"""Finds the settings of SQLite that a recorded program had, by its PRAGMAs, else by how its SQLite
was built, and writes them into the folder of its scripts, as fields of a case. Lists what a script
may do with each PRAGMA, as the agent plays it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache

from jojlab.foundation.places import PRAGMAS
from jojlab.model.fields import BY_NAME
from jojlab.model.workloads.sqlite import SQL_RECORDED


@cache
def _list() -> dict[str, str]:
    """Return the names, each with the word that says what may be done."""
    lines = PRAGMAS.read_text(encoding="utf-8").splitlines()
    rows = (line.split() for line in lines if line and not line.startswith("#"))
    return {row[0]: row[1] for row in rows}


def name_and_value(words: Sequence[str]) -> tuple[str, str | None]:
    """Return the name that the first tokens behind PRAGMA say, and the value that is set."""
    words = words[2:] if words[1:2] == ["."] else words
    name, *behind = words or [""]
    value = behind[1] if len(behind) > 1 and behind[0] in ("=", "(") else None
    return name, value


def refusal(words: Sequence[str]) -> str:
    """Return why no script has a PRAGMA, of which these are the first tokens; empty if one may."""
    name, value = name_and_value(words)
    may = _list().get(name)
    if may == "any" or (may in ("read", "field", "change") and value is None):
        return ""
    if may in ("field", "change"):
        return f"PRAGMA {name} with a value: a field of the case"
    if may == "read":
        return f"PRAGMA {name} with a value, which no script may set"
    return f"PRAGMA {name}, which no script may use"


NAME = "settings.toml"
_TRUE = ("on", "yes", "true")
_FALSE = ("no", "false")
# The fields, by their PRAGMAs, with SQLite's own default, and the option that builds another.
_FIELDS: Mapping[str, tuple[str, str, str]] = {
    "journal_mode": ("journal_mode", "delete", ""),
    "synchronous": ("synchronous", "full", "DEFAULT_SYNCHRONOUS"),
    "page_size": ("page_size_bytes", "4096", "DEFAULT_PAGE_SIZE"),
    "auto_vacuum": ("auto_vacuum", "none", ""),
    "locking_mode": ("locking_mode", "normal", ""),
    "secure_delete": ("secure_delete", "off", "SECURE_DELETE"),
    "temp_store": ("temp_store", "default", ""),
    "wal_autocheckpoint": ("wal_autocheckpoint_pages", "1000", "DEFAULT_WAL_AUTOCHECKPOINT"),
}
# How its SQLite was built decides by which call it syncs, which no PRAGMA tells.
UNRECORDED = "sync_call"
# No other field of a case is the app's.
CASE_FIELDS = ("workload", *(name for name, _, _ in _FIELDS.values()), UNRECORDED)
_NUMBERS = ("page_size", "wal_autocheckpoint")
# Those that a file keeps from its first commit on, but for a VACUUM (sqlite.org/pragma.html).
_OF_THE_FILE = ("page_size", "auto_vacuum")
# Of the other words SQLite takes the number, too: their place.
_BY_WORD_ALONE = ("journal_mode", "locking_mode")


@dataclass
class ConnectionSettings:
    """The last settings of one connection, by the name of its file; how often it committed."""

    file: str
    build_options: Sequence[str]
    was_there: bool
    own: dict[str, str] = field(default_factory=dict)
    commits: int = 0

    def note(self, words: Sequence[str]) -> None:
        """Follow a PRAGMA, of which these are the first tokens."""
        if words[1:2] == ["."] and words[0] != "main":
            return
        name, value = name_and_value(words)
        if name in _OF_THE_FILE and (self.was_there or self.commits):
            return
        if name in _FIELDS and value is not None and (word := _word(name, value)):
            self.own[name] = word

    def setting(self, name: str, is_wal: bool) -> tuple[str, str]:
        """Return the value of a PRAGMA, empty where it is not known, and where that is from."""
        if name == "journal_mode" and is_wal:
            return "wal", "PRAGMA journal_mode"
        if name in self.own:
            return self.own[name], f"PRAGMA {name}"
        if name in (*_OF_THE_FILE, "journal_mode") and self.was_there:
            return "", "not known: the database was there before"
        _, own, option = _FIELDS[name]
        if name == "synchronous" and is_wal:
            option = "DEFAULT_WAL_SYNCHRONOUS"
        for each in self.build_options:
            key, _, value = each.partition("=")
            if option and key == option and (word := _word(name, value or "on")):
                return word, "the default of its SQLite"
        return own, "the default of its SQLite"


def lines(connections: Sequence[ConnectionSettings]) -> Iterator[str]:
    """Yield the lines of the file: the value that most commits were made with, and the others."""
    of_wal = {it.file for it in connections if it.own.get("journal_mode") == "wal"}
    maker_of_file = {
        it.file: it for it in sorted(connections[::-1], key=lambda it: bool(it.commits))
    }
    yield "# The settings of SQLite that the recorded program had, as fields of a case. joj bill,"
    yield "# joj bench sql and joj advise read them here; an option that is given wins."
    yield f'workload = "{SQL_RECORDED}"'
    for name, (case_field, _, _) in _FIELDS.items():
        found: Counter[tuple[str, str]] = Counter()
        for it in connections:
            owner = maker_of_file[it.file] if name in _OF_THE_FILE else it
            found[owner.setting(name, it.file in of_wal)] += it.commits or 1
        (word, source), _ = found.most_common(1)[0]
        others = sorted({other for other, _ in found if other not in ("", word)})
        also = f"; others had {', '.join(others)}" if others else ""
        text = word if name in _NUMBERS else f'"{word}"'
        yield f"{case_field} = {text}  # {source}{also}" if word else f"# {case_field}: {source}"
    yield f"# {UNRECORDED}: not recorded; joj inspect says which call SQLite's library has"


def _word(name: str, value: str) -> str:
    """Return the word of a field for a value of its PRAGMA; empty if it is none."""
    value = value.lower()
    if name in _NUMBERS:
        return str(int(value)) if value.isdigit() else ""
    words = BY_NAME[_FIELDS[name][0]].choices
    if value.isdigit() and name not in _BY_WORD_ALONE:
        return words[int(value)] if int(value) < len(words) else ""
    if name in ("synchronous", "secure_delete"):
        value = words[1] if value in _TRUE else "off" if value in _FALSE else value
    return value if value in words else ""
