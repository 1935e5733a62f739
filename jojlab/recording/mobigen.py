"""Writes a recording as a script of MobiGen's, which `mobibench -g` and `joj bench mobibench -g`
replay: a line for each call, `THREAD MICROSECONDS CALL ARGUMENTS`.

A script has one descriptor table and no seek. So every open file gets a number of its own, whatever
process it is of; copies of a descriptor are that file; and a read that begins where the script's
own position is not is written as pread. A file that was open before is opened by a line without
quotes, as MobiGen writes it. What a script cannot express is counted by name.

For that it follows the descriptor tables of the recorded program: what is open under which number,
in which process, at each call.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import BinaryIO

from jojlab.foundation.errors import UseError
from jojlab.recording.folder import Recording, Row, path_bytes

# Requests of ioctl(2) that are fcntl(F_SETFD) (asm-generic/ioctls.h).
_FIONCLEX, _FIOCLEX = 0x5450, 0x5451
_CLOSE_RANGE_CLOEXEC = 4
_COPIES = {"dup", "dup2", "dup3"}


@dataclass(eq=False)
class OpenFile:
    """An open file description (open(2)): copies of a descriptor share it."""

    number: int
    path: str
    flags: int
    position: int = 0
    # Descriptors that lead to it, over all processes.
    references: int = 0


@dataclass
class _Table:
    """The descriptors of a process: what they lead to, and which of them an execve closes."""

    files: dict[int, OpenFile] = field(default_factory=dict)
    closed_on_exec: set[int] = field(default_factory=set)

    def copy(self) -> _Table:
        for file in self.files.values():
            file.references += 1
        return _Table(dict(self.files), set(self.closed_on_exec))


class Descriptors:
    """The tables of all processes, as of the last call that was applied.

    Calls are applied in the order of their ends: a descriptor is there once the call has returned.
    """

    def __init__(self, threads: Iterable[Row]) -> None:
        self._threads = {row["thread_id"]: row for row in threads}
        self._tables: dict[int, _Table] = {}
        self._made = 0

    def _table(self, thread_id: int) -> _Table:
        """Return the table of a thread: its creator's, a copy of that, or an empty one."""
        if thread_id not in self._tables:
            row = self._threads[thread_id]
            creator = row["creator_id"]
            if creator is None:
                self._tables[thread_id] = _Table()
            elif row["shares_descriptors"]:
                self._tables[thread_id] = self._table(creator)
            else:
                self._tables[thread_id] = self._table(creator).copy()
        return self._tables[thread_id]

    def begin(self, thread_id: int) -> None:
        """Note that a thread was made now: from here on its table is its own."""
        self._table(thread_id)

    def file_at(self, thread_id: int, descriptor: int | None) -> OpenFile | None:
        """Return the file that was opened under a number; None where no recorded open made it."""
        return None if descriptor is None else self._table(thread_id).files.get(descriptor)

    def note_open(self, row: Row, path: str, flags: int) -> OpenFile:
        """Note that a call has opened a file."""
        file = OpenFile(self._made, path, flags)
        self._made += 1
        self._put(row["thread_id"], row["result"], file, closes=bool(flags & os.O_CLOEXEC))
        return file

    def note_open_before(self, row: Row) -> OpenFile:
        """Note a descriptor that was there at the beginning: a row of the table `descriptors`."""
        file = OpenFile(self._made, row["target"], row["flags"], row["position_bytes"])
        self._made += 1
        closes = bool(row["flags"] & os.O_CLOEXEC)
        self._put(row["thread_id"], row["descriptor"], file, closes=closes)
        return file

    def apply(self, row: Row) -> list[OpenFile]:
        """Apply a call that succeeded and opened no file; return the files it closed for good."""
        thread_id, name = row["thread_id"], row["name"]
        table = self._table(thread_id)
        closed: list[OpenFile | None] = []
        if name == "close":
            closed.append(self._drop(table, row["descriptor"]))
        elif name == "close_range":
            first, last = row["descriptor"], row["descriptor2"]
            for number in [n for n in table.files if first <= n and (n <= last or last < 0)]:
                if row["flags"] & _CLOSE_RANGE_CLOEXEC:
                    table.closed_on_exec.add(number)
                else:
                    closed.append(self._drop(table, number))
        elif name in ("execve", "execveat"):
            closed += [self._drop(table, number) for number in list(table.closed_on_exec)]
        elif name in _COPIES or (name == "fcntl" and row["command"].startswith("F_DUPFD")):
            closed.append(self._copy(table, row))
        elif name == "fcntl" and row["command"] == "F_SETFD":
            self._mark(table, row["descriptor"], closes=bool(row["flags"] & 1))
        elif name == "ioctl" and row["flags"] in (_FIOCLEX, _FIONCLEX):
            self._mark(table, row["descriptor"], closes=row["flags"] == _FIOCLEX)
        elif name in ("exit_group", "exit"):
            closed += self._end(thread_id, name)
        return [file for file in closed if file]

    def _put(self, thread_id: int, number: int, file: OpenFile, *, closes: bool) -> None:
        table = self._table(thread_id)
        self._drop(table, number)  # it was closed unseen
        table.files[number] = file
        file.references += 1
        self._mark(table, number, closes=closes)

    def _copy(self, table: _Table, row: Row) -> OpenFile | None:
        file = table.files.get(row["descriptor"])
        if row["result"] == row["descriptor"]:
            return None
        closed = self._drop(table, row["result"])
        if file:
            table.files[row["result"]] = file
            file.references += 1
            closes = row["command"] == "F_DUPFD_CLOEXEC" or (
                row["name"] == "dup3" and bool(row["flags"] & os.O_CLOEXEC)
            )
            self._mark(table, row["result"], closes=closes)
        return closed

    @staticmethod
    def _mark(table: _Table, number: int, *, closes: bool) -> None:
        (table.closed_on_exec.add if closes else table.closed_on_exec.discard)(number)

    @staticmethod
    def _drop(table: _Table, number: int) -> OpenFile | None:
        """Take a number away; return its file if nothing leads to it any more."""
        table.closed_on_exec.discard(number)
        file = table.files.pop(number, None)
        if file is None:
            return None
        file.references -= 1
        return None if file.references else file

    def _end(self, thread_id: int, name: str) -> list[OpenFile | None]:
        table = self._table(thread_id)
        others = [
            number
            for number, each in self._tables.items()
            if each is table and number != thread_id
            and self._threads[number]["pid"] != self._threads[thread_id]["pid"]
        ]  # fmt: skip
        if name == "exit" or others:
            return []
        return [self._drop(table, number) for number in list(table.files)]


NAME = "mobigen"
SUFFIX = ".mobigen"

# Numbers of a script begin behind those of the standard streams.
_FIRST_NUMBER = 3
_AT_REMOVEDIR = 0x200
_AT_SYMLINK_NOFOLLOW = 0x100
# The flags that the script's reader knows (agent/src/import/mobigen.rs), without access modes.
_FLAGS = {
    name: getattr(os, name)
    for name in (
        "O_APPEND", "O_CREAT", "O_DIRECT", "O_DIRECTORY", "O_DSYNC", "O_EXCL", "O_NOATIME",
        "O_SYNC", "O_TRUNC", "O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC",
    )
}  # fmt: skip
_ACCESS = {os.O_RDONLY: "O_RDONLY", os.O_WRONLY: "O_WRONLY", os.O_RDWR: "O_RDWR"}
_OPENS = {"open", "openat", "openat2", "creat"}
# The readers' limits: bytes of a call, and the end of a file.
_MOST_BYTES = 64 << 20
_MOST_OFFSET = 1 << 44
# In the place of a path that is not known, without quotes.
_UNNAMED = b"/opened-before"
_READS = {"read", "readv"}
_PREADS = {"pread64", "preadv", "preadv2"}
_WRITES = {"write", "writev"}
_PWRITES = {"pwrite64", "pwritev", "pwritev2"}
_BY_DESCRIPTOR = {"fsync", "fdatasync", "fstat"}
_LOOKS = {
    "access": "access", "faccessat": "access", "faccessat2": "access", "stat": "stat",
    "lstat": "lstat", "newfstatat": "stat", "statx": "stat", "unlink": "unlink",
    "unlinkat": "unlink",
}  # fmt: skip


@dataclass
class ExportCounts:
    """The share of a recording that a script has: lines written; calls that need none, as the
    numbers and offsets of other lines carry them (dup, lseek); and calls that it cannot express, by
    name. Calls about pipes, sockets and devices that were open before are of these. Files that were
    open before have a line each, which is no call's.
    """

    lines: int = 0
    opened_before: int = 0
    carried: Counter[str] = field(default_factory=Counter)
    left_out: Counter[str] = field(default_factory=Counter)


def write(recording: Recording, stream: BinaryIO) -> ExportCounts:
    """Write a recording as a script, and count what it lacks; UseError for one of SQL."""
    if recording.has_statements:
        raise UseError(f"{recording.folder}: a recording of SQL", "use --format sql")
    return _Script(recording).write(stream)


class _Script:
    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        # Of a script's opens of files that were open before, nothing tells the path.
        self._is_script = recording.manifest.recorder == NAME
        threads = list(recording.rows("threads"))
        self._children = {
            row["created_by_call_id"]: row["thread_id"]
            for row in threads
            if row["created_by_call_id"] is not None
        }
        self._descriptors = Descriptors(threads)
        self._paths = {
            row["path_id"]: path_bytes(row["path"]) for row in recording.rows("snapshot")
        }
        # Files that were open before, of which the script has no line yet.
        self._unopened = {
            self._descriptors.note_open_before(row).number
            for row in recording.rows("descriptors")
            if _is_file(row["target"])
        }
        # Where the script's own position in an open file is.
        self._told: dict[int, int] = {}
        self.exported = ExportCounts()

    def write(self, stream: BinaryIO) -> ExportCounts:
        begin_ns: int | None = None
        for row in self._recording.rows("calls"):
            begin_ns = row["begin_ns"] if begin_ns is None else begin_ns
            before = self.exported.lines
            was_open = self._descriptors.file_at(row["thread_id"], row["descriptor"]) is not None
            for text in self._lines(row):
                microseconds = max(0, row["begin_ns"] - begin_ns) // 1000
                stream.write(b"%d %d %s\n" % (row["thread_id"] + 1, microseconds, text))
                self.exported.lines += 1
            if self.exported.lines == before:
                is_carried = _is_carried(row) and was_open
                counts = self.exported.carried if is_carried else self.exported.left_out
                counts[row["name"]] += 1
            if (child := self._children.get(row["call_id"])) is not None:
                self._descriptors.begin(child)
        return self.exported

    def _lines(self, row: Row) -> Iterator[bytes]:
        """Yield the lines of a call; none where the script cannot express it."""
        name = row["name"]
        if row["result"] is None:
            if name in ("exit", "exit_group"):
                self._descriptors.apply(row)
            return
        failed = row["error"] is not None
        if name in _OPENS:
            yield from self._open(row, failed=failed)
        elif name in _LOOKS and row["path_id"] is not None:
            yield from self._look(row, failed=failed)
        elif name == "newfstatat" or name in _BY_DESCRIPTOR:
            number = row["directory"] if name == "newfstatat" else row["descriptor"]
            if file := self._descriptors.file_at(row["thread_id"], number):
                yield from self._open_before_line(file)
                call = b"fstat" if name == "newfstatat" else name.encode()
                yield b"%s %d %d" % (call, _number(file), -1 if failed else 0)
        elif name in _READS | _PREADS | _WRITES | _PWRITES:
            if file := self._descriptors.file_at(row["thread_id"], row["descriptor"]):
                yield from self._open_before_line(file)
                yield from self._move(row, file, failed=failed)
        elif not failed:
            if name == "lseek":
                self._seek(row)
            for file in self._descriptors.apply(row):
                yield from self._open_before_line(file)
                yield b"close %d" % _number(file)

    def _open_before_line(self, file: OpenFile) -> Iterator[bytes]:
        """Yield the line of a file that was open before, when it is first used."""
        if file.number in self._unopened:
            self._unopened.remove(file.number)
            self.exported.opened_before += 1
            yield b"open %s O_RDWR %d" % (_UNNAMED, _number(file))

    def _open(self, row: Row, *, failed: bool) -> Iterator[bytes]:
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC if row["name"] == "creat" else row["flags"]
        path = self._path(row["path_id"])
        quoted = None if path is None else b'"%s"' % path
        if flags & os.O_TMPFILE == os.O_TMPFILE:
            quoted = None
        elif row["path"] is None and self._is_script:
            quoted = _UNNAMED
        number = -1
        if not failed:
            # Whether the script has it or not: later calls are about it.
            file = self._descriptors.note_open(row, row["path"] or "", flags)
            number = _number(file) if quoted else -1
            if quoted is None:
                self._descriptors.apply({**row, "name": "close", "descriptor": row["result"]})
        access = _ACCESS.get(flags & os.O_ACCMODE)
        if quoted is None or access is None:
            return
        words = [access, *(word for word, bits in _FLAGS.items() if flags & bits == bits)]
        yield b"open %s %s %d" % (quoted, "|".join(words).encode(), number)

    def _look(self, row: Row, *, failed: bool) -> Iterator[bytes]:
        path = self._path(row["path_id"])
        flags = row["flags"] or 0
        if path is None or (row["name"] == "unlinkat" and flags & _AT_REMOVEDIR):
            return
        call = _LOOKS[row["name"]]
        if call == "stat" and flags & _AT_SYMLINK_NOFOLLOW:
            call = "lstat"
        yield b'%s "%s" %d' % (call.encode(), path, -1 if failed else 0)

    def _move(self, row: Row, file: OpenFile, *, failed: bool) -> Iterator[bytes]:
        """Yield the lines of a read or write, by position or by offset."""
        reads = row["name"] in _READS | _PREADS
        moves = row["name"] in _READS | _WRITES or row["offset_bytes"] == -1
        offset = file.position if moves else row["offset_bytes"]
        count = -1 if failed else row["result"]
        appends = not reads and bool(file.flags & os.O_APPEND)
        call = b"read" if reads else b"write"
        told = self._told.get(file.number, 0)
        at_position = moves and (appends or told == offset)
        if moves and not failed:
            file.position = offset + count
        if count > _MOST_BYTES or not 0 <= offset <= _MOST_OFFSET:
            return
        if at_position:
            self._told[file.number] = told + max(0, count)
            yield b"%s %d %d" % (call, _number(file), count)
        else:
            yield b"p%s %d %d %d" % (call, _number(file), offset, count)

    def _seek(self, row: Row) -> None:
        if file := self._descriptors.file_at(row["thread_id"], row["descriptor"]):
            file.position = row["result"]

    def _path(self, path_id: int | None) -> bytes | None:
        """Return a path that a line can hold: the quote that ends it stands before a blank."""
        path = None if path_id is None else self._paths[path_id]
        if path is None or b"\n" in path or b"\r" in path or b'" ' in path or b'"\t' in path:
            return None
        return path


def _is_carried(row: Row) -> bool:
    """Return whether a call only changes numbers and positions, which other lines carry."""
    if row["name"] == "fcntl":
        return bool(
            row["command"].startswith("F_DUPFD") or row["command"] in ("F_SETFD", "F_GETFD")
        )
    return row["name"] in {"lseek", "dup", "dup2", "dup3", "close"}


def _is_file(target: str) -> bool:
    """Return whether a descriptor's target can be a file; an import may not know it."""
    return not target or (target.startswith("/") and not target.startswith("/dev/"))


def _number(file: OpenFile) -> int:
    return file.number + _FIRST_NUMBER
