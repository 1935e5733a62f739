"""Follows the databases that a connection attaches. A script attaches in its head alone, a file of
a plain name by a plain name: what needs another database, or another file of that name, cannot be
in it, and is not guessed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path

from jojlab.recording import sql_text
from jojlab.recording.sql_text import SqlToken

# The player's own limit (agent/src/sql_script/parse.rs), SQLITE_MAX_ATTACHED of most builds.
_MOST_ATTACHED = 10
_ALWAYS = ("main", "temp")


class DatabaseNames:
    """Bare names for the files of databases: two files have two names."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}

    def __call__(self, path: str) -> str:
        """Return the name of a file."""
        if path not in self._names:
            base = re.sub(r"[^A-Za-z0-9_.-]", "_", Path(path).name).lstrip(".-") or "main.db"
            name, number = base, 1
            while name in self._names.values():
                name = f"{Path(base).stem}-{number}{Path(base).suffix}"
                number += 1
            self._names[path] = name
        return self._names[path]


class AttachedDatabases:
    """The databases of one connection beside its main one."""

    def __init__(self, names: DatabaseNames, may_attach: bool) -> None:
        self._names = names
        self._may_attach = may_attach
        # By the name in SQL: the file that the head attaches, and those attached now that it lacks.
        self._files: dict[str, str] = {}
        self._lacking: set[str] = set()
        # Names of tables and their like that were made, by their database: to tell what a name
        # without a database means.
        self._made: dict[str, set[str]] = {}

    @property
    def head(self) -> list[str]:
        """The lines of the script's head."""
        return [f"--! attach {file} AS {name}" for name, file in self._files.items()]

    @property
    def files(self) -> Sequence[str]:
        """The files that the head attaches."""
        return list(self._files.values())

    def detaches(self, tokens: Iterable[SqlToken], values: Sequence[str]) -> None:
        """Follow a DETACH."""
        words = [token for token in tokens if token.name not in ("database", ";")]
        if len(words) < 2:
            return
        self._lacking.discard(_name(words[1], values))

    def attaches(self, tokens: Iterable[SqlToken], values: Sequence[str], path: str | None) -> str:
        """Follow an ATTACH, of a file as it was recorded if it was; return why the script lacks
        its database, if it does.
        """
        words = [token for token in tokens if token.name not in ("database", ";")]
        is_literal = len(words) > 3 and words[2].name == "as"
        schema = _name(words[3 if is_literal else -1], values)
        if path is None and is_literal:
            path = _value(words[1], values, 0)
        is_plain = re.fullmatch(r"[a-z_][a-z0-9_]*", schema) and schema not in _ALWAYS
        known = self._files.get(schema)
        file = self._names(path) if path and _is_file(path) else None
        if file is not None and known not in (None, file):
            self._lacking.add(schema)
            return "ATTACH of another file by a name that was attached before"
        is_full = known is None and len(self._files) == _MOST_ATTACHED
        if file is None or not is_plain or is_full or not self._may_attach:
            self._lacking.add(schema)
            return "ATTACH of a database that no script can attach in its head"
        self._files[schema] = file
        self._lacking.discard(schema)
        return ""

    def lacks(self, text: str) -> str:
        """Return why a statement cannot be in the script: it needs a database that this lacks."""
        if not self._lacking and not self._files:
            return ""
        tokens = list(sql_text.tokens(text))
        names = [token.name for token in tokens]
        self._note(names)
        named = {name for name, behind in pairwise(names) if behind == "."}
        if names[0] in ("vacuum", "analyze", "reindex") and len(names) > 1:
            named.add(names[1])
        bare = set(_bare(tokens))
        for schema in self._lacking:
            others = set().union(*(m for s, m in self._made.items() if s != schema))
            if schema in named or bare & (self._made.get(schema, set()) - others):
                return "statements that need a database that no script attaches"
        return ""

    def _note(self, names: Sequence[str]) -> None:
        """Note what is made, and in which database."""
        if names[0] != "create":
            return
        words = [name for name in names[1:12] if name not in ("if", "not", "exists", "unique")]
        schema, words = ("temp", words[1:]) if words[:1] == ["temp"] else ("main", words)
        if words[2:3] == ["."]:
            schema, words = words[1], words[2:]
        self._made.setdefault(schema, set()).update(words[1:2])


def _bare(tokens: Sequence[SqlToken]) -> Iterator[str]:
    """Yield the names that stand behind no point."""
    before = ""
    for token in tokens:
        if before != "." and token.kind in ("word", "quoted"):
            yield token.name
        before = token.text


def _name(token: SqlToken, values: Sequence[str]) -> str:
    return (_value(token, values, -1) or token.name).lower()


def _value(token: SqlToken, values: Sequence[str], index: int) -> str | None:
    """Return the text of a literal, or of the value that is bound in its place."""
    if token.kind == "variable":
        literal = values[index] if values else ""
        if literal.startswith("text x'"):
            return bytes.fromhex(literal[7:-1]).decode()
        return literal[1:-1].replace("''", "'") if literal.startswith("'") else None
    if token.kind == "quoted":
        end = token.text[-1]
        return token.text[1:-1].replace(end * 2, end)
    return None


def _is_file(path: str) -> bool:
    """Return whether ATTACH opens a plain file; a name may also be a URI (sqlite.org/uri.html)."""
    return path != ":memory:" and not path.lower().startswith("file:")
