"""Text that a terminal shows: counts of things in words, and text of strangers made safe, as a
shared run's names and notes may hold the terminal's commands.

ESC, OSC and their kin (ECMA-48) move the cursor, rename the window or fill the clipboard; signs of
direction (Unicode, UAX #9) show a line in another order than it has.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Callable, Iterable
from typing import Any, TextIO

from jojlab.foundation.lazy import msgspec

_KEPT = "\n\t"
# Control characters have pictures of their own at U+2400; those of 8 bits and of direction none.
_SHOWN = {
    **{code: 0x2400 + code for code in range(0x20) if chr(code) not in _KEPT},
    0x7F: 0x2421,
    **dict.fromkeys(range(0x80, 0xA0), 0xFFFD),
    **dict.fromkeys((0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A)),
                    0xFFFD),
}  # fmt: skip
# Below U+0080, JSON escapes all but DEL by itself.
_ESCAPED = {code: f"\\u{code:04x}" for code in _SHOWN if code >= 0x7F}


class CsvStream:
    """The stream that CSV is written to: printable on a terminal, as it is in a file."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._is_terminal = stream.isatty()

    def write(self, text: str) -> int:
        """Write, and return how many characters."""
        return self._stream.write(printable(text) if self._is_terminal else text)


def printable(text: str) -> str:
    """Return `text` with every control character shown instead of sent."""
    return text.translate(_SHOWN)


def printable_name(name: str) -> str:
    """Return the name of a file or a program as one line: blanks that end it are shown too, and a
    byte that is no UTF-8 as \\xNN.
    """
    shown = printable(name).replace("\n", "␊").replace("\t", "␉")
    return "".join(f"\\x{ord(c) - 0xDC00:02x}" if "\udc80" <= c <= "\udcff" else c for c in shown)


def plural(number: int, one: str) -> str:
    """Return how many there are, as 1 call or 2 calls."""
    return f"{number} {one}" if number == 1 else f"{number} {one}s"


def json_text(document: object, default: Callable[[object], object] | None = None) -> str:
    """Return a document as indented JSON, in which every control character is escaped.

    A program reads the same from it as was there; `default` is that of json.dumps.
    """
    text = json.dumps(document, indent=1, ensure_ascii=False, default=default)
    return text.translate(_ESCAPED)


def nearest(word: str, choices: Iterable[str]) -> str:
    """Return ' (did you mean ...?)' for the known word nearest to `word`, or nothing."""
    close = difflib.get_close_matches(word, list(choices), n=1, cutoff=0.5)
    return f" (did you mean {close[0]!r}?)" if close else ""


def public_fields(record: object, **names: str) -> dict[str, Any]:
    """Return the fields of a record as scripts read them: by their own names, or those given; what
    they hold is plain.
    """
    return {names.get(name, name): value for name, value in msgspec.to_builtins(record).items()}
