"""Remembers what was made of files of this machine, for as long as none of them has changed.

A file has not changed when its stat data are those that were noted before it was read: device,
inode, mode, size, mtime and ctime. That is how git's index sees it, and so is the exception: a file
that changed just before may change again without another time, so nothing that was made of it is
remembered (Documentation/technical/racy-git.txt of git). What a disk changes by itself is not seen.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Generic, TypeVar

import msgspec

from jojlab.foundation.hashing import sha256

Value = TypeVar("Value")
# Device, inode, mode, size, mtime_ns, ctime_ns; None for what is not there.
Identity = tuple[int, int, int, int, int, int] | None

# The coarsest times of a file that a disk keeps: FAT's.
_RACY_NS = 2_000_000_000


class Seen:
    """The files and folders that something is being made of.

    A folder stands for the names in it, not for the contents of its files.
    """

    def __init__(self) -> None:
        self.identities: dict[str, Identity] = {}

    def add(self, paths: Iterable[Path]) -> None:
        """Note files as they are now: before they are read."""
        for path in paths:
            self.identities.setdefault(str(path), identity(path))

    def is_settled(self, now_ns: int) -> bool:
        """Whether every file is as it was noted, and none changed just before `now_ns`."""
        return all(
            noted == identity(Path(path)) and (noted is None or max(noted[4:]) < now_ns - _RACY_NS)
            for path, noted in self.identities.items()
        )


class _Record(msgspec.Struct, Generic[Value]):
    seen: dict[str, Identity]
    value: Value


def identity(path: Path) -> Identity:
    """Return what tells one state of a file from another; of a link, that of what it leads to."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return (
        found.st_dev, found.st_ino, found.st_mode, found.st_size, found.st_mtime_ns,
        found.st_ctime_ns,
    )  # fmt: skip


def remembered(folder: Path, key: str, kind: type[Value], make: Callable[[Seen], Value]) -> Value:
    """Return what `make` returned before, if no file that it noted has changed; else make it.

    `kind` is a class that msgspec reads and writes. `key` is a file name in `folder`, and says all
    that the value depends on beside files. A record that cannot be written is not kept, as it only
    saves time.
    """
    if (record := _read(folder / key, kind)) is not None:
        return record.value
    now_ns = time.time_ns()
    seen = Seen()
    value = make(seen)
    if seen.is_settled(now_ns):
        _write(folder / key, _Record(seen.identities, value))
    return value


def _read(path: Path, kind: type[Value]) -> _Record[Value] | None:
    try:
        content = path.read_bytes()
    except OSError:
        return None
    told, _, payload = content.partition(b"\n")
    if told != sha256(payload).encode():
        return None
    try:
        record = msgspec.json.decode(payload, type=_Record[kind])  # type: ignore[valid-type]
    except (msgspec.MsgspecError, RecursionError):
        return None
    same = all(noted == identity(Path(path)) for path, noted in record.seen.items())
    return record if same else None


def _write(path: Path, record: _Record[Value]) -> None:
    payload = msgspec.json.encode(record)
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(dir=path.parent)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(sha256(payload).encode() + b"\n" + payload)
            os.replace(name, path)
        except OSError:
            os.unlink(name)
