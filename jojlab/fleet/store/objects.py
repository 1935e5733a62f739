"""The store of a fleet: a folder of this machine, or a bucket of an S3-compatible service.

Objects have keys, such as segments/day=2026-11-23/device=a/NAME.parquet, which jojlab makes itself.
An object is there as a whole or not at all. When `put` has returned, it stays: in a folder its file
and the folders above are synced; of a bucket, the service has answered.

pyarrow.fs reads both, and is here already. It does not sync files, so a folder is written here. Nor
does it tell a file from a link or a device, whose reading may never end: of a folder only what is a
file, in folders that are no links, is an object.
"""

from __future__ import annotations

import errno
import os
import shutil
import stat
import tempfile
import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from jojlab.foundation.errors import DataError, MachineError, UseError
from jojlab.foundation.lazy import fs

_INCOMING = ".incoming"  # in a folder: what is not put yet; on the same filesystem as the rest
_FOLDERS_REMEMBERED = 100_000


@dataclass(frozen=True)
class Object:
    """One object; `changed_s` is when it was put, since 1970 in UTC."""

    key: str
    size_bytes: int
    changed_s: float


class Store:
    """A folder or a bucket. `filesystem` (pyarrow.fs) and `path(key)` read what is there."""

    def __init__(self, url: str, filesystem: Any, root: str, folder: Path | None) -> None:
        self.url = url
        self.filesystem = filesystem
        self._root = root
        self.folder = folder
        self._spool: Path | None = None
        self._synced: set[str] = set()  # folders whose names are durable in those above

    @property
    def spool(self) -> Path:
        """A folder for what is on its way in; its contents may be lost."""
        if self._spool is None:
            if self.folder is None:
                self._spool = Path(tempfile.mkdtemp(prefix="joj-fleet-"))
            else:
                self._spool = self.folder / _INCOMING
                self._spool.mkdir(exist_ok=True)
        return self._spool

    def empty_spool(self, pattern: str, before_s: float) -> None:
        """Remove the folders of the spool with such names that a kill left there before then."""
        for path in self.spool.glob(pattern):
            if path.stat().st_mtime < before_s:
                shutil.rmtree(path, ignore_errors=True)

    def check(self) -> None:
        """Raise OSError where the store does not answer, or its folder is gone."""
        self.spool.stat()
        self.read_bytes("devices/none")

    def close(self) -> None:
        """Remove the spool of a bucket."""
        if self.folder is None and self._spool is not None:
            shutil.rmtree(self._spool, ignore_errors=True)
            self._spool = None

    def path(self, key: str) -> str:
        """Return where `filesystem` has the object."""
        return f"{self._root}/{key}"

    def put(self, *groups: Sequence[tuple[Path, str]]) -> None:
        """Put files of the spool under these keys; they are moved. All are durable on return.

        A group is there when the one before is durable. Raises OSError where the store refuses;
        then none, some or all of them are there.
        """
        if self.folder is None:
            for source, key in chain(*groups):
                self._send(source, key)
                source.unlink()
            return
        _sync(source for source, _ in chain(*groups))
        for group in groups:
            for source, key in group:
                self._move(source, self.path(key))
            for folder in {os.path.dirname(self.path(key)) for _, key in group}:
                self._sync_folder(folder)

    def sync(self, key: str) -> None:
        """Make an object durable that is there: who put it may have been killed before it was."""
        if self.folder is not None:
            self._sync_folder(os.path.dirname(self.path(key)))

    def put_bytes(self, key: str, contents: bytes) -> None:
        """Put an object of these bytes; durable on return."""
        if self.folder is None:
            with self.filesystem.open_output_stream(self.path(key)) as out:
                out.write(contents)
            return
        source = self.spool / uuid.uuid4().hex
        source.write_bytes(contents)
        self.put([(source, key)])

    def read_bytes(self, key: str) -> bytes | None:
        """Return an object's bytes; None if there is none, DataError where it is no file."""
        if self.folder is not None:
            return _read_file(self.folder / key)
        try:
            with self.filesystem.open_input_stream(self.path(key)) as stream:
                return bytes(stream.read())
        except FileNotFoundError:
            return None

    def objects(self, prefix: str, odd: list[str] | None = None) -> Iterator[Object]:
        """Yield the objects under this folder of keys, and under folders in it.

        What lies there and is neither a file nor a folder is passed over; its keys are added to
        `odd`.
        """
        if self.folder is not None:
            yield from _files(self.folder, prefix, [] if odd is None else odd)
            return
        selector = fs.FileSelector(self.path(prefix), allow_not_found=True, recursive=True)
        for info in self.filesystem.get_file_info(selector):
            if info.type == fs.FileType.File:
                key = info.path.removeprefix(self._root).lstrip("/")
                yield Object(key, info.size or 0, (info.mtime_ns or 0) / 1e9)

    def has(self, key: str) -> bool:
        """Return whether the object is there; a link or a device is none. Not asked of a bucket."""
        if self.folder is None:
            return True
        with suppress(OSError):
            return stat.S_ISREG(os.lstat(self.folder / key).st_mode)
        return False

    def names(self, folder: str) -> list[str]:
        """Return the names of the objects right under this folder of keys."""
        if self.folder is None:
            return [each.key.rpartition("/")[2] for each in self.objects(folder)]
        with suppress(FileNotFoundError):
            return os.listdir(self.folder / folder)  # much faster than to look at each
        return []

    def changed_s(self, key: str) -> float:
        """Return when an object was put; 0 if there is none."""
        return (self.filesystem.get_file_info(self.path(key)).mtime_ns or 0) / 1e9

    def delete(self, key: str) -> None:
        """Delete an object; it is no error if it is gone."""
        if self.folder is not None:
            (self.folder / key).unlink(missing_ok=True)
            return
        with suppress(FileNotFoundError):
            self.filesystem.delete_file(self.path(key))

    def _move(self, source: Path, target: str) -> None:
        try:
            os.replace(source, target)
        except FileNotFoundError:
            os.makedirs(os.path.dirname(target), exist_ok=True)
            os.replace(source, target)

    def _sync_folder(self, folder: str) -> None:
        """Sync a folder, and once those above it too, whoever made them."""
        _sync([folder])
        if folder != self._root and folder not in self._synced:
            self._sync_folder(os.path.dirname(folder))
            if len(self._synced) >= _FOLDERS_REMEMBERED:
                self._synced.clear()
            self._synced.add(folder)

    def _send(self, source: Path, key: str) -> None:
        with source.open("rb") as stream, self.filesystem.open_output_stream(self.path(key)) as out:
            while block := stream.read(1 << 20):
                out.write(block)


def open_store(url: str, *, create: bool = False) -> Store:
    """Return the store at `url`: a folder, or s3://BUCKET/PREFIX.

    A bucket's endpoint and credentials are those of the environment (AWS_ENDPOINT_URL, AWS_REGION,
    AWS_ACCESS_KEY_ID ...) and of ~/.aws. Without `create` a folder must exist.
    """
    if "://" in url:
        return _open_bucket(url)
    folder = Path(url).absolute()
    if create and not folder.exists():
        _make_folder(folder)
    if not folder.is_dir():
        raise UseError(f"--data {url}: no such folder", "joj fleet enrol NAME --data DIR makes it")
    return Store(str(folder), fs.LocalFileSystem(), str(folder), folder)


def _open_bucket(url: str) -> Store:
    scheme, _, place = url.partition("://")
    bucket = place.strip("/")
    if scheme != "s3" or not bucket:
        raise UseError(f"--data {url}: no store", "name a folder, or s3://BUCKET/PREFIX")
    settings: dict[str, Any] = {}
    if endpoint := os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL"):
        host_scheme, _, host = endpoint.rpartition("://")
        settings = {"endpoint_override": host.rstrip("/"), "scheme": host_scheme or "https"}
    if region := os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION"):
        settings["region"] = region
    filesystem = fs.S3FileSystem(**settings, connect_timeout=10, request_timeout=60)
    try:
        there = filesystem.get_file_info(bucket.split("/")[0]).type == fs.FileType.Directory
    except OSError as error:
        raise MachineError(
            f"--data {url}: the service does not answer: {error}",
            "look at AWS_ENDPOINT_URL, AWS_REGION and the credentials",
        ) from error
    if not there:
        raise UseError(f"--data {url}: no such bucket", "make it, or name another")
    return Store(f"s3://{bucket}", filesystem, bucket, None)


def _make_folder(folder: Path) -> None:
    """Make a folder and those above it, each durable in the one above."""
    if folder.is_dir():
        return
    _make_folder(folder.parent)
    folder.mkdir(exist_ok=True)
    _sync([folder.parent])


def _read_file(path: Path) -> bytes | None:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    except OSError as error:
        if error.errno not in (errno.ELOOP, errno.ENXIO):  # a link; a socket
            raise
        raise DataError(f"{path}: no regular file", "remove it") from error
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise DataError(f"{path}: no regular file", "remove it")
        return file.read()


def _files(root: Path, prefix: str, odd: list[str]) -> Iterator[Object]:
    folders = [prefix]
    while folders:
        folder = folders.pop()
        try:
            entries = list(os.scandir(root / folder))
        except FileNotFoundError:
            continue
        for entry in entries:
            key = f"{folder}/{entry.name}"
            if entry.is_dir(follow_symlinks=False):
                folders.append(key)
            elif entry.is_file(follow_symlinks=False):
                with suppress(FileNotFoundError):  # deleted since it was listed
                    found = entry.stat(follow_symlinks=False)
                    yield Object(key, found.st_size, found.st_mtime)
            else:
                odd.append(key)


def _sync(paths: Iterable[Path | str]) -> None:
    """Sync files or folders.

    The kernel begins to write all of them before the first is waited for, which POSIX_FADV_DONTNEED
    does (mm/fadvise.c): one commit of the filesystem's journal then has them all.
    """
    descriptors: list[int] = []
    try:
        for path in paths:
            descriptors.append(os.open(path, os.O_RDONLY))
            with suppress(OSError):  # a filesystem that knows no advice
                os.posix_fadvise(descriptors[-1], 0, 0, os.POSIX_FADV_DONTNEED)
        for descriptor in descriptors:
            os.fsync(descriptor)
    finally:
        for descriptor in descriptors:
            os.close(descriptor)
