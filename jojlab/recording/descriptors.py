"""Follows the descriptor tables of a recorded program: what is open under which number, in which
process, at each call.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, field

from jojlab.recording.folder import Row

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
        """The table of a thread, which begins with its creator's when it is first asked for."""
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

    def at(self, thread_id: int, descriptor: int | None) -> OpenFile | None:
        """The file that was opened under a number; None where no recorded open made it."""
        return None if descriptor is None else self._table(thread_id).files.get(descriptor)

    def opened(self, row: Row, path: str, flags: int) -> OpenFile:
        """A call has opened a file."""
        file = OpenFile(self._made, path, flags)
        self._made += 1
        self._put(row["thread_id"], row["result"], file, closes=bool(flags & os.O_CLOEXEC))
        return file

    def open_before(self, row: Row) -> OpenFile:
        """A descriptor was there at the beginning: a row of the table `descriptors`."""
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
