"""The cache under damage, races and full disks."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from jojlab.foundation import cache
from jojlab.foundation.cache import Cache
from jojlab.foundation.errors import MachineError, disk_errors

FILES = {"requests.parquet": b"\x00PAR1", "manifest.json": b"{}"}


@pytest.fixture
def own(tmp_path: Path) -> Cache:
    return Cache(tmp_path / "cache")


def test_default_place_follows_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JOJ_CACHE", "/a")
    monkeypatch.setenv("XDG_CACHE_HOME", "/b")
    assert Cache.default().root == Path("/a")
    monkeypatch.setenv("JOJ_CACHE", "")
    assert Cache.default().root == Path("/b/jojlab")
    monkeypatch.setenv("XDG_CACHE_HOME", "not/absolute")  # the XDG specification: to be ignored
    monkeypatch.setenv("HOME", "/c")
    assert Cache.default().root == Path("/c/.cache/jojlab")


def test_a_stored_entry_is_found(own: Cache) -> None:
    assert own.lookup("key") is None
    own.store("key", FILES)
    own.store("key", FILES)
    assert own.lookup("key") == FILES
    assert own.lookup("other") is None


@pytest.mark.parametrize("name", [*FILES, "index.json"])
@pytest.mark.parametrize(
    "damage", [b"", b"\xff", b"[" * 100_000, b"null", b'{"manifest.json": 1}', None]
)
def test_a_damaged_entry_is_dropped(own: Cache, name: str, damage: bytes | None) -> None:
    own.store("key", FILES)
    path = own.root / "results/key" / name
    if damage is None:
        path.unlink()
    else:
        path.write_bytes(damage)
    assert own.lookup("key") is None
    assert not (own.root / "results/key").exists()
    own.store("key", FILES)
    assert own.lookup("key") == FILES


def test_an_entry_is_built_once_however_many_ask(own: Cache) -> None:
    builds: list[Path] = []
    barrier = threading.Barrier(8)

    def build(folder: Path) -> None:
        builds.append(folder)
        (folder / "part").write_text("whole")

    def ask() -> None:
        barrier.wait()
        assert (own.entry("images", "key", build) / "part").read_text() == "whole"

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(builds) == 1


def test_a_build_that_fails_leaves_nothing(own: Cache) -> None:
    def build(folder: Path) -> None:
        (folder / "half").write_text("")
        raise ValueError

    with pytest.raises(ValueError):
        own.entry("images", "key", build)
    assert list((own.root / "images").iterdir()) == []
    assert list((own.root / "work").iterdir()) == []


def test_work_of_the_dead_is_removed_and_of_the_living_is_kept(own: Cache) -> None:
    left = own.folder("work") / "left"
    left.mkdir()
    held = own.folder("work") / "held"
    held.mkdir()
    descriptor = os.open(held, os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    with own.work_dir() as work, own.work_dir() as other:
        assert work.exists()
        assert other.exists()
        assert held.exists()
        assert not left.exists()
    os.close(descriptor)
    with own.work_dir() as last:
        assert list(last.parent.iterdir()) == [last]


def test_sizes_count_what_empty_removes(own: Cache) -> None:
    own.store("key", {"table": bytes(range(256)) * 256})
    assert own.sizes()["results"] >= 65536
    own.empty()
    assert set(own.sizes().values()) == {0}
    assert own.lookup("key") is None


def test_emptying_leaves_what_is_in_use(own: Cache) -> None:
    def build(folder: Path) -> None:
        (folder / "state").write_text("whole")

    used = own.entry("snapshots", "key", build)
    own.store("key", FILES)
    with cache.entry_locked(own.root / "results/key") as there:
        assert there
        assert set(own.empty()) == {used, own.root / "results/key"}
        assert own.lookup("key") == FILES
    assert own.empty() == [used]
    assert (used / "state").read_text() == "whole"
    # A damaged one is dropped whoever uses it, and the new one is held as well.
    own.drop("snapshots", "key")
    assert own.entry("snapshots", "key", build) == used
    assert own.empty() == [used]


def test_an_entry_that_is_dropped_while_the_cache_is_emptied_is_no_error(
    own: Cache, monkeypatch: pytest.MonkeyPatch
) -> None:
    own.store("key", {"table": b"1"})
    own.store("other", {"table": b"2"})
    unused = cache.entry_unused

    @contextlib.contextmanager
    def drop_meanwhile(path: Path) -> Iterator[bool]:
        with unused(path) as free:
            if path.name == "key":
                Cache(own.root).drop("results", "key")
            yield free

    monkeypatch.setattr(cache, "entry_unused", drop_meanwhile)
    assert own.empty() == []
    assert not own.has("other")


def test_a_kind_may_be_linked_in_from_another_filesystem(
    own: Cache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    own.root.mkdir()
    (own.root / "snapshots").symlink_to(elsewhere)
    rename = Path.rename

    def refuse(source: Path, target: Path) -> Path:  # as rename(2) between two mounts
        if (elsewhere in source.resolve().parents) != (elsewhere in target.resolve().parents):
            raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))
        return rename(source, target)

    monkeypatch.setattr(Path, "rename", refuse)

    def build(folder: Path) -> None:
        (folder / "state").write_text("whole")

    assert (own.entry("snapshots", "key", build) / "state").read_text() == "whole"
    assert [path.name for path in elsewhere.iterdir()] == ["key"]
    own.drop("snapshots", "key")
    assert list(elsewhere.iterdir()) == [] == list((own.root / "work").iterdir())


def test_a_removed_entry_is_not_in_use(own: Cache, tmp_path: Path) -> None:
    with (
        cache.entry_unused(tmp_path / "gone") as free,
        cache.entry_locked(tmp_path / "gone") as there,
    ):
        assert not free
        assert not there
    (own.folder("work") / "file").write_text("stray")
    with own.work_dir() as work:  # its owner removes one at the moment when another looks
        assert list(work.parent.iterdir()) == [work]


@pytest.mark.parametrize(
    "number", [errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.ENOTDIR, errno.EEXIST]
)
def test_disk_errors_have_a_remedy(number: int) -> None:
    with pytest.raises(MachineError, match="remedy"), disk_errors(Path("/here")):
        raise OSError(number, "x")


def test_an_error_that_is_none_of_the_disk_s_passes() -> None:
    with pytest.raises(IsADirectoryError), disk_errors(Path("/here")):
        raise IsADirectoryError(errno.EISDIR, "x")
