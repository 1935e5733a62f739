"""Reads text of SQL: splits it into tokens and statements, and says what a folder of scripts
(docs/own-sql.md) may change before anything runs. The agent checks that they are scripts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from jojlab.foundation.errors import UseError

# A name may have any letter that is not ASCII (IdChar() in src/tokenize.c). What it may not have
# is ASCII alone, and so compiles in a fiftieth of the time: each command of joj compiles it.
_NAME = r"[^\x00-#%-/:-@[-^`{-\x7f]"
_TOKEN = re.compile(
    r"(?P<space>[ \t\n\f\r]+)"
    r"|(?P<comment>--[^\n]*|/\*.*?(?:\*/|\Z))"
    r"|(?P<quoted>'[^']*(?:''[^']*)*'|\"[^\"]*(?:\"\"[^\"]*)*\"|`[^`]*(?:``[^`]*)*`|\[[^\]]*\])"
    rf"|(?P<variable>\?[0-9]*|[@:#$]{_NAME}+(?:::{_NAME}+)*)"
    rf"|(?P<word>{_NAME}+)"
    r"|(?P<other>.)",
    re.DOTALL,
)
# What a statement's end is found by: all between two of these is passed over at once.
_COARSE = re.compile(
    r"[^;'\"`\[/\-]+"
    r"|--[^\n]*|/\*.*?(?:\*/|\Z)"
    r"|'[^']*(?:''[^']*)*'?|\"[^\"]*(?:\"\"[^\"]*)*\"?|`[^`]*(?:``[^`]*)*`?|\[[^\]]*\]?"
    r"|.",
    re.DOTALL,
)
_BEFORE = re.compile(r"(?:[ \t\n\f\r]+|--[^\n]*(?:\n|\Z)|/\*.*?(?:\*/|\Z))+", re.DOTALL)
_GAP = r"(?:[ \t\n\f\r]+|--[^\n]*\n|/\*.*?\*/)+"
_TRIGGER = re.compile(
    rf"(?:EXPLAIN{_GAP}(?:QUERY{_GAP}PLAN{_GAP})?)?CREATE{_GAP}(?:TEMP(?:ORARY)?{_GAP})?TRIGGER\b",
    re.IGNORECASE | re.DOTALL,
)
_CLOSING = {"'": "'", '"': '"', "`": "`", "[": "]"}
# Of our scripts, which take such a comment for one of theirs (docs/own-sql.md).
_DIRECTIVE = re.compile(
    r"--!(?=[ \t]*(?:bind|wait_us|may_fail|repeat|end|let|transaction|connection|database|attach|"
    r"after)\b)"
)


@dataclass(frozen=True)
class SqlToken:
    """One token, but white space and comments."""

    kind: str
    text: str

    @property
    def name(self) -> str:
        """Return what it names, without its quotes, in small letters: names of SQL are alike so."""
        bare = self.text
        if self.kind == "quoted":
            end = bare[-1]
            bare = bare[1:-1] if end == "]" else bare[1:-1].replace(end * 2, end)
        return bare.lower()


def tokens(text: str) -> Iterator[SqlToken]:
    """Yield the tokens of a text, without white space and comments."""
    for found in _TOKEN.finditer(text):
        kind = found.lastgroup or "other"
        if kind not in ("space", "comment"):
            yield SqlToken(kind, found[0])


def first_names(text: str) -> list[str]:
    """Return what the first six tokens of a text name."""
    return [token.name for token in islice(tokens(text), 6)]


def bare_statement(text: str) -> str:
    """Return a statement without the white space and comments before it."""
    found = _BEFORE.match(text)
    return text[found.end() :] if found else text


def parameter_count(text: str) -> int:
    """Return how many parameters a statement has, by SQLite's rules (sqlite.org/lang_expr.html)."""
    highest, named = 0, set()
    for token in tokens(text):
        if token.kind != "variable":
            continue
        if token.text == "?":
            highest += 1
        elif token.text[0] == "?":
            highest = max(highest, int(token.text[1:]))
        elif token.text not in named:
            named.add(token.text)
            highest += 1
    return highest


def without_directives(text: str) -> str:
    """Return a statement whose comments no script of ours takes for directives."""
    if "--!" not in text:
        return text

    def foreign(token: re.Match[str]) -> str:
        if token.lastgroup == "comment":
            return _DIRECTIVE.sub("-- !", token[0], count=1)
        return token[0]

    return _TOKEN.sub(foreign, text)


def refuse_swallowed(text: str, where: str) -> None:
    """Raise UseError for a comment that holds what follows a carriage return.

    To SQLite a comment ends at a line feed; in a file with other line ends it ends nowhere.
    """
    if "\r" not in text.replace("\r\n", "\n"):
        return
    for found in _COARSE.finditer(text):
        if found[0].startswith("--") and "\r" in found[0][:-1]:
            number = text.count("\n", 0, found.start()) + 1
            raise UseError(
                f"{where}:{number}: a comment goes on behind a carriage return, as SQLite reads it",
                "convert the ends of lines: tr '\\r' '\\n'",
            )


def statements(text: str, where: str) -> Iterator[tuple[int, str]]:
    """Yield each statement, without its semicolon, with the line on which it begins.

    A semicolon that follows none is passed over. Raises UseError for what does not end.
    """
    begin, line, counted = 0, 1, 0
    while begin < len(text):
        if found := _BEFORE.match(text, begin):
            begin = found.end()
        line += text.count("\n", counted, begin)
        counted = begin
        end = _end(text, begin, where)
        if statement := text[begin:end].rstrip():
            yield line, statement
        begin = end + 1


def _end(text: str, begin: int, where: str) -> int:
    """Return where the statement's semicolon is, or the text's end."""
    is_trigger = _TRIGGER.match(text, begin) is not None
    part = at = begin
    while found := _COARSE.match(text, at):
        at = found.end()
        first = found[0][0]
        if first == ";":
            if not is_trigger or [it.name for it in tokens(text[part : at - 1])] == ["end"]:
                return at - 1
            part = at
        elif first in _CLOSING and not _is_closed(found[0], _CLOSING[first]):
            number = text.count("\n", 0, found.start()) + 1
            what = "a string" if first == "'" else "a quoted name"
            raise UseError(f"{where}:{number}: {what} that does not end", f"add a {first}")
    return len(text)


def _is_closed(quoted: str, closing: str) -> bool:
    if len(quoted) < 2 or quoted[-1] != closing:
        return False
    return closing == "]" or quoted.count(closing) % 2 == 0


_MOST_BYTES = 256 << 20
_SHOWN = 60
_ATTACH = re.compile(r"^--![ \t]*attach[ \t]+\S+[ \t]+AS[ \t]+(\S+)", re.IGNORECASE | re.MULTILINE)
_JOURNAL_MODE = re.compile(r"PRAGMA (?:\S+ \. )?journal_mode [=(] (\w+)", re.IGNORECASE)
_RANDOM = frozenset({"random", "randomblob"})
# Of what the time is read to the second, or finer: a day seldom ends within a run.
_CLOCKS = frozenset({"datetime", "time", "julianday", "unixepoch"})
_NOW = frozenset({"current_timestamp", "current_time"})
# Finer than a day, in strftime().
_FINE = re.compile(r"%[fHIJlkMNpPRsSTc]")
_WRITES = frozenset({"INSERT", "REPLACE", "UPDATE"})


@dataclass(frozen=True)
class Unrepeatable:
    """A statement whose rows depend on the time or on random numbers, which `reader` reads."""

    place: str
    text: str
    reader: str

    def __str__(self) -> str:
        """Return where it is, what it is, and why."""
        return f"{self.place}: {self.text} ({self.reader})"


@dataclass(frozen=True)
class ScriptFacts:
    """`databases` is how many a connection has open, at most; `attached` are the names of those
    beside main, `journal_modes` those that a PRAGMA changes to. `unrepeatable` statements write
    the time or a random number; `doubtful` ones may: defaults and triggers, which no statement may
    need, and conditions, which may choose the same rows.
    """

    databases: int = 1
    attached: tuple[str, ...] = ()
    journal_modes: tuple[str, ...] = ()
    unrepeatable: tuple[Unrepeatable, ...] = ()
    doubtful: tuple[Unrepeatable, ...] = ()


def script_facts(folder: Path) -> ScriptFacts:
    """Return what the scripts of a folder say; what cannot be read says nothing."""
    databases, attached, modes = 1, dict[str, str](), set[str]()
    certain: list[Unrepeatable] = []
    doubtful: list[Unrepeatable] = []
    for path in sorted(folder.glob("*.sql")):
        text = _text(path)
        names = {found[1].lower(): found[1] for found in _ATTACH.finditer(text)}
        databases, attached = max(databases, 1 + len(names)), attached | names
        for line, parts in _statements(text):
            if found := _JOURNAL_MODE.match(" ".join(token.text for token in parts[:7])):
                modes.add(found[1].lower())
            if reader := _clock_or_dice(_written_part(parts)):
                certain.append(_unrepeatable(path, line, parts, reader))
            elif reader := _clock_or_dice(parts if _may_write(parts) else []):
                doubtful.append(_unrepeatable(path, line, parts, reader))
    return ScriptFacts(
        databases, tuple(attached.values()), tuple(sorted(modes)), tuple(certain), tuple(doubtful)
    )


def _text(path: Path) -> str:
    try:
        if path.stat().st_size > _MOST_BYTES:
            return ""
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _unrepeatable(path: Path, line: int, parts: list[SqlToken], reader: str) -> Unrepeatable:
    words = " ".join(token.text for token in parts)
    words = words if len(words) <= _SHOWN else f"{words[:_SHOWN]}..."
    return Unrepeatable(f"{path.name}:{line}", words, reader)


def _statements(text: str) -> Iterator[tuple[int, list[SqlToken]]]:
    """Yield the statements, each with its line, up to one that does not end; that of a trigger has
    those of its body.
    """
    with suppress(UseError):
        for line, statement in statements(text, ""):
            yield line, list(tokens(statement))


def _words(parts: list[SqlToken]) -> list[str]:
    return [token.text.upper() if token.kind == "word" else "" for token in parts]


def _written_part(parts: list[SqlToken]) -> list[SqlToken]:
    """Return the part of a statement whose values it writes; nothing of what writes none."""
    words = _words(parts)
    verb = next((word for word in words if word in (*_WRITES, "DELETE", "SELECT")), "")
    if words[:1] and words[0] == "WITH":
        verb = next((word for word in words if word in _WRITES), "")
    if verb not in _WRITES or words[0] not in (*_WRITES, "WITH"):
        return []
    begin = words.index(verb)
    # What stands behind these chooses rows.
    end = next((n for n in range(begin, len(words)) if words[n] in ("WHERE", "FROM")), len(words))
    return parts[begin:end]


def _may_write(parts: list[SqlToken]) -> bool:
    first = _words(parts[:1])
    return first[0] in (*_WRITES, "WITH", "DELETE", "CREATE", "ALTER")


def _clock_or_dice(parts: list[SqlToken]) -> str:
    """Return what reads the clock or a random number; empty where nothing does."""
    for place, token in enumerate(parts):
        word = token.text.lower() if token.kind == "word" else ""
        if word in _NOW:
            return word.upper()
        is_call = place + 1 < len(parts) and parts[place + 1].text == "("
        if is_call and (word in _RANDOM or _is_now(word, _arguments(parts[place + 2 :]))):
            return f"{word}()"
    return ""


def _arguments(parts: list[SqlToken]) -> list[SqlToken]:
    """Return what stands in the brackets that are open."""
    depth = 1
    for place, token in enumerate(parts):
        depth += {"(": 1, ")": -1}.get(token.text, 0)
        if not depth:
            return parts[:place]
    return parts


def _is_now(word: str, arguments: list[SqlToken]) -> bool:
    """Return whether a function is of the date and reads the clock, finer than to the day: by
    'now', or as nothing else is given (sqlite.org/lang_datefunc.html).
    """
    if word not in (*_CLOCKS, "strftime"):
        return False
    texts = [token.text for token in arguments if token.text != ","]
    if word == "strftime":
        if not texts or not _FINE.search(texts[0]):
            return False
        texts = texts[1:]
    return not texts or texts[0].lower() == "'now'"
