"""Opens the folder of a recording (docs/recording.md) and reads its tables as rows.

Also runs the agent's import of a trace into a recording, and prints what came of it.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from jojlab.foundation.document import conform
from jojlab.foundation.errors import FINE, INCOMPLETE, UseError
from jojlab.foundation.lazy import pa, pc, pq
from jojlab.foundation.places import agent_path
from jojlab.foundation.printable import json_text, plural, printable
from jojlab.model.workloads.sqlite import SQL_RECORDED

VERSION = 1

Row = dict[str, Any]

# A recording may be a stranger's: a file of some KiB can stand for more than any memory holds. Rows
# come some at a time, and a column of them, as of a whole segment, has no more bytes than this.
_BATCH_ROWS = 8192
_MOST_COLUMN_BYTES = 1 << 30


class RecordingManifest(msgspec.Struct):
    """The keys that joj reads of a recording's manifest; others are let be."""

    recording_version: int | None = None
    # What made it: ptrace, ebpf, sqlite, or the format that was imported.
    recorder: str = ""
    incomplete_reasons: list[str] = []
    # Of SQL: files of databases in which something was before it began.
    there_before: list[str] = []


@dataclass(frozen=True)
class Recording:
    """The tables of a recording, and what its manifest says."""

    folder: Path
    manifest: RecordingManifest

    @classmethod
    def open(cls, folder: Path) -> Recording:
        """Open a recording; raises UseError for a folder that is none, or of another version."""
        if not (folder / "manifest.parquet").is_file():
            what = "no recording" if folder.is_dir() else "no such folder"
            raise UseError(f"{folder}: {what}", "name a folder that joj record wrote")
        try:
            rows = _rows(folder / "manifest.parquet")
            entries = {row["key"]: msgspec.json.decode(row["value"]) for row in rows}
            manifest = conform(entries, RecordingManifest)
        except (OSError, pa.ArrowException, KeyError, ValueError, msgspec.MsgspecError) as error:
            raise UseError(
                f"{folder}: no recording: {error}", "name a folder that joj record wrote"
            ) from error
        except RecursionError as error:
            raise UseError(
                f"{folder}: no recording: its manifest is nested too deep", "record it again"
            ) from error
        if manifest.recording_version != VERSION:
            raise UseError(
                f"{folder}: recording_version is {manifest.recording_version}, and {VERSION} is "
                "read",
                "record it again with this joj",
            )
        return cls(folder, manifest)

    @property
    def has_statements(self) -> bool:
        """Return whether it holds statements of SQL in place of system calls."""
        return self.manifest.recorder == "sqlite"

    def refuse_sql(self, where: str) -> None:
        """Raise UseError where it cannot be replayed as system calls."""
        if self.has_statements:
            raise UseError(
                f"{where}: {self.folder}: a recording of SQL, which has no system calls",
                f"joj export {self.folder} --format sql -o SCRIPTS, which joj bench sql and "
                f"--workload {SQL_RECORDED} --scripts SCRIPTS play",
            )

    @property
    def incomplete_reasons(self) -> list[str]:
        """Return why it is incomplete; empty if it is not."""
        return self.manifest.incomplete_reasons

    def rows(self, table: str) -> Iterator[Row]:
        """Yield the rows of a table, segment by segment; raises UseError for an unreadable one."""
        whole = self.folder / f"{table}.parquet"
        segments = (self.folder / table).glob("*.parquet")
        # Their numbers have six digits, or more beyond a million.
        in_order = sorted(segments, key=lambda segment: (len(segment.name), segment.name))
        for file in [whole] if whole.exists() else in_order:
            try:
                yield from _rows(file)
            except (OSError, ValueError, pa.ArrowException) as error:
                raise UseError(f"{file}: not readable: {error}", "record it again") from error


def _rows(file: Path) -> Iterator[Row]:
    """Yield the rows of a file, some at a time; raises ValueError where they are none of ours."""
    names = [field.name for field in pq.read_schema(file) if pa.types.is_string(field.type)]
    with pq.ParquetFile(file, read_dictionary=names) as table:
        for number in range(table.metadata.num_row_groups):
            group = table.metadata.row_group(number)
            for column in range(group.num_columns):
                if group.column(column).total_uncompressed_size > _MOST_COLUMN_BYTES:
                    name = group.column(column).path_in_schema
                    raise ValueError(f"column {name} has more than {_MOST_COLUMN_BYTES} bytes")
        for batch in table.iter_batches(_BATCH_ROWS):
            for name in names:
                texts = batch.column(name).dictionary
                longest = pc.max(pc.binary_length(texts)).as_py() or 0
                if longest * batch.num_rows > _MOST_COLUMN_BYTES:
                    raise ValueError(f"column {name} has texts of {longest} bytes")
            yield from batch.to_pylist()


_ESCAPED = re.compile(rb"\\(\\|x[0-9a-f]{2})")


def path_bytes(text: str) -> bytes:
    r"""Return the bytes that a text column stands for: `\\` is a backslash, `\xNN` a byte."""

    def plain(escape: re.Match[bytes]) -> bytes:
        code = escape[1]
        return code if code == b"\\" else bytes([int(code[1:], 16)])

    return _ESCAPED.sub(plain, text.encode())


# Names of calls that are told one by one; the rest is summed up.
_TOLD_NAMES = 10


class ImportCounts(msgspec.Struct):
    """Counts of what the agent read and what it could not (agent/src/import/mod.rs: Imported)."""

    lines: int
    calls: int
    threads: int
    left_out: dict[str, int]
    bad_lines: int
    bad: list[str]
    reasons: list[str]
    notes: list[str]


def import_files(
    form: str, files: Sequence[Path], folder: Path, *options: str
) -> ImportCounts | int:
    """Import files into a new folder; return the counts, or the exit code of a failed agent."""
    command = [str(agent_path()), "import", "--output", str(folder), *options]
    command += ["--", form, *map(str, files)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode in (FINE, INCOMPLETE):
        return msgspec.json.decode(done.stdout, type=ImportCounts)
    return 128 - done.returncode if done.returncode < 0 else done.returncode


def import_trace(
    form: str, files: Sequence[Path], folder: Path, *options: str, as_json: bool
) -> int:
    """Import files of a form into a new folder; print the counts; return the exit code."""
    counts = import_files(form, files, folder, *options)
    if isinstance(counts, int):
        return counts
    if as_json:
        print(json_text({"recording": str(folder), **msgspec.to_builtins(counts)}))
    else:
        print(printable("\n".join(_lines(counts, folder))))
    return INCOMPLETE if counts.reasons else FINE


def _lines(counts: ImportCounts, folder: Path) -> Iterator[str]:
    lines, calls = plural(counts.lines, "line"), plural(counts.calls, "call")
    yield f"{lines}: {calls} of {plural(counts.threads, 'thread')}"
    left_out = sorted(counts.left_out.items(), key=lambda it: (-it[1], it[0]))
    for name, count in left_out[:_TOLD_NAMES]:
        yield f"left out: {count} {name}"
    if more := left_out[_TOLD_NAMES:]:
        yield f"left out: {sum(count for _, count in more)} of {plural(len(more), 'other name')}"
    for line in counts.bad:
        yield f"not read: {line}"
    if (more_lines := counts.bad_lines - len(counts.bad)) > 0:
        yield f"not read: {plural(more_lines, 'more line')}"
    for note in counts.notes:
        yield f"note: {note}"
    for reason in counts.reasons:
        yield f"incomplete: {reason}"
    yield f"recording  {folder}"
