"""One cache used by several processes at once, which store, look up, build, drop and empty."""

from __future__ import annotations

import multiprocessing
import random
from pathlib import Path

from jojlab.foundation.cache import Cache

PROCESSES = 4
ROUNDS = 150
KEYS = 5


def _use(root: Path, number: int, results: multiprocessing.SimpleQueue[str]) -> None:
    """Do what runs do to a cache, `number` being the seed; put what went wrong, or nothing."""
    draw, cache = random.Random(number), Cache(root)
    built: dict[Path, str] = {}

    def build(folder: Path) -> None:
        with cache.work_dir() as work:
            (work / "half").write_text("made")
            (work / "half").rename(folder / "whole")

    try:
        for turn in range(ROUNDS):
            key = f"key-{draw.randrange(KEYS)}"
            files = {"table": key.encode() * 100, "other": b""}
            with cache.work_dir() as work:
                (work / "own").write_bytes(files["table"])
                found = cache.lookup(key)
                assert found in (None, files), f"{key} has the content of another"
                cache.store(key, files)
                assert (work / "own").read_bytes() == files["table"], "its work was taken away"
            snapshot = cache.entry("snapshots", f"{number}-{turn // 50}", build)
            built[snapshot] = "made"
            match draw.randrange(10):
                case 0:
                    cache.empty()
                case 1:
                    cache.drop("results", key)
            for path, content in built.items():
                assert (path / "whole").read_text() == content, "a snapshot in use is gone"
    except BaseException as error:
        results.put(f"{type(error).__name__}: {error}")
    else:
        results.put("")


def test_processes_share_a_cache(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    results = context.SimpleQueue()
    users = [
        context.Process(target=_use, args=(tmp_path / "cache", number, results))
        for number in range(PROCESSES)
    ]
    for user in users:
        user.start()
    for user in users:
        user.join()
    assert [user.exitcode for user in users] == [0] * PROCESSES
    assert [results.get() for _ in users] == [""] * PROCESSES
    cache = Cache(tmp_path / "cache")
    assert list(cache.folder("work").iterdir()) == []
    assert cache.empty() == []
    assert set(cache.sizes().values()) == {0}
