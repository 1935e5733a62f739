"""Runs the agent's import of a trace into a recording, and tells what it made of it."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from jojlab.foundation.errors import INCOMPLETE
from jojlab.foundation.places import agent_path
from jojlab.foundation.printable import json_text, printable

# Names of calls that are told one by one; the rest is summed up.
_TOLD_NAMES = 10


class ImportCounts(msgspec.Struct):
    """What the agent counted, and what it could not read (agent/src/import/mod.rs: Imported)."""

    lines: int
    calls: int
    threads: int
    left_out: dict[str, int]
    bad_lines: int
    bad: list[str]
    reasons: list[str]
    notes: list[str]


def import_trace(
    form: str, files: Sequence[Path], folder: Path, *options: str, as_json: bool
) -> int:
    """Import files of a form into a new folder; print the counts; return the exit code."""
    command = [str(agent_path()), "import", "--output", str(folder), *options]
    command += ["--", form, *map(str, files)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode not in (0, INCOMPLETE):
        return 128 - done.returncode if done.returncode < 0 else done.returncode
    told = msgspec.json.decode(done.stdout, type=ImportCounts)
    if as_json:
        print(json_text({"recording": str(folder), **msgspec.to_builtins(told)}))
    else:
        print(printable("\n".join(_lines(told, folder))))
    return done.returncode


def _lines(told: ImportCounts, folder: Path) -> Iterator[str]:
    yield f"{told.lines} lines: {told.calls} calls of {told.threads} threads"
    left_out = sorted(told.left_out.items(), key=lambda it: (-it[1], it[0]))
    for name, count in left_out[:_TOLD_NAMES]:
        yield f"left out: {count} {name}"
    if more := left_out[_TOLD_NAMES:]:
        yield f"left out: {sum(count for _, count in more)} of {len(more)} other names"
    for line in told.bad:
        yield f"not read: {line}"
    if (more_lines := told.bad_lines - len(told.bad)) > 0:
        yield f"not read: {more_lines} more lines"
    for note in told.notes:
        yield f"note: {note}"
    for reason in told.reasons:
        yield f"incomplete: {reason}"
    yield f"recording  {folder}"
