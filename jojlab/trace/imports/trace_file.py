"""Imports a trace file into a new run: reads it twice, once to know it and once to join it.

The first reading finds the format, what sort of device each one is, and the names (a file with a
journal beside it is a database, and the journal may come later); the second writes the tables. A
line that is no event ends nothing: it is passed over where it is known what it is, or counted.

Lines are read as people keep such files: as blkparse wrote them, with a byte order mark and CR LF,
in UTF-16, compressed by gzip.
"""

from __future__ import annotations

import codecs
import gzip
import hashlib
import io
import tempfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import IO, Any, cast

from jojlab.foundation.errors import DataError, UseError, unreadable
from jojlab.foundation.printable import plural
from jojlab.trace.imports import blkparse, most
from jojlab.trace.imports.event import Event
from jojlab.trace.imports.requests import LACKS, TOLD, Joiner, Survey, lack_sentence
from jojlab.trace.imports.tables import TableWriter
from jojlab.trace.run_folder import RunFolder
from jojlab.trace.schema import SCHEMA_VERSION

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
            yield from _number_lines(_text(path, file))
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise DataError(
            f"{path}: what gzip compressed is damaged: {error}",
            "gzip -dc FILE > FILE.txt, and import what comes of it",
        ) from error
    except OSError as error:
        raise unreadable(path, error, "name a readable file") from error


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


def _number_lines(stream: IO[str]) -> Iterator[Line]:
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


FORMATS: dict[str, ModuleType] = {module.NAME: module for module in (blkparse, most)}
CASE_ID = "trace"
SEED = 0


@dataclass(frozen=True)
class ImportedTrace:
    """The result of an import: rows of requests, and what was counted on the way.

    `reasons` say what is missing of what the format tells, `limits` what it never tells.
    """

    format: str
    lines: int
    requests: int
    counts: dict[str, int]
    unattributed_bytes: int
    lost_events: int
    reasons: list[str]
    limits: list[str]


@dataclass(frozen=True)
class _Source:
    path: Path
    module: ModuleType
    sha256: str
    survey: Survey
    paths: frozenset[str]


@dataclass
class _Reading:
    """Counts of what was met in the lines, and is no event."""

    lines: int = 0
    unread: int = 0
    first_unread: str = ""
    lost_events: int = 0
    has_cut_line: bool = False  # the last has no end: its values may lack digits


def import_trace(path: Path, out: Path, format_name: str = "") -> tuple[RunFolder, ImportedTrace]:
    """Make run `out` of the trace in `path`; the format is guessed when it is not named.

    Raises UseError for a file that is none of the formats, DataError naming the line that is bad.
    """
    source = _know(path, format_name)
    # The tables are made before the run: a bad line leaves no run behind.
    with tempfile.TemporaryDirectory(prefix="joj-import-") as folder:
        imported = _write(source, Path(folder))
        run = RunFolder.create(
            out,
            experiment={"name": path.name, "question": f"What did {path.name} record?"},
            seeds=[SEED],
            cases=[(CASE_ID, {"source": path.name, "format": imported.format})],
            fingerprint={"source_sha256": source.sha256, "format": imported.format},
        )
        run.add_capture(CASE_ID, SEED, Path(folder))
    return run, imported


def _know(path: Path, format_name: str) -> _Source:
    module = FORMATS.get(format_name) or _guess(path)
    paths: set[str] = set()
    survey, reading = Survey(), _Reading()
    has_events = False
    for event in _events(path, module, reading):
        has_events = True
        survey.see(event)
        if event.path:
            paths.add(event.path)
    if not has_events:
        raise DataError(
            f"{path}: no event of {module.NAME} in it{'; ' * bool(reading.unread)}"
            f"{reading.first_unread}",
            "name the text that blkparse or MOST wrote; see --format",
        )
    with path.open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha256")
    return _Source(path, module, digest.hexdigest(), survey, frozenset(paths))


def _guess(path: Path) -> ModuleType:
    """Return the format of the first line that is an event of one."""
    first = ""
    for line in trace_lines(path):
        for module in FORMATS.values():
            if module.is_event(line.text):
                return module
        first = first or line.text.strip()
    if not first:
        raise UseError(f"{path}: empty", "name a file with a trace in it")
    raise UseError(
        f"{path}: no line is an event of a known format; it begins {first[:80]!r}",
        f"name it: --format {' or '.join(FORMATS)}",
    )


def _write(source: _Source, folder: Path) -> ImportedTrace:
    joiner, reading = Joiner(source.survey), _Reading()
    with TableWriter(folder, source.paths) as tables:
        for number, event in enumerate(_events(source.path, source.module, reading)):
            joiner.add(event)
            if number % 1024 == 0:
                for request in joiner.ready():
                    tables.add(request)
        for request in joiner.ready(at_end=True):
            tables.add(request)
        unowned = _unowned_reasons(tables.unattributed_bytes)
        told_owners = source.module.TELLS_OWNERS
        reasons = _reasons(joiner, reading)
        imported = ImportedTrace(
            source.module.NAME,
            reading.lines,
            tables.requests,
            {name: joiner.counts[name] for name in (*TOLD, *LACKS)},
            tables.unattributed_bytes,
            reading.lost_events,
            reasons + unowned if told_owners else reasons,
            [] if told_owners else unowned,
        )
        tables.finish(_manifest(source, imported))
    return imported


def _events(path: Path, module: ModuleType, reading: _Reading) -> Iterator[Event]:
    """Yield the events; counts all other lines in `reading`."""
    for line in trace_lines(path):
        reading.lines += 1
        if module.is_event(line.text) and not line.is_too_long:
            if not line.is_whole:
                reading.has_cut_line = True
                continue
            try:
                event = module.parse(line.text)
                if event:
                    yield event
            except ValueError as error:
                _leave_out(reading, line, str(error))
        elif module.is_known(line.text) or not line.text.strip():
            reading.lost_events += module.lost_events(line.text)
        elif line.is_too_long:
            _leave_out(reading, line, f"longer than {MOST_LINE_CHARACTERS} characters")
        else:
            _leave_out(reading, line, f"no event of {module.NAME}: {line.text[:60]!r}")


def _leave_out(reading: _Reading, line: Line, why: str) -> None:
    reading.unread += 1
    reading.first_unread = reading.first_unread or f"line {line.number}: {why}"


def _reasons(joiner: Joiner, reading: _Reading) -> list[str]:
    reasons = [lack_sentence(name, joiner.counts[name]) for name in LACKS if joiner.counts[name]]
    if reading.unread == 1:
        reasons.append(f"1 line could not be read: {reading.first_unread}")
    elif reading.unread:
        reasons.append(f"{reading.unread} lines could not be read, first {reading.first_unread}")
    if reading.has_cut_line:
        reasons.append("1 line is cut short: the last, which is left out")
    if reading.lost_events:
        verb = "was" if reading.lost_events == 1 else "were"
        events = plural(reading.lost_events, "event")
        reasons.append(f"{events} {verb} lost when the trace was recorded")
    return reasons


def _unowned_reasons(count_bytes: int) -> list[str]:
    verb = "has" if count_bytes == 1 else "have"
    words = f"{plural(count_bytes, 'byte')} {verb} no owner: the trace does not tell it"
    return [words] if count_bytes else []


def _manifest(source: _Source, imported: ImportedTrace) -> dict[str, Any]:
    return {
        "schema_version": SCHEMA_VERSION,
        "case": {"source": source.path.name, "format": imported.format},
        "seed": SEED,
        "clock": "wall",
        "kernel": "unknown",
        "device": {},
        "phases": [],
        "configuration": {
            "source": {
                "file": source.path.name,
                "format": imported.format,
                "sha256": source.sha256,
                "lines": imported.lines,
                **imported.counts,
            }
        },
        "lost_events": imported.lost_events,
        "unattributed_bytes": imported.unattributed_bytes,
        "incomplete": bool(imported.reasons or imported.limits),
        "incomplete_reasons": [*imported.reasons, *imported.limits],
    }
