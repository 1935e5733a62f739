"""Imports a trace file into a new run: reads it twice, once to know it and once to join it.

The first reading finds the format, what sort of device each one is, and the names (a file with a
journal beside it is a database, and the journal may come later); the second writes the tables. A
line that is no event ends nothing: it is passed over where it is known what it is, or counted.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from jojlab.foundation.errors import DataError, UseError
from jojlab.trace.imports import blkparse, most
from jojlab.trace.imports.event import Event
from jojlab.trace.imports.requests import LACKS, TOLD, Joiner, Survey
from jojlab.trace.imports.tables import TableWriter
from jojlab.trace.imports.trace_text import MOST_LINE_CHARACTERS, Line, trace_lines
from jojlab.trace.run_folder import RunFolder
from jojlab.trace.schema import SCHEMA_VERSION

FORMATS: dict[str, ModuleType] = {module.NAME: module for module in (blkparse, most)}
CASE_ID = "trace"
SEED = 0


@dataclass(frozen=True)
class Imported:
    """What came of it: rows of requests, and what was counted on the way.

    `reasons` say what is missing of what the format tells, `untold` what it never does.
    """

    format: str
    lines: int
    requests: int
    counts: dict[str, int]
    unattributed_bytes: int
    lost_events: int
    reasons: list[str]
    untold: list[str]


@dataclass(frozen=True)
class _Source:
    path: Path
    module: ModuleType
    sha256: str
    survey: Survey
    paths: frozenset[str]


@dataclass
class _Reading:
    """What was met in the lines, and is no event."""

    lines: int = 0
    unread: int = 0
    first_unread: str = ""
    lost_events: int = 0
    has_cut_line: bool = False  # the last has no end: its values may lack digits


def import_trace(path: Path, out: Path, format_name: str = "") -> tuple[RunFolder, Imported]:
    """Make run `out` of the trace in `path`; the format is guessed when it is not named.

    Raises UseError for a file that is none of the formats, DataError naming the line that is bad.
    """
    source = _know(path, format_name)
    # The tables are made before the run: a bad line leaves no run behind.
    with tempfile.TemporaryDirectory(prefix="joj-import-") as made:
        imported = _write(source, Path(made))
        run = RunFolder.create(
            out,
            experiment={
                "name": path.name,
                "question": f"What did {path.name} record?",
                "published": [],
                "settings": {},
            },
            seeds=[SEED],
            cases=[(CASE_ID, {"source": path.name, "format": imported.format})],
            fingerprint={"source_sha256": source.sha256, "format": imported.format},
        )
        run.add_capture(CASE_ID, SEED, Path(made))
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


def _write(source: _Source, folder: Path) -> Imported:
    joiner, reading = Joiner(source.survey), _Reading()
    with TableWriter(folder, source.paths) as tables:
        for number, event in enumerate(_events(source.path, source.module, reading)):
            joiner.add(event)
            if number % 1024 == 0:
                for request in joiner.ready():
                    tables.add(request)
        for request in joiner.ready(at_end=True):
            tables.add(request)
        unowned = _unowned(tables.unattributed_bytes)
        told_owners = source.module.TELLS_OWNERS
        reasons = _reasons(joiner, reading)
        imported = Imported(
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
    reasons = [f"{joiner.counts[name]} {what}" for name, what in LACKS.items()]
    reasons = [reason for reason in reasons if not reason.startswith("0 ")]
    if reading.unread == 1:
        reasons.append(f"1 line could not be read: {reading.first_unread}")
    elif reading.unread:
        reasons.append(f"{reading.unread} lines could not be read, first {reading.first_unread}")
    if reading.has_cut_line:
        reasons.append("1 line is cut short: the last, which is left out")
    if reading.lost_events:
        reasons.append(f"{reading.lost_events} events were lost when the trace was recorded")
    return reasons


def _unowned(count_bytes: int) -> list[str]:
    return [f"{count_bytes} bytes have no owner: the trace does not tell it"] if count_bytes else []


def _manifest(source: _Source, imported: Imported) -> dict[str, Any]:
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
        "incomplete": bool(imported.reasons or imported.untold),
        "incomplete_reasons": [*imported.reasons, *imported.untold],
    }
