"""Tests that what is kept of a run is what would be computed, and is used only while it is."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from jojlab.analysis.run import summary as module
from jojlab.analysis.run.summary import Depth, Findings, findings
from jojlab.foundation import cache as cache_module
from jojlab.foundation.cache import Cache
from jojlab.foundation.errors import DataError
from jojlab.foundation.places import PACKAGE
from jojlab.trace import capture as captured_module
from jojlab.trace import checksums as program_module
from jojlab.trace import dataset as dataset_module
from jojlab.trace.checksums import hashes_of
from jojlab.trace.dataset import Dataset
from jojlab.trace.run_folder import RunFolder
from tests.captures import make_run


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    return make_run(tmp_path_factory.mktemp("cache") / "run", seeds=[1], transactions=2)


@pytest.fixture
def computed_depths(monkeypatch: pytest.MonkeyPatch) -> list[Depth]:
    """Every depth that was computed, and not taken as it was kept."""
    found: list[Depth] = []
    compute: Callable[[Dataset, Depth, Cache | None], Findings] = module._compute

    def counting(data: Dataset, depth: Depth, cache: Cache | None) -> Findings:
        found.append(depth)
        return compute(data, depth, cache)

    monkeypatch.setattr(module, "_compute", counting)
    return found


def entry_of(cache: Cache) -> Path:
    (path,) = (cache.root / "analyses").iterdir()
    return path


@pytest.mark.parametrize("depth", Depth)
def test_cached_findings_equal_the_computed_ones(
    run: RunFolder, computed_depths: list[Depth], tmp_path: Path, depth: Depth
) -> None:
    cache = Cache(tmp_path / "cache")
    made, again = (
        findings(Dataset.from_runs(run), depth, cache),
        findings(Dataset.from_runs(run), depth, cache),
    )
    assert computed_depths == [each for each in reversed(Depth) if each <= depth]
    assert again == made
    assert again is not made
    assert made.figures
    assert bool(made.bills) == (depth > 0)
    assert bool(made.moved) == (depth > 1)


def test_a_depth_builds_on_what_is_kept_of_those_before_it(
    run: RunFolder, computed_depths: list[Depth], tmp_path: Path
) -> None:
    cache = Cache(tmp_path / "cache")
    shown = findings(Dataset.from_runs(run), Depth.COMMITS, cache)
    reported = findings(Dataset.from_runs(run), Depth.TRAFFIC, cache)
    assert computed_depths == [Depth.COMMITS, Depth.FIGURES, Depth.TRAFFIC]
    assert reported == findings(Dataset.from_runs(run), Depth.TRAFFIC)
    assert shown == findings(Dataset.from_runs(run), Depth.COMMITS)


def test_every_damage_of_an_entry_is_seen(
    run: RunFolder, computed_depths: list[Depth], tmp_path: Path
) -> None:
    cache = Cache(tmp_path / "cache")
    made = findings(Dataset.from_runs(run), Depth.FIGURES, cache)
    whole = entry_of(cache).read_bytes()
    damaged = [b"", whole[:40], whole[:-1], whole + b"\0"]
    for place in range(0, len(whole), len(whole) // 7):
        damaged.append(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
    for count, content in enumerate(damaged, 2):
        entry_of(cache).write_bytes(content)
        assert findings(Dataset.from_runs(run), Depth.FIGURES, cache) == made
        assert len(computed_depths) == count
    assert entry_of(cache).read_bytes() == whole  # the last one was made good


def test_an_entry_of_another_shape_is_not_used(
    run: RunFolder, computed_depths: list[Depth], tmp_path: Path
) -> None:
    cache = Cache(tmp_path / "cache")
    made = findings(Dataset.from_runs(run), Depth.FIGURES, cache)
    path = entry_of(cache)
    payload = msgspec.msgpack.encode({"figures": 3})
    path.write_bytes(cache_module.record_checksum(path.name, payload) + payload)
    assert findings(Dataset.from_runs(run), Depth.FIGURES, cache) == made
    assert len(computed_depths) == 2


def test_another_program_or_capture_computes_anew(
    run: RunFolder, computed_depths: list[Depth], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = Cache(tmp_path / "cache")
    findings(Dataset.from_runs(run), Depth.FIGURES, cache)
    other = make_run(tmp_path / "other", seeds=[2], transactions=2)
    findings(Dataset.from_runs(other), Depth.FIGURES, cache)
    assert len(computed_depths) == 2
    copied = make_run(tmp_path / "copy", seeds=[1], transactions=2)
    findings(Dataset.from_runs(copied), Depth.FIGURES, cache)  # the same captures at another place
    assert len(computed_depths) == 2
    monkeypatch.setattr(dataset_module, "program", lambda: "another")
    findings(Dataset.from_runs(run), Depth.FIGURES, cache)
    assert len(computed_depths) == 3


@pytest.mark.parametrize("name", ["commit/bill.sql", "commit/bill.py"])
def test_an_edited_analysis_is_another_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    folder = tmp_path / "analysis"
    shutil.copytree(PACKAGE / "analysis", folder)
    sources = [(folder if f.name == "analysis" else f, p) for f, p in program_module._SOURCES]
    monkeypatch.setattr(program_module, "_SOURCES", sources)
    before = program_module.program.__wrapped__()
    (folder / name).write_text((folder / name).read_text() + "\n")
    assert program_module.program.__wrapped__() != before


def test_a_damaged_capture_is_told_though_its_figures_are_kept(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", seeds=[1], transactions=2)
    cache = Cache(tmp_path / "cache")
    findings(Dataset.from_runs(run), Depth.FIGURES, cache)
    run.checked.clear()
    (_, _, folder), *_ = run.capture_folders()
    table = folder / "requests.parquet"
    content = table.read_bytes()
    table.write_bytes(content[:100] + bytes([content[100] ^ 1]) + content[101:])
    with pytest.raises(DataError):
        findings(Dataset.from_runs(run), Depth.FIGURES, cache)
    table.unlink()
    with pytest.raises(DataError):
        findings(Dataset.from_runs(run), Depth.FIGURES, cache)


def test_a_large_capture_is_read_again_only_where_it_has_changed(
    tmp_path: Path, computed_depths: list[Depth], monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[Path] = []

    def reading(folder: Path) -> dict[Path, str]:
        read.append(folder)
        return hashes_of(folder)

    monkeypatch.setattr(captured_module, "hashes_of", reading)
    monkeypatch.setattr(dataset_module, "LARGE_BYTES", 0)
    monkeypatch.setattr(cache_module, "_RACY_NS", 0)
    run = make_run(tmp_path / "run", seeds=[1], transactions=2)
    cache = Cache(tmp_path / "cache")
    made = findings(Dataset.from_runs(run), Depth.FIGURES, cache)
    folders = [folder for _, _, folder in run.capture_folders()]
    assert read == folders
    assert findings(Dataset.from_runs(run), Depth.FIGURES, cache) == made
    assert read == folders
    assert computed_depths == [Depth.FIGURES]
    run.checked.clear()
    (folders[0] / "more").write_text("")
    findings(Dataset.from_runs(run), Depth.FIGURES, cache)
    assert read == [*folders, folders[0], folders[1]]
    assert len(computed_depths) == 2
    table = folders[0] / "requests.parquet"
    content = table.read_bytes()
    table.write_bytes(content[:100] + bytes([content[100] ^ 1]) + content[101:])
    with pytest.raises(DataError):
        findings(Dataset.from_runs(run), Depth.FIGURES, cache)


def test_a_folder_that_cannot_be_written_costs_time_alone(
    run: RunFolder, computed_depths: list[Depth], tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    cache = Cache(tmp_path / "file" / "cache")  # no right of root makes a folder there
    assert findings(Dataset.from_runs(run), Depth.FIGURES, cache) == findings(
        Dataset.from_runs(run), Depth.FIGURES, cache
    )
    assert len(computed_depths) == 2
