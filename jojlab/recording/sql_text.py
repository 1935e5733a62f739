"""Splits text of SQL as SQLite's own tokenizer and sqlite3_complete() do (src/tokenize.c,
src/complete.c): into tokens, and into statements. Each character is looked at a few times at most.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from jojlab.foundation.errors import UseError

# A name may have any letter that is not ASCII (IdChar() in src/tokenize.c).
_NAME = r"[A-Za-z0-9_$\x80-\U0010ffff]"
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
        """What it names, without its quotes, in small letters: names of SQL are alike so."""
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


def first_tokens(text: str, count: int) -> list[SqlToken]:
    """Return the first tokens of a text."""
    return list(islice(tokens(text), count))


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

    def foreign(found: re.Match[str]) -> str:
        if found.lastgroup == "comment":
            return _DIRECTIVE.sub("-- !", found[0], count=1)
        return found[0]

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
