"""A value is made again when any file changes that it was made of, however that changes."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from jojlab.foundation.cache import Cache, Sources

LONG_AGO_NS = 10_000_000_000


class Maker:
    """Joins two files, and counts how often."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.count = folder, 0

    def __call__(self, sources: Sources) -> list[str]:
        self.count += 1
        sources.add([self.folder, self.folder / "a", self.folder / "absent"])
        return sorted(path.read_text() for path in self.folder.iterdir())


@pytest.fixture
def maker(tmp_path: Path) -> Maker:
    folder = tmp_path / "files"
    folder.mkdir()
    (folder / "a").write_text("A")
    (folder / "b").write_text("B")
    return Maker(folder)


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the files have been made long ago."""
    now_ns = time.time_ns
    monkeypatch.setattr(time, "time_ns", lambda: now_ns() + LONG_AGO_NS)


def replace(folder: Path) -> None:
    """Put another file of the same size and mtime in place of one."""
    before = (folder / "a").stat()
    (folder / "b").with_name("c").write_text("C")
    os.utime(folder / "c", ns=(before.st_atime_ns, before.st_mtime_ns))
    (folder / "c").replace(folder / "a")


def rewrite_with_old_mtime(folder: Path) -> None:
    before = (folder / "a").stat()
    time.sleep(0.02)  # a tick of the kernel's clock, by which ctime moves
    (folder / "a").write_text("C")
    os.utime(folder / "a", ns=(before.st_atime_ns, before.st_mtime_ns))


@pytest.mark.usefixtures("later")
@pytest.mark.parametrize(
    "change",
    [
        lambda folder: (folder / "a").write_text("longer"),
        replace,
        rewrite_with_old_mtime,
        lambda folder: (folder / "a").unlink(),
        lambda folder: (folder / "absent").write_text("D"),
        lambda folder: (folder / "new").write_text("D"),
        lambda folder: (folder / "b").unlink(),
    ],
)
def test_a_change_is_seen(maker: Maker, tmp_path: Path, change: Callable[[Path], object]) -> None:
    cache = Cache(tmp_path / "cache")
    first = cache.value("seen", "key", list[str], maker)
    assert cache.value("seen", "key", list[str], maker) == first
    assert maker.count == 1
    change(maker.folder)
    assert cache.value("seen", "key", list[str], maker) != first
    assert maker.count == 2


def test_a_source_that_has_just_changed_is_not_trusted(maker: Maker, tmp_path: Path) -> None:
    for count in (1, 2):
        Cache(tmp_path / "cache").value("seen", "key", list[str], maker)
        assert maker.count == count


@pytest.mark.usefixtures("later")
def test_a_value_whose_source_changes_meanwhile_is_not_remembered(
    maker: Maker, tmp_path: Path
) -> None:
    def meanwhile(sources: Sources) -> list[str]:
        found = maker(sources)
        (maker.folder / "a").write_text("C of another length")
        return found

    assert Cache(tmp_path / "cache").value("seen", "key", list[str], meanwhile) == ["A", "B"]
    assert Cache(tmp_path / "cache").value("seen", "key", list[str], maker) != ["A", "B"]


@pytest.mark.usefixtures("later")
def test_keys_and_damaged_records_are_told_apart(maker: Maker, tmp_path: Path) -> None:
    cache = Cache(tmp_path / "cache")
    cache.value("seen", "key", list[str], maker)
    cache.value("seen", "other", list[str], maker)
    assert maker.count == 2
    content = bytearray((cache.root / "seen" / "key").read_bytes())
    for place in range(0, len(content), 7):
        damaged = bytearray(content)
        damaged[place] ^= 1
        (cache.root / "seen" / "key").write_bytes(damaged)
        before = maker.count
        assert cache.value("seen", "key", list[str], maker) == ["A", "B"]
        assert maker.count == before + 1


@pytest.mark.usefixtures("later")
def test_a_folder_that_cannot_be_written_costs_time_alone(maker: Maker, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert Cache(tmp_path / "file" / "cache").value("seen", "key", list[str], maker) == ["A", "B"]
