"""A run is the same to the byte, whatever folder, cache and image build it comes from, and however
many guests ran at a time. That another boot gives the same is in tests/guest/test_run_case.py.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from jojlab.foundation.cache import Cache
from tests.command.conftest import Lab

# ext4 and F2FS by WAL: first-look, of some seconds.
ASKED = tuple(
    f"--set={setting}"
    for setting in (
        "transactions=7",
        "seeds=1",
        "journal_mode=wal",
        "regime=fresh",
        "sync_call=fsync",
    )
)


@pytest.fixture
def other_lab(tmp_path_factory: pytest.TempPathFactory) -> Lab:
    """A lab that shares with the tests' cache the kernel as it was downloaded, and the snapshot if
    the image that it builds is the same.
    """
    root = tmp_path_factory.mktemp("another-cache")
    for kind in ("packages", "kernels", "snapshots"):
        (root / kind).symlink_to(Cache.default().folder(kind))
    return Lab(tmp_path_factory.mktemp("another-folder"), root)


def files(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


@pytest.mark.full
def test_every_byte_of_two_runs_is_equal(lab: Lab, other_lab: Lab) -> None:
    found = []
    for place, jobs in ((lab, 2), (other_lab, 1)):
        # Without the cache, run.json does not say which captures came from it.
        asked = (*ASKED, f"--jobs={jobs}", "--no-cache", "--out=run")
        answer = place.joj("run", "first-look", *asked)
        assert answer.returncode == 0, answer.stderr
        found.append(files(place.folder / "run"))
    one, other = found
    assert sum(name.endswith("/requests.parquet") for name in one) == 2
    assert {"run.json", "report.html", "experiment.toml"} <= one.keys()
    assert one.keys() == other.keys()
    assert [name for name in one if one[name] != other[name]] == []
