"""Imports a trace file into a new run: reads it twice, once to know it and once to join it.

The first reading hashes the file, finds its format and the names in it (a file with a journal
beside it is a database, and the journal may come later); the second writes the tables.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from jojlab.foundation.errors import DataError, UseError
from jojlab.trace.imports import blkparse, most
from jojlab.trace.imports.event import Event
from jojlab.trace.imports.requests import LACKS, TOLD, Joiner
from jojlab.trace.imports.tables import TableWriter
from jojlab.trace.run_folder import RunFolder
from jojlab.trace.schema import SCHEMA_VERSION

FORMATS: dict[str, ModuleType] = {module.NAME: module for module in (blkparse, most)}
CASE_ID = "trace"
SEED = 0
_MOST_LINE_BYTES = 64 * 1024  # a path has 4096 at most; a longer line is no text of ours


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
    cut_line: bool  # the last line has no end: its values may lack digits
    paths: frozenset[str]


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
    digest = hashlib.sha256()
    module = FORMATS.get(format_name)
    paths: set[str] = set()
    ended, started = True, False
    try:
        with path.open("rb") as stream:
            while line := stream.readline(_MOST_LINE_BYTES):
                digest.update(line)
                ended, text = line.endswith(b"\n"), line.decode("utf-8", "replace").rstrip("\n")
                if not started and text.strip():
                    started = True
                    module = module or _guess(path, text)
                if module is most and text.count("\t") == 8:
                    paths.add(text.rpartition("\t")[2])
    except OSError as error:
        raise UseError(
            f"{path}: cannot be read: {error.strerror}", "name a readable file"
        ) from error
    if not started or module is None:
        raise UseError(f"{path}: empty", "name a file with a trace in it")
    return _Source(path, module, digest.hexdigest(), not ended, frozenset(paths))


def _guess(path: Path, line: str) -> ModuleType:
    for module in FORMATS.values():
        if module.is_first_line(line):
            return module
    raise UseError(
        f"{path}: line 1 is of no known format: {line[:80]!r}",
        f"name it: --format {' or '.join(FORMATS)}",
    )


def _write(source: _Source, folder: Path) -> Imported:
    joiner = Joiner(flushes_are_issued=source.module.FLUSHES_ARE_ISSUED)
    told: Counter[str] = Counter()
    with TableWriter(folder, source.paths) as tables:
        for number, event in enumerate(_events(source, told)):
            joiner.add(event)
            if number % 1024 == 0:
                for request in joiner.ready():
                    tables.add(request)
        for request in joiner.ready(at_end=True):
            tables.add(request)
        unowned = _unowned(tables.unattributed_bytes)
        told_owners = source.module.TELLS_OWNERS
        reasons = _reasons(source, joiner, told)
        imported = Imported(
            source.module.NAME,
            told["lines"],
            tables.requests,
            {name: joiner.counts[name] for name in (*TOLD, *LACKS)},
            tables.unattributed_bytes,
            told["lost"],
            reasons + unowned if told_owners else reasons,
            [] if told_owners else unowned,
        )
        tables.finish(_manifest(source, imported))
    return imported


def _events(source: _Source, told: Counter[str]) -> Iterator[Event]:
    """Give the events; counts lines, and what the summary at the end says was lost."""
    module, in_summary = source.module, False
    with source.path.open("rb") as stream:
        while line := stream.readline(_MOST_LINE_BYTES):
            told["lines"] += 1
            if not line.endswith(b"\n"):
                if len(line) == _MOST_LINE_BYTES:
                    raise _bad(source, told["lines"], f"longer than {_MOST_LINE_BYTES} bytes")
                return  # counted by _know
            try:
                text = line.decode("utf-8").rstrip("\r\n")
            except UnicodeDecodeError as error:
                raise _bad(source, told["lines"], "not UTF-8") from error
            in_summary = in_summary or module.is_end(text)
            if in_summary:
                told["lost"] += module.skipped_events(text)
            elif text.strip():
                try:
                    event = module.parse(text)
                except ValueError as error:
                    raise _bad(source, told["lines"], str(error)) from error
                if event:
                    yield event


def _bad(source: _Source, number: int, what: str) -> DataError:
    return DataError(
        f"{source.path}: line {number}: {what}",
        f"mend or cut the line; it is read as {source.module.NAME}, see --format",
    )


def _reasons(source: _Source, joiner: Joiner, told: Counter[str]) -> list[str]:
    reasons = [f"{joiner.counts[name]} {what}" for name, what in LACKS.items()]
    reasons = [reason for reason in reasons if not reason.startswith("0 ")]
    if source.cut_line:
        reasons.append("1 line is cut short: the last, which is left out")
    if told["lost"]:
        reasons.append(f"{told['lost']} events were lost when the trace was recorded")
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
