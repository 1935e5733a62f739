"""Keeps what was computed of captures, for as long as nothing has changed that it depends on.

Captures never change, and most of the time of joj show is compiling and running the same queries
over them. A value is kept under the hash of every file of the captures, of the program that
computed it. An entry that is damaged or cannot be read is not used; one that cannot be
written is not kept, and nobody is told: it only saves time.

The hashes of a large capture are remembered for as long as none of its files has changed by its
stat data (jojlab/foundation/cache.py), so that an answer that is kept does not read gigabytes.
What computes an answer reads the files, and their hashes with them.

The hash of what computes answers (`program`) is part of every key.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import msgspec

from jojlab.foundation.cache import Seen, remembered
from jojlab.trace.capture import Captured
from jojlab.trace.checksums import LARGE_BYTES, files_of, program
from jojlab.trace.dataset import Dataset

Value = TypeVar("Value")

# The folder beside the values that has what is known of captures.
_SEEN = "seen"
_HASH_BYTES = hashlib.sha256().digest_size


@dataclass(frozen=True)
class Kept:
    """A folder of kept values; the user's own, as what is in it is believed."""

    folder: Path

    def value(
        self, data: Dataset, what: str, kind: type[Value], compute: Callable[[], Value]
    ) -> Value:
        """Return `what` of the captures of `data`, of the class `kind`: as kept, or computed."""
        key = self._key(data, what)
        if key is None:
            return compute()
        if (found := self._read(key, kind)) is not None:
            return found
        computed = compute()
        self._write(key, computed)
        return computed

    def _key(self, data: Dataset, what: str) -> str | None:
        """Return the hash of everything the value depends on; None when a file cannot be read."""
        digest = hashlib.sha256(f"{what}\n{program()}\n".encode())
        try:
            for each in data.captured:
                digest.update(f"{len(each.case_id)} {each.case_id} {each.seed}\n".encode())
                for path, content in self._hashes(each).items():
                    digest.update(f"{path} {content}\n".encode())
        except OSError:
            return None
        return digest.hexdigest()

    def _hashes(self, capture: Captured) -> dict[str, str]:
        """Return the hash of every file by its path in the capture; OSError when one is gone."""
        found = files_of(capture.folder)
        if sum(path.stat().st_size for path in found) < LARGE_BYTES:
            return _by_name(capture)

        def read(seen: Seen) -> dict[str, str]:
            # A file that comes or goes changes the folder that it is in.
            seen.add({path.parent for path in found} | {capture.folder, *found})
            return _by_name(capture)

        where = hashlib.sha256(str(capture.folder.resolve()).encode()).hexdigest()
        return remembered(self.folder / _SEEN, where, dict[str, str], read)

    def _read(self, key: str, kind: type[Value]) -> Value | None:
        """Return the entry; None when there is none that is whole and of that class."""
        try:
            content = (self.folder / key).read_bytes()
        except OSError:
            return None
        checksum, payload = content[:_HASH_BYTES], content[_HASH_BYTES:]
        if checksum != _checksum(key, payload):
            return None
        try:
            return msgspec.msgpack.decode(payload, type=kind)
        except msgspec.MsgspecError:
            return None

    def _write(self, key: str, value: object) -> None:
        with contextlib.suppress(OSError):
            payload = msgspec.msgpack.encode(value)
            self.folder.mkdir(parents=True, exist_ok=True)
            descriptor, name = tempfile.mkstemp(dir=self.folder)
            try:
                with os.fdopen(descriptor, "wb") as file:
                    file.write(_checksum(key, payload) + payload)
                os.replace(name, self.folder / key)
            except OSError:
                os.unlink(name)


def _by_name(capture: Captured) -> dict[str, str]:
    """Return the hashes of the files as they are now."""
    return {
        path.relative_to(capture.folder).as_posix(): content
        for path, content in capture.hashes.items()
    }


def _checksum(key: str, payload: bytes) -> bytes:
    return hashlib.sha256(key.encode() + payload).digest()
