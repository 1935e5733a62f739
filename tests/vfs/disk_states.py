"""Makes what a power cut may leave of a folder: any version of each sector since its file's last
sync.

The calls that changed the folder were logged by call_log.c. A name that was made or deleted since
the folder was synced is there or not, whatever became of its file: POSIX promises no more.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePath

SECTOR_BYTES = 512
_ENTRY = struct.Struct("=IIqQ")


@dataclass(frozen=True)
class Call:
    """A call: w(rite), t(runcate), s(ync), u(nlink) or c(reate) of a file of the folder."""

    kind: str
    name: str
    offset: int
    data: bytes


def read_calls(log: Path) -> list[Call]:
    """Return all calls of a log."""
    return list(_calls(log.read_bytes()))


def _calls(data: bytes) -> Iterator[Call]:
    at = 0
    while at < len(data):
        kind, name_bytes, offset, length = _ENTRY.unpack_from(data, at)
        at += _ENTRY.size
        name = data[at : at + name_bytes].decode()
        at += name_bytes
        body = data[at : at + length] if chr(kind) == "w" else b""
        at += len(body)
        yield Call(chr(kind), name, offset, body)


@dataclass
class File:
    """A file: what is on the disk for sure, and what was called since; whether its name is."""

    durable: bytearray = field(default_factory=bytearray)
    has_name: bool = False
    pending: list[Call] = field(default_factory=list)

    def settle(self) -> None:
        """Make all that was written durable."""
        for call in self.pending:
            _apply(self.durable, call)
        self.pending.clear()


def _apply(data: bytearray, call: Call) -> None:
    if call.kind == "t":
        del data[call.offset :]
        data.extend(bytes(call.offset - len(data)))
        return
    end = call.offset + len(call.data)
    data.extend(bytes(max(0, end - len(data))))
    data[call.offset : end] = call.data


def _is_in(name: str, folder: str) -> bool:
    return PurePath(name).parent == PurePath(folder)


class Disk:
    """A folder, and those in it, between two syncs."""

    def __init__(self, begin: dict[str, bytes], *, syncs_names: bool = False) -> None:
        # Of a new file, with its own sync: so it is on the filesystems of Linux.
        self.syncs_names = syncs_names
        self.files = {name: File(bytearray(data), has_name=True) for name, data in begin.items()}
        self.unlinked: dict[str, File] = {}

    def see(self, call: Call) -> None:
        """Follow one call."""
        if call.kind == "c":
            self.files[call.name] = File()
        elif call.kind == "u":
            if (file := self.files.pop(call.name, None)) and file.has_name:
                self.unlinked[call.name] = file
        elif call.kind == "s" and (file := self.files.get(call.name)):
            file.settle()
            file.has_name |= self.syncs_names
        elif call.kind == "s":
            for name, file in self.files.items():
                file.has_name |= _is_in(name, call.name)
            for name in [name for name in self.unlinked if _is_in(name, call.name)]:
                del self.unlinked[name]
        else:
            self.files[call.name].pending.append(call)

    def cut(self, draw: random.Random, *, torn: bool) -> dict[str, bytes]:
        """Return one of the states that a power cut leaves now."""
        files = {name: file for name, file in self.unlinked.items() if draw.random() < 0.5}
        for name, file in self.files.items():
            if file.has_name or draw.random() < 0.5:
                files[name] = file
        return {name: _cut_file(file, draw, torn=torn) for name, file in files.items()}


def _cut_file(file: File, draw: random.Random, *, torn: bool) -> bytes:
    data = bytearray(file.durable)
    share = draw.choice((0.0, 0.1, 0.5, 0.9, 1.0))
    damage = 0.2 if torn and draw.random() < 0.5 else 0.0
    for call in file.pending:
        if call.kind == "t":
            if draw.random() < share:
                _apply(data, call)
            continue
        for begin in range(0, len(call.data), SECTOR_BYTES):
            if draw.random() >= share:
                continue
            sector = call.data[begin : begin + SECTOR_BYTES]
            if draw.random() < damage:
                sector = draw.randbytes(len(sector))
            _apply(data, Call("w", call.name, call.offset + begin, sector))
    return bytes(data)


def write_state(folder: Path, state: dict[str, bytes]) -> None:
    """Make the folder this state. Files keep their inodes: others wait in a folder beside it."""
    aside = folder.with_name(f"{folder.name}-aside")
    aside.mkdir(exist_ok=True)
    for source, target in ((aside, folder), (folder, aside)):
        for path in [path for path in source.rglob("*") if path.is_file()]:
            place = target / path.relative_to(source)
            if source is aside or str(path.relative_to(source)) not in state:
                place.parent.mkdir(exist_ok=True)
                path.replace(place)
    for name, data in state.items():
        path = folder / name
        with path.open("r+b" if path.exists() else "w+b") as file:
            file.truncate(0)
            file.write(data)
