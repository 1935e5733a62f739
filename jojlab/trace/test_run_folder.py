import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from jojlab.foundation.cache import Cache
from jojlab.foundation.errors import DataError, MachineError, UseError
from jojlab.trace import capture as capture_module
from jojlab.trace.checksums import hashes_of, write_checksums
from jojlab.trace.dataset import Dataset
from jojlab.trace.run_folder import RunFolder
from jojlab.trace.schema import table_schema
from tests.captures import make_run, truncate_capture
from tests.power_cut_answers import answer, cut, states

TRUNCATE = "filesystem=ext4,journal_mode=truncate"


def rewrite(path: Path, change: Callable[[list[dict[str, Any]]], Any], **options: Any) -> None:
    rows = pq.read_table(path).to_pylist()
    change(rows)
    table = pq.read_table(path).from_pylist(rows, schema=table_schema(path.stem).arrow())
    pq.write_table(table, path, **options)
    write_checksums(path.parent, hashes_of(path.parent))


def test_a_run_reads_back_as_written(tmp_path: Path) -> None:
    made = make_run(tmp_path / "run", transactions=2)
    opened = RunFolder.open(tmp_path / "run")
    assert opened == made
    assert [case.status for case in opened.cases] == ["ok", "ok", "skipped"]
    assert [capture.seed for capture in opened.cases[0].captures] == [1, 2, 3]
    assert not list(tmp_path.rglob("*.partial"))


@pytest.mark.parametrize("table", ["descriptors", "connections"])
def test_a_recording_is_told_from_a_run(tmp_path: Path, table: str) -> None:
    with pytest.raises(UseError, match=": not a run"):
        RunFolder.open(tmp_path)
    (tmp_path / f"{table}.parquet").touch()
    with pytest.raises(UseError, match=r"a recording, not a run[^$]*joj export"):
        RunFolder.open(tmp_path)


def test_status_stays_pending_until_the_last_seed(tmp_path: Path) -> None:
    run = RunFolder.create(
        tmp_path / "run", experiment={}, seeds=[1, 2], cases=[("a", {"x": 1})], fingerprint={}
    )
    capture = truncate_capture({"journal_mode": "truncate"}, 1, 1).write(tmp_path / "made")
    run.add_capture("a", 1, capture)
    assert RunFolder.open(run.path).case("a").status == "pending"
    run.add_capture("a", 2, capture, cached=True)
    assert RunFolder.open(run.path).case("a").status == "ok"
    with pytest.raises(UseError, match="seed 2 is not awaited"):
        run.add_capture("a", 2, capture)


def test_a_damaged_capture_is_not_added(tmp_path: Path) -> None:
    run = RunFolder.create(
        tmp_path / "run", experiment={}, seeds=[1], cases=[("a", {})], fingerprint={}
    )
    folder = truncate_capture({"journal_mode": "truncate"}, 1, 1).write(tmp_path / "made")
    (folder / "files.parquet").write_bytes(b"PAR1")
    with pytest.raises(DataError, match=r"files\.parquet"):
        run.add_capture("a", 1, folder)
    assert RunFolder.open(run.path).case("a").captures == []
    assert list((run.path / "captures").rglob("*.parquet")) == []


def test_tables_found_good_before_are_not_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = Cache(tmp_path / "cache")

    def add_run(name: str, tables: Path) -> RunFolder:
        run = RunFolder.create(
            tmp_path / name, experiment={}, seeds=[1], cases=[("a", {})], fingerprint={}
        )
        run.add_capture("a", 1, tables, cache=cache)
        return run

    tables = truncate_capture({"journal_mode": "truncate"}, 1, 1).write(tmp_path / "made")
    read: list[Path] = []
    check = capture_module._check

    def counting(path: Path, table: str, *, decode: bool) -> int:
        read.append(path)
        return check(path, table, decode=decode)

    monkeypatch.setattr(capture_module, "_check", counting)
    first = add_run("one", tables)
    assert read
    read.clear()
    again = add_run("two", tables)
    assert not read
    [known], [found] = first.checked.values(), again.checked.values()
    assert (found.row_counts, found.manifest) == (known.row_counts, known.manifest)
    rewrite(tables / "requests.parquet", lambda rows: rows[0].update(length_bytes=1))
    add_run("three", tables)
    assert read


def test_hash_is_that_of_the_contents(tmp_path: Path) -> None:
    first = make_run(tmp_path / "one", transactions=2)
    again = make_run(tmp_path / "elsewhere" / "two", transactions=2)
    assert first.content_hash() == again.content_hash()
    # Stored otherwise, it says the same.
    path = first.path / "captures" / TRUNCATE / "seed-1" / "requests.parquet"
    rewrite(path, lambda rows: None, compression="zstd", row_group_size=3, use_dictionary=False)
    assert first.content_hash() == again.content_hash()


@pytest.mark.parametrize(
    ("table", "change"),
    [
        ("requests", lambda rows: rows[3].update(issue_ns=rows[3]["issue_ns"] + 1)),
        ("requests", lambda rows: rows[3].update(sync=not rows[3]["sync"])),
        ("requests", lambda rows: rows[0].update(asker_pid=None)),
        ("requests", lambda rows: rows[0].update(file_id=None)),  # null is not 0
        ("page_runs", lambda rows: rows[1].update(block_subtype="descriptorc")),
        ("files", lambda rows: rows[0].update(path="")),
        ("counters", lambda rows: rows.pop()),
        ("transactions", lambda rows: rows.reverse()),
        ("manifest", lambda rows: rows[0].update(value="1")),
    ],
)
def test_hash_changes_with_one_value(
    tmp_path: Path, table: str, change: Callable[[list[dict[str, Any]]], Any]
) -> None:
    run = make_run(tmp_path / "run", seeds=[1], transactions=2)
    before = run.content_hash()
    path = run.path / "captures" / TRUNCATE / "seed-1" / f"{table}.parquet"
    rewrite(path, change)
    if table == "manifest":  # rows[0] is schema_version: refused before it is hashed
        with pytest.raises(DataError):
            run.content_hash()
        return
    assert run.content_hash() != before


def test_hash_changes_when_captures_change_places(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", seeds=[1, 2], transactions=2)
    before = run.content_hash()
    first, second = run.case(TRUNCATE).captures
    first.folder, second.folder = second.folder, first.folder
    assert run.content_hash() != before


def test_no_run_is_told(tmp_path: Path) -> None:
    with pytest.raises(UseError, match="not a run"):
        RunFolder.open(tmp_path)


def test_damaged_run_json_is_told(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", seeds=[1], transactions=1)
    file = run.path / "run.json"
    file.write_text(file.read_text()[:-20])
    with pytest.raises(DataError, match=r"run\.json: damaged"):
        RunFolder.open(run.path)


def test_every_flipped_bit_of_run_json_is_told(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", seeds=[1], transactions=1)
    file = run.path / "run.json"
    whole = file.read_bytes()
    for place in range(0, len(whole) * 8, len(whole) // 3):
        damaged = bytearray(whole)
        damaged[place // 8] ^= 1 << place % 8
        file.write_bytes(damaged)
        with pytest.raises(DataError, match=r"run\.json: damaged"):
            RunFolder.open(run.path)
    file.write_bytes(whole)
    checked = subprocess.run(["sha256sum", "--check", "--strict", "SHA256SUMS"], cwd=run.path)
    assert checked.returncode == 0


@pytest.mark.parametrize("step", [1, 2, 3])
def test_run_json_is_sound_wherever_its_writing_stops(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    run = make_run(tmp_path / "run", seeds=[1], transactions=1)
    left = step
    replace = os.replace

    def stops(source: Path, target: Path) -> None:
        nonlocal left
        left -= 1
        if not left:
            raise OSError("the machine stops")
        replace(source, target)

    monkeypatch.setattr(os, "replace", stops)
    with pytest.raises(MachineError):
        run.mark(TRUNCATE, "failed", "another reason")
    reason = RunFolder.open(run.path).case(TRUNCATE).reason
    assert reason == ("another reason" if step == 3 else "")


def test_captures_outside_the_run_are_refused(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", seeds=[1], transactions=1)
    file = run.path / "run.json"
    document = json.loads(file.read_text())
    document["cases"][0]["captures"][0]["folder"] = "../../elsewhere"
    file.write_text(json.dumps(document))
    (run.path / "SHA256SUMS").unlink()
    with pytest.raises(DataError, match="outside the run"):
        list(RunFolder.open(run.path).captures())


def test_cases_of_one_folder_name_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UseError, match="one folder name"):
        RunFolder.create(
            tmp_path / "r",
            experiment={},
            seeds=[1],
            cases=[("a b", {}), ("a/b", {})],
            fingerprint={},
        )


def test_a_folder_with_pattern_characters_works(tmp_path: Path) -> None:
    data = Dataset.from_runs(make_run(tmp_path / "r[1]*?", seeds=[1], transactions=1))
    counted = "SELECT capture, count(*) AS n FROM requests GROUP BY capture ORDER BY capture"
    assert data.columns(counted)["n"] == [10, 4]


def test_a_relative_folder_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_run(tmp_path / "run", seeds=[1], transactions=1)
    monkeypatch.chdir(tmp_path)
    data = Dataset.from_runs(RunFolder.open(Path("run")))
    assert data.rows("SELECT count(*) AS n FROM requests") == [{"n": 14}]


def test_every_flipped_bit_is_found_by_its_file(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", seeds=[1], transactions=2)
    (_, _, capture), *_ = RunFolder.open(run.path).captures()
    for path in sorted(capture.folder.iterdir()):
        whole = path.read_bytes()
        for place in range(0, len(whole) * 8, len(whole) * 8 // 7):
            damaged = bytearray(whole)
            damaged[place // 8] ^= 1 << place % 8
            path.write_bytes(damaged)
            with pytest.raises(DataError, match=r"(\.parquet|SHA256SUMS)\b.*(damaged|not in)"):
                list(RunFolder.open(run.path).captures())
        path.write_bytes(whole)
    assert len(list(RunFolder.open(run.path).captures())) == 2


def test_a_copied_run_folder_has_its_power_cuts(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", seeds=[1], transactions=2)
    cut(run, TRUNCATE, states(harmless=3, lost=1))
    shutil.copytree(run.path, tmp_path / "shared")
    shared = RunFolder.open(tmp_path / "shared")
    [found] = shared.power_cuts(shared.case(TRUNCATE))
    assert [each.outcome for each in found.states] == ["kept", "kept", "kept", "lost"]
    assert shared.case(TRUNCATE).without_power_cuts == ()


def test_power_cuts_of_another_run_or_damaged_are_refused(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", seeds=[1], transactions=2)
    wrong = answer(states(harmless=1), {"requests.parquet": "0" * 64})
    with pytest.raises(DataError, match=r"requests\.parquet of the run that was cut is not that"):
        run.add_power_cuts(TRUNCATE, 1, json.dumps(wrong).encode())
    wrong["outcomes"]["lost"] = 1
    with pytest.raises(DataError, match=r"outcomes\.lost is 1, but 0 are listed"):
        run.add_power_cuts(TRUNCATE, 1, json.dumps(wrong).encode())
    cut(run, TRUNCATE, states(harmless=2))
    file = run.path / run.case(TRUNCATE).power_cuts[0].folder / "power_cuts.json"
    file.write_bytes(file.read_bytes().replace(b"kept", b"lost"))
    with pytest.raises(DataError, match=r"power_cuts\.json: damaged: its content"):
        list(run.power_cuts(run.case(TRUNCATE)))


def test_a_whole_run_is_taken_up_for_its_power_cuts(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", seeds=[1], transactions=2)
    asked: dict[str, Any] = {
        "experiment": run.experiment,
        "seeds": run.seeds,
        "cases": [(entry.case_id, entry.case) for entry in run.cases],
        "fingerprint": run.fingerprint,
    }
    with pytest.raises(UseError, match="a run is already there"):
        RunFolder.create(run.path, **asked)
    assert RunFolder.create(run.path, **asked, power_cuts=True).case(TRUNCATE).captures
