"""The cache under damage, races and full disks."""

from __future__ import annotations

import errno
import fcntl
import os
import threading
from pathlib import Path

import pytest

from jojlab.errors import MachineError
from jojlab.guest import in_use
from jojlab.guest.cache import Cache, disk_errors

FILES = {"requests.parquet": b"\x00PAR1", "manifest.json": b"{}"}


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    return Cache(tmp_path / "cache")


def test_default_place_follows_the_environment() -> None:
    assert Cache.default({"JOJ_CACHE": "/a", "XDG_CACHE_HOME": "/b"}).root == Path("/a")
    assert Cache.default({"XDG_CACHE_HOME": "/b"}).root == Path("/b/jojlab")
    assert Cache.default({}).root == Path.home() / ".cache/jojlab"


def test_what_is_stored_is_found(cache: Cache) -> None:
    assert cache.lookup("key") is None
    cache.store("key", FILES)
    cache.store("key", FILES)
    assert cache.lookup("key") == FILES
    assert cache.lookup("other") is None


@pytest.mark.parametrize("name", [*FILES, "index.json"])
@pytest.mark.parametrize("damage", [b"", b"\xff", b"[]", b"null", b'{"manifest.json": 1}', None])
def test_a_damaged_entry_is_dropped(cache: Cache, name: str, damage: bytes | None) -> None:
    cache.store("key", FILES)
    path = cache.root / "results/key" / name
    if damage is None:
        path.unlink()
    else:
        path.write_bytes(damage)
    assert cache.lookup("key") is None
    assert not (cache.root / "results/key").exists()
    cache.store("key", FILES)
    assert cache.lookup("key") == FILES


def test_an_entry_is_built_once_however_many_ask(cache: Cache) -> None:
    builds: list[Path] = []
    barrier = threading.Barrier(8)

    def build(folder: Path) -> None:
        builds.append(folder)
        (folder / "part").write_text("whole")

    def ask() -> None:
        barrier.wait()
        assert (cache.entry("images", "key", build) / "part").read_text() == "whole"

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(builds) == 1


def test_a_build_that_fails_leaves_nothing(cache: Cache) -> None:
    def build(folder: Path) -> None:
        (folder / "half").write_text("")
        raise ValueError

    with pytest.raises(ValueError):
        cache.entry("images", "key", build)
    assert list((cache.root / "images").iterdir()) == []
    assert list((cache.root / "work").iterdir()) == []


def test_work_of_the_dead_is_removed_and_of_the_living_is_kept(cache: Cache) -> None:
    left = cache.folder("work") / "left"
    left.mkdir()
    held = cache.folder("work") / "held"
    held.mkdir()
    descriptor = os.open(held, os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    with cache.work_dir() as work, cache.work_dir() as other:
        assert work.exists() and other.exists() and held.exists() and not left.exists()
    os.close(descriptor)
    with cache.work_dir() as last:
        assert list(last.parent.iterdir()) == [last]


def test_sizes_count_what_empty_removes(cache: Cache) -> None:
    cache.store("key", {"table": bytes(range(256)) * 256})
    assert cache.sizes()["results"] >= 65536
    cache.empty()
    assert set(cache.sizes().values()) == {0}
    assert cache.lookup("key") is None


def test_emptying_leaves_what_is_in_use(cache: Cache) -> None:
    def build(folder: Path) -> None:
        (folder / "state").write_text("whole")

    used = cache.entry("snapshots", "key", build)
    cache.store("key", FILES)
    with in_use.held(cache.root / "results/key") as there:
        assert there
        assert set(cache.empty()) == {used, cache.root / "results/key"}
        assert cache.lookup("key") == FILES
    assert cache.empty() == [used]
    assert (used / "state").read_text() == "whole"
    # A damaged one is dropped whoever uses it, and the new one is held as well.
    cache.drop("snapshots", "key")
    assert cache.entry("snapshots", "key", build) == used
    assert cache.empty() == [used]


def test_what_is_gone_is_not_in_use(cache: Cache, tmp_path: Path) -> None:
    with in_use.unused(tmp_path / "gone") as free, in_use.held(tmp_path / "gone") as there:
        assert not free and not there
    (cache.folder("work") / "file").write_text("stray")
    with cache.work_dir() as work:  # its owner removes one at the moment when another looks
        assert list(work.parent.iterdir()) == [work]


@pytest.mark.parametrize(
    "number", [errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.ENOTDIR, errno.EEXIST]
)
def test_disk_errors_have_a_remedy(number: int) -> None:
    with pytest.raises(MachineError, match="remedy"), disk_errors(Path("/here")):
        raise OSError(number, "x")


def test_other_errors_pass() -> None:
    with pytest.raises(IsADirectoryError), disk_errors(Path("/here")):
        raise IsADirectoryError(errno.EISDIR, "x")
