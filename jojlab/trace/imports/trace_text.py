"""The lines of a trace file, as people keep such files: as blkparse wrote them, with a byte order
mark and CR LF, in UTF-16, compressed by gzip.
"""

from __future__ import annotations

import codecs
import gzip
import io
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, cast

from jojlab.foundation.errors import DataError, UseError

MOST_LINE_CHARACTERS = 64 * 1024  # a path has 4096 bytes at most; a longer line is no event
_GZIP = b"\x1f\x8b"
_UNREAD = {
    b"\xfd7zXZ\0": ("xz", "xz -d"),
    b"\x28\xb5\x2f\xfd": ("zstd", "zstd -d"),
    b"BZh": ("bzip2", "bunzip2"),
    b"PK\x03\x04": ("zip", "unzip"),
    b"\x7f\x45\x4c\x46": ("a program (ELF)", "name the text that it writes"),
}
# struct blk_io_trace begins so (BLK_IO_TRACE_MAGIC and version, include/uapi/linux/blktrace_api.h).
_BINARY = (b"\x07\x74\x61\x65", b"\x65\x61\x74\x07")


@dataclass(frozen=True, slots=True)
class Line:
    """A line without its end. `is_whole` is false for a last one that has no end."""

    number: int
    text: str
    is_whole: bool = True
    is_too_long: bool = False  # then `text` is its beginning


def trace_lines(path: Path) -> Iterator[Line]:
    """Yield the lines of a file; bytes that are no UTF-8 stand as \\xNN.

    Raises UseError where it cannot be opened or has no text, DataError where it is damaged.
    """
    try:
        with path.open("rb") as file:
            yield from _numbered(_text(path, file))
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise DataError(
            f"{path}: what gzip compressed is damaged: {error}",
            "gzip -dc FILE > FILE.txt, and import what comes of it",
        ) from error
    except OSError as error:
        raise UseError(
            f"{path}: cannot be read: {error.strerror}", "name a readable file"
        ) from error


def _text(path: Path, file: IO[bytes]) -> IO[str]:
    stream: IO[bytes] = file
    head = file.peek(16)[:16] if isinstance(file, io.BufferedReader) else b""
    if head.startswith(_GZIP):
        unpacked = gzip.GzipFile(fileobj=file)
        stream = cast(IO[bytes], io.BufferedReader(cast(io.RawIOBase, unpacked)))
        head = cast(io.BufferedReader, stream).peek(16)[:16]
    for magic, (what, remedy) in _UNREAD.items():
        if head.startswith(magic):
            raise UseError(f"{path}: this is {what}, and no text", remedy)
    if head.startswith(_BINARY):
        raise UseError(
            f"{path}: this is blktrace's binary, and no text", f"blkparse -i {path.name} > FILE.txt"
        )
    return io.TextIOWrapper(
        stream, encoding=_encoding(head), errors="backslashreplace", newline="\n"
    )


def _encoding(head: bytes) -> str:
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    # Without the mark: all that an event begins with is ASCII.
    if len(head) >= 4 and head[0] and head[2] and not head[1] and not head[3]:
        return "utf-16-le"
    if len(head) >= 4 and head[1] and head[3] and not head[0] and not head[2]:
        return "utf-16-be"
    return "utf-8-sig"


def _numbered(stream: IO[str]) -> Iterator[Line]:
    number = 0
    while text := stream.readline(MOST_LINE_CHARACTERS):
        number += 1
        is_whole = text.endswith("\n")
        if not is_whole and len(text) == MOST_LINE_CHARACTERS:
            while (rest := stream.readline(MOST_LINE_CHARACTERS)) and not rest.endswith("\n"):
                pass
            yield Line(number, text[:80], is_too_long=True)
            continue
        yield Line(number, text.rstrip("\r\n"), is_whole)
