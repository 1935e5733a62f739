"""What a folder of SQL scripts (docs/own-sql.md) says before anything runs: which databases a
transaction may change, and which statements write what no second run writes again.

Reads the files' text; that they are scripts, the agent checks.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_MOST_BYTES = 256 << 20
_SHOWN = 60
_PIECE = re.compile(
    r"(?P<gap>\s+|--[^\n]*|/\*.*?(?:\*/|\Z))"
    r"|(?P<text>'(?:[^']|'')*(?:'|\Z))"
    r"|(?P<name>\"(?:[^\"]|\"\")*(?:\"|\Z)|`[^`]*(?:`|\Z)|\[[^\]]*(?:\]|\Z))"
    r"|(?P<variable>[:@$?]\w+)"
    r"|(?P<word>\w+)"
    r"|(?P<sign>.)",
    re.DOTALL,
)
_ATTACH = re.compile(r"^--![ \t]*attach[ \t]+\S+[ \t]+AS[ \t]+(\S+)", re.IGNORECASE | re.MULTILINE)
_RANDOM = frozenset({"random", "randomblob"})
# Of what the time is read to the second, or finer: a day seldom ends within a run.
_CLOCKS = frozenset({"datetime", "time", "julianday", "unixepoch"})
_NOW = frozenset({"current_timestamp", "current_time"})
# Finer than a day, in strftime().
_FINE = re.compile(r"%[fHIJlkMNpPRsSTc]")
_WRITES = frozenset({"INSERT", "REPLACE", "UPDATE"})


@dataclass(frozen=True)
class Unrepeatable:
    """A statement whose rows depend on the time or on random numbers; `by` is what reads them."""

    place: str
    text: str
    by: str

    def __str__(self) -> str:
        """Return where it is, what it is, and why."""
        return f"{self.place}: {self.text} ({self.by})"


@dataclass(frozen=True)
class ScriptFacts:
    """`databases` is how many a connection has open, at most; `attached` are the names of those
    beside main. `unrepeatable` statements write the time or a random number; `doubtful` ones
    may: defaults and triggers, which no statement may need, and conditions, which may choose the
    same rows.
    """

    databases: int = 1
    attached: tuple[str, ...] = ()
    unrepeatable: tuple[Unrepeatable, ...] = ()
    doubtful: tuple[Unrepeatable, ...] = ()


@dataclass(frozen=True)
class _Piece:
    kind: str
    text: str


def script_facts(folder: Path) -> ScriptFacts:
    """Return what the scripts of a folder say; what cannot be read says nothing."""
    databases, attached = 1, dict[str, str]()
    certain: list[Unrepeatable] = []
    doubtful: list[Unrepeatable] = []
    for path in sorted(folder.glob("*.sql")):
        text = _text(path)
        names = {found[1].lower(): found[1] for found in _ATTACH.finditer(text)}
        databases, attached = max(databases, 1 + len(names)), attached | names
        for line, pieces in _statements(text):
            if by := _clock_or_dice(_written(pieces)):
                certain.append(_found(path, line, pieces, by))
            elif by := _clock_or_dice(pieces if _may_write(pieces) else []):
                doubtful.append(_found(path, line, pieces, by))
    return ScriptFacts(databases, tuple(attached.values()), tuple(certain), tuple(doubtful))


def _text(path: Path) -> str:
    try:
        if path.stat().st_size > _MOST_BYTES:
            return ""
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _found(path: Path, line: int, pieces: list[_Piece], by: str) -> Unrepeatable:
    words = " ".join(piece.text for piece in pieces)
    words = words if len(words) <= _SHOWN else f"{words[:_SHOWN]}..."
    return Unrepeatable(f"{path.name}:{line}", words, by)


def _statements(text: str) -> Iterator[tuple[int, list[_Piece]]]:
    """Yield the statements, each with its line; that of a trigger has those of its body."""
    line, begun, pieces = 1, 1, list[_Piece]()
    for found in _PIECE.finditer(text):
        kind, own = found.lastgroup or "sign", found[0]
        if kind != "gap":
            begun = begun if pieces else line
            if own != ";" or (_is_trigger(pieces) and pieces[-1].text.upper() != "END"):
                pieces.append(_Piece(kind, own))
            else:
                if pieces:
                    yield begun, pieces
                pieces = []
        line += own.count("\n")
    if pieces:
        yield begun, pieces


def _words(pieces: list[_Piece]) -> list[str]:
    return [piece.text.upper() if piece.kind == "word" else "" for piece in pieces]


def _is_trigger(pieces: list[_Piece]) -> bool:
    words = _words(pieces[:3])
    return words[:1] == ["CREATE"] and "TRIGGER" in words


def _written(pieces: list[_Piece]) -> list[_Piece]:
    """Return the part of a statement whose values it writes; nothing of what writes none."""
    words = _words(pieces)
    verb = next((word for word in words if word in (*_WRITES, "DELETE", "SELECT")), "")
    if words[:1] and words[0] == "WITH":
        verb = next((word for word in words if word in _WRITES), "")
    if verb not in _WRITES or words[0] not in (*_WRITES, "WITH"):
        return []
    begin = words.index(verb)
    # What stands behind these chooses rows.
    end = next((n for n in range(begin, len(words)) if words[n] in ("WHERE", "FROM")), len(words))
    return pieces[begin:end]


def _may_write(pieces: list[_Piece]) -> bool:
    first = _words(pieces[:1])
    return first[0] in (*_WRITES, "WITH", "DELETE", "CREATE", "ALTER")


def _clock_or_dice(pieces: list[_Piece]) -> str:
    """Return what reads the clock or a random number; empty where nothing does."""
    for place, piece in enumerate(pieces):
        word = piece.text.lower() if piece.kind == "word" else ""
        if word in _NOW:
            return word.upper()
        is_call = place + 1 < len(pieces) and pieces[place + 1].text == "("
        if is_call and (word in _RANDOM or _is_now(word, _arguments(pieces[place + 2 :]))):
            return f"{word}()"
    return ""


def _arguments(pieces: list[_Piece]) -> list[_Piece]:
    """Return what stands in the brackets that are open."""
    depth = 1
    for place, piece in enumerate(pieces):
        depth += {"(": 1, ")": -1}.get(piece.text, 0)
        if not depth:
            return pieces[:place]
    return pieces


def _is_now(word: str, arguments: list[_Piece]) -> bool:
    """Whether a function is of the date and reads the clock, finer than to the day: by 'now', or as
    nothing else is given (sqlite.org/lang_datefunc.html).
    """
    if word not in (*_CLOCKS, "strftime"):
        return False
    texts = [piece.text for piece in arguments if piece.text != ","]
    if word == "strftime":
        if not texts or not _FINE.search(texts[0]):
            return False
        texts = texts[1:]
    return not texts or texts[0].lower() == "'now'"
