"""The cache folder: kernels, images, snapshots and results of cases, each under its content hash.

An entry appears by one rename and never changes afterwards. Builders of the same entry take turns
by a lock file. Everything here can be made again. A damaged entry is dropped. Emptying the folder
costs only time; entries that a running process uses are kept.

A process that was given an entry holds a shared lock (flock(2)) on its folder as long as it lives:
a run needs its kernel, image and snapshot to the end.

A value, such as the figures of a run, is kept beside the entries (`Cache.value`). What was made of
files of this machine is used for as long as none of them has changed. A file has not changed when
its stat data are those that were noted before it was read: device, inode, mode, size, mtime and
ctime. That is how git's index sees it, and so is the exception: a file that changed just before may
change again without another time, so nothing that was made of it is kept
(Documentation/technical/racy-git.txt of git). What a disk changes by itself is not seen.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import json
import os
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

import msgspec
from platformdirs import user_cache_path

from jojlab.foundation.errors import disk_errors

KINDS = (
    "agents",
    "packages",
    "kernels",
    "user-mode",
    "modules",
    "images",
    "seen",
    "inputs",
    "snapshots",
    "results",
    "analyses",
    "vega",
)
INDEX = "index.json"
Value = TypeVar("Value")


def sha256(content: bytes) -> str:
    """Return the SHA-256 of `content`."""
    return hashlib.sha256(content).hexdigest()


def sha256_file(path: Path) -> str:
    """Return the SHA-256 of a file's content, or raise OSError when it cannot be read."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@dataclass(frozen=True)
class Cache:
    """One cache folder; two processes may use it at once."""

    root: Path

    @classmethod
    def default(cls) -> Cache:
        """Return the user's cache: JOJ_CACHE, else XDG_CACHE_HOME/jojlab, else ~/.cache/jojlab."""
        if own := os.environ.get("JOJ_CACHE"):
            return cls(Path(own).absolute())
        return cls(user_cache_path("jojlab"))

    def folder(self, kind: str) -> Path:
        """Return the folder of the entries of one of KINDS; make it when it is missing."""
        path = self.root / kind
        with disk_errors(path):
            path.mkdir(parents=True, exist_ok=True)
        return path

    @contextlib.contextmanager
    def lock(self, name: str) -> Iterator[None]:
        """Hold the lock `name` against other threads and processes; it ends with its holder."""
        path = self.folder("locks") / name
        with disk_errors(path):
            file = path.open("w")
        with file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    @contextlib.contextmanager
    def work_dir(self) -> Iterator[Path]:
        """Yield a private folder on the cache's disk, removed at the end.

        Folders that killed processes left are removed too: the living hold a lock on theirs.
        """
        with self.lock("work"):
            parent = self.folder("work")
            for left in parent.iterdir():
                _remove_unless_locked(left)  # its owner may be removing it just now
            with disk_errors(parent):
                path = Path(tempfile.mkdtemp(dir=parent))
            descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        try:
            with disk_errors(parent):
                yield path
        finally:
            shutil.rmtree(path, ignore_errors=True)
            os.close(descriptor)

    def entry(
        self,
        kind: str,
        key: str,
        build: Callable[[Path], None],
        is_sound: Callable[[Path], bool] = lambda _: True,
    ) -> Path:
        """Return the folder of the entry; `build` fills an empty one when there is none yet, or it
        is damaged.

        Nobody who empties the cache takes it away for as long as this process lives.
        """
        final = self.folder(kind) / key
        while not lock_entry(final):
            with self.lock(f"{kind}-{key}"):
                if not final.is_dir():
                    self._publish(final, build)
        if is_sound(final):
            return final
        self.drop(kind, key)
        return self.entry(kind, key, build)

    def _publish(self, final: Path, build: Callable[[Path], None]) -> None:
        """Builds aside, then moves into place; a second builder keeps the first equal entry."""
        with self.work_dir() as work:
            entry = work / "entry"
            entry.mkdir()
            build(entry)
            try:
                _move(entry, final)
            except OSError as error:
                if error.errno not in (errno.EEXIST, errno.ENOTEMPTY):
                    raise

    def drop(self, kind: str, key: str) -> None:
        """Remove an entry even if it is in use; readers see it whole or not at all."""
        with self.work_dir() as work, contextlib.suppress(FileNotFoundError):
            _move(self.folder(kind) / key, work / "dropped")

    def lookup(self, key: str) -> dict[str, bytes] | None:
        """Return the stored results of a case, checked against their hashes; a damaged entry is
        dropped.

        Returns file contents by name, or None when the case must be run.
        """
        folder = self.folder("results") / key
        with entry_locked(folder) as there:
            if not there:
                return None
            try:
                index = msgspec.json.decode((folder / INDEX).read_bytes(), type=dict[str, str])
                files = {name: (folder / name).read_bytes() for name, _ in index.items()}
                if all(sha256(content) == index[name] for name, content in files.items()):
                    return files
            except (msgspec.MsgspecError, UnicodeDecodeError, ValueError, RecursionError):
                pass
            except (FileNotFoundError, IsADirectoryError):
                pass
        self.drop("results", key)
        return None

    def has(self, key: str) -> bool:
        """Return whether there are results of a case; they are not checked."""
        return (self.root / "results" / key).is_dir()

    def store(self, key: str, files: Mapping[str, bytes]) -> None:
        """Keep the results of a case under its content hash."""

        def build(folder: Path) -> None:
            for name, content in files.items():
                (folder / name).write_bytes(content)
            index = {name: sha256(content) for name, content in sorted(files.items())}
            (folder / INDEX).write_text(json.dumps(index, indent=1))

        self._publish(self.folder("results") / key, build)

    def value(
        self, kind: str, key: str, type_: type[Value], make: Callable[[Sources], Value]
    ) -> Value:
        """Return the value of one of KINDS that `make` returned before, if no file has changed that
        it noted then; else make it.

        `type_` is one that msgspec reads and writes. `key` is a content hash: it says all that the
        value depends on beside files. A damaged record is not used, and one that cannot be written
        is not kept, without a word: it only saves time.
        """
        path = self.root / kind / key
        if (record := _read_record(path, type_)) is not None:
            return record.value
        now_ns = time.time_ns()
        sources = Sources()
        value = make(sources)
        if sources.are_settled(now_ns):
            _write_record(path, _Record(sources.identities, value))
        return value

    def sizes(self) -> dict[str, int]:
        """Return the bytes on disk of each of KINDS."""
        return {
            kind: sum(_disk_bytes(path) for path in (self.root / kind).rglob("*")) for kind in KINDS
        }

    def empty(self) -> list[Path]:
        """Remove every unused entry, and return those in use, whose processes continue.

        Of a folder that is linked in from elsewhere, the link alone is removed.
        """
        left = []
        with self.work_dir() as work:
            for kind in KINDS:
                if (self.root / kind).is_symlink():
                    (self.root / kind).unlink(missing_ok=True)
                    continue
                for path in sorted(self.folder(kind).iterdir()):
                    if path.is_symlink():
                        path.unlink(missing_ok=True)
                        continue
                    with entry_unused(path) as free:
                        if free:
                            with contextlib.suppress(FileNotFoundError):  # dropped meanwhile
                                path.rename(work / f"{kind}-{path.name}")
                        elif path.exists():
                            left.append(path)
        return left


def _disk_bytes(path: Path) -> int:
    try:
        return path.lstat().st_blocks * 512
    except FileNotFoundError:  # dropped meanwhile
        return 0


def _move(source: Path, target: Path) -> None:
    """Rename a folder, also to or from a kind that is linked in from another filesystem.

    There too it appears, and disappears, at once.
    """
    try:
        source.rename(target)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        with (
            tempfile.TemporaryDirectory(dir=target.parent, prefix=".") as beside_target,
            tempfile.TemporaryDirectory(dir=source.parent, prefix=".") as beside_source,
        ):
            shutil.copytree(source, Path(beside_target) / "copy")
            source.rename(Path(beside_source) / "moved")
            (Path(beside_target) / "copy").rename(target)


def _remove_unless_locked(path: Path) -> None:
    with entry_unused(path) as free:
        if free and path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        elif free:
            path.unlink(missing_ok=True)


_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY

# The descriptors of the held entries; a child process has none of them.
_locked: dict[Path, int] = {}
_lock = threading.Lock()


def lock_entry(entry: Path) -> bool:
    """Hold the folder `entry` from here on; False when there is none, or it was just removed."""
    with _lock:
        if entry in _locked and _leads_to(entry, _locked[entry]):
            return True
        descriptor = _lock_shared(entry)
        if descriptor is None:
            return False
        if entry in _locked:  # what stood there before was dropped
            os.close(_locked[entry])
        _locked[entry] = descriptor
        return True


@contextlib.contextmanager
def entry_locked(entry: Path) -> Iterator[bool]:
    """Hold the folder `entry` within the block alone; False when there is none."""
    descriptor = _lock_shared(entry)
    try:
        yield descriptor is not None
    finally:
        if descriptor is not None:
            os.close(descriptor)


@contextlib.contextmanager
def entry_unused(path: Path) -> Iterator[bool]:
    """Yield whether `path` is unused; within the block, no other process can take it.

    False too when it is gone. A file is as good as a folder.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:  # gone, or another user's
        yield False
        return
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        free = _leads_to(path, descriptor)
    except BlockingIOError:
        free = False
    try:
        yield free
    finally:
        os.close(descriptor)


def _lock_shared(entry: Path) -> int | None:
    """Open the folder with a shared lock; None when there is none, or it was just removed."""
    try:
        descriptor = os.open(entry, _DIRECTORY)
    except FileNotFoundError:
        return None
    # Whoever holds it exclusively is about to move it away, which is soon done.
    fcntl.flock(descriptor, fcntl.LOCK_SH)
    if _leads_to(entry, descriptor):
        return descriptor
    os.close(descriptor)
    return None


def _leads_to(path: Path, descriptor: int) -> bool:
    """Return whether the name is still that of the opened folder."""
    try:
        return os.path.samestat(path.lstat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False


# Device, inode, mode, size, mtime_ns, ctime_ns; None for what is not there.
Identity = tuple[int, int, int, int, int, int] | None

# The coarsest times of a file that a disk keeps: FAT's.
_RACY_NS = 2_000_000_000
_HASH_BYTES = hashlib.sha256().digest_size


class Sources:
    """The files and folders that something is being made of.

    A folder stands for the names in it, not for the contents of its files.
    """

    def __init__(self) -> None:
        self.identities: dict[str, Identity] = {}

    def add(self, paths: Iterable[Path]) -> None:
        """Note files as they are now: before they are read."""
        for path in paths:
            self.identities.setdefault(str(path), identity(path))

    def are_settled(self, now_ns: int) -> bool:
        """Return whether every file is as it was noted, and none changed just before `now_ns`."""
        return all(
            noted == identity(Path(path)) and (noted is None or max(noted[4:]) < now_ns - _RACY_NS)
            for path, noted in self.identities.items()
        )


class _Record(msgspec.Struct, Generic[Value]):
    sources: dict[str, Identity]
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


def _read_record(path: Path, type_: type[Value]) -> _Record[Value] | None:
    """Return the record; None when there is none that is whole, of the type and of the files."""
    try:
        content = path.read_bytes()
    except OSError:
        return None
    checksum, payload = content[:_HASH_BYTES], content[_HASH_BYTES:]
    if checksum != record_checksum(path.name, payload):
        return None
    try:
        record = msgspec.msgpack.decode(payload, type=_Record[type_])  # type: ignore[valid-type]
    except (msgspec.MsgspecError, RecursionError):
        return None
    same = all(noted == identity(Path(source)) for source, noted in record.sources.items())
    return record if same else None


def _write_record(path: Path, record: _Record[Value]) -> None:
    payload = msgspec.msgpack.encode(record)
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(dir=path.parent)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(record_checksum(path.name, payload) + payload)
            os.replace(name, path)
        except OSError:
            os.unlink(name)


def record_checksum(key: str, payload: bytes) -> bytes:
    """Return what stands before the payload of a record, so that damage is noticed."""
    return hashlib.sha256(key.encode() + payload).digest()
