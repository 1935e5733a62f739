"""The cache folder: kernels, images, snapshots and results of cases, each under its content hash.

An entry appears by one rename and never changes afterwards. Builders of the same entry take turns
by a lock file. Everything here can be made again. A damaged entry is dropped. Emptying the folder
costs only time; entries that a running process uses are kept (in_use.py).
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec
from platformdirs import user_cache_path

from jojlab.foundation import in_use
from jojlab.foundation.disk import disk_errors
from jojlab.foundation.hashing import sha256

KINDS = (
    "packages",
    "kernels",
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


@dataclass(frozen=True)
class Cache:
    """One cache folder; two processes may use it at once."""

    root: Path

    @classmethod
    def default(cls) -> Cache:
        """The user's cache: $JOJ_CACHE, else $XDG_CACHE_HOME/jojlab, else ~/.cache/jojlab."""
        if own := os.environ.get("JOJ_CACHE"):
            return cls(Path(own).absolute())
        return cls(user_cache_path("jojlab"))

    @property
    def analyses(self) -> Path:
        """Where figures of captures are kept (jojlab/trace/kept.py), if it can be made."""
        return self.root / "analyses"

    @property
    def seen(self) -> Path:
        """Where it is kept what images were made of (jojlab/foundation/remembered.py)."""
        return self.root / "seen"

    def folder(self, kind: str) -> Path:
        """Where the entries of one of KINDS are; made when it is missing."""
        path = self.root / kind
        with disk_errors(path):
            path.mkdir(parents=True, exist_ok=True)
        return path

    @contextlib.contextmanager
    def lock(self, name: str) -> Iterator[None]:
        """Holds the lock `name` against other threads and processes; ends with its holder."""
        path = self.folder("locks") / name
        with disk_errors(path):
            file = path.open("w")
        with file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    @contextlib.contextmanager
    def work_dir(self) -> Iterator[Path]:
        """A private folder on the cache's disk, removed at the end.

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

    def entry(self, kind: str, key: str, build: Callable[[Path], None]) -> Path:
        """The folder of the entry; `build` fills an empty one when there is none yet.

        Nobody who empties the cache takes it away for as long as this process lives.
        """
        final = self.folder(kind) / key
        while not in_use.hold(final):
            with self.lock(f"{kind}-{key}"):
                if not final.is_dir():
                    self._publish(final, build)
        return final

    def _publish(self, final: Path, build: Callable[[Path], None]) -> None:
        """Builds aside, then moves into place; a second builder keeps the first equal entry."""
        with self.work_dir() as work:
            made = work / "entry"
            made.mkdir()
            build(made)
            try:
                _move(made, final)
            except OSError as error:
                if error.errno not in (errno.EEXIST, errno.ENOTEMPTY):
                    raise

    def drop(self, kind: str, key: str) -> None:
        """Removes an entry even if it is in use; readers see it whole or not at all."""
        with self.work_dir() as work, contextlib.suppress(FileNotFoundError):
            _move(self.folder(kind) / key, work / "dropped")

    def lookup(self, key: str) -> dict[str, bytes] | None:
        """The stored results of a case, checked against their hashes; a damaged entry is dropped.

        Returns file contents by name, or None when the case must be run.
        """
        folder = self.folder("results") / key
        with in_use.held(folder) as there:
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
        """Whether there are results of a case; they are not checked."""
        return (self.root / "results" / key).is_dir()

    def store(self, key: str, files: Mapping[str, bytes]) -> None:
        """Keeps the results of a case under its content hash."""

        def build(folder: Path) -> None:
            for name, content in files.items():
                (folder / name).write_bytes(content)
            index = {name: sha256(content) for name, content in sorted(files.items())}
            (folder / INDEX).write_text(json.dumps(index, indent=1))

        self._publish(self.folder("results") / key, build)

    def sizes(self) -> dict[str, int]:
        """Bytes on disk of each of KINDS."""
        return {
            kind: sum(_disk_bytes(path) for path in (self.root / kind).rglob("*")) for kind in KINDS
        }

    def empty(self) -> list[Path]:
        """Removes every unused entry; returns those in use, whose processes continue.

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
                    with in_use.unused(path) as free:
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
    with in_use.unused(path) as free:
        if free and path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        elif free:
            path.unlink(missing_ok=True)
