from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from jojlab.trace.run_folder import RunFolder
from tests.live.conftest import Bench

SMALL = ("--transactions=20", "--warmup-transactions=2")


def test_sqlite_is_measured_and_nothing_is_left(bench: Bench) -> None:
    answer = bench.run("sqlite", bench.directory, *SMALL, "--repeat=2", "--json")
    assert answer.returncode == 0, answer.stderr
    assert bench.names() == []
    shown = json.loads(answer.stdout)
    assert shown["clocks"] == ["wall"]
    (case,) = shown["cases"]
    figures = case["figures"]
    assert case["seeds"] == [1, 2]
    assert figures["transactions"] == 20
    assert figures["throughput_tps"] > 0
    assert 0 < figures["latency_ns_p50"] <= figures["latency_ns_p999"] <= figures["latency_ns_max"]
    # TRUNCATE with synchronous=FULL: journal, database, and the journal's truncation.
    assert figures["sync_calls_per_commit"] >= 3
    # What only a tracer counts is not there, rather than zero.
    assert "requests_per_commit" not in figures
    assert "bytes_per_commit" not in figures


def test_a_kept_run_is_shown_reported_and_compared_as_live(bench: Bench, tmp_path: Path) -> None:
    out = tmp_path / "run"
    answer = bench.run("file", bench.directory, *SMALL, "--sync-mode=fdatasync", "--out", out)
    assert answer.returncode == 0, answer.stderr
    said = ("Live", "throughput_tps", "sync_mode", "fdatasync", "operations of seed 1", "█")
    for words in (*said, "no table of requests"):
        assert words in answer.stdout, words
    page = (out / "report.html").read_text()
    assert "Live: real time" in page
    assert 'id="bill"' not in page
    (captured,) = RunFolder.open(out).captures()
    manifest = captured[2].manifest
    assert manifest["clock"] == "wall"
    assert manifest["tables"] == ["transactions", "counters", "manifest"]
    configuration = manifest["configuration"]
    assert str(configuration["mount"]).split(" ")[2] == configuration["filesystem"]
    assert captured[2].row_counts["transactions"] == 22


def test_the_same_seed_gives_the_same_operations_here_and_anywhere(bench: Bench) -> None:
    hashes = []
    for seed in ("--seed=7", "--seed=7", "--seed=8"):
        answer = bench.run("file", bench.directory, *SMALL, "--file-bytes=81920", seed, "--json")
        hashes.append(json.loads(answer.stdout)["cases"][0]["operation_hash"][seed[-1]])
    assert hashes[0] == hashes[1] != hashes[2]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("sqlite", "/nowhere/at/all"), "/nowhere/at/all: No such file"),
        (("sqlite", "/proc"), "no directory can be made"),
        (("sqlite", "/sys"), "no directory can be made"),
        (("sqlite", "HERE", "--workload=file-write"), "one of: sqlite-insert"),
        (("sqlite", "HERE", "--page-size-bytes=1000"), "page_size"),
        (("sqlite", "HERE", "--databases=11"), "allowed: 1 to 10"),
        (("sqlite", "HERE", "--workload=sqlite-delete", "--initial-rows=3"), "3 initial rows"),
        (("file", "HERE", "--record-bytes=8192", "--file-bytes=4096"), "does not fit"),
        (("file", "HERE", "--sync-mode=o_direct", "--record-bytes=1000"), "multiple of 512"),
        (("file", "HERE", "--file-bytes=10000000000000"), "not enough room"),
        (("file", "HERE", "--engine=io_uring", "--sync-mode=mmap"), "stores into memory"),
        (("file", "HERE", "--engine=io_uring_polled"), "cannot poll for this file"),
        (("file", "HERE", "--metadata-operation=stat"), "file-write has no field"),
        (("sql", "HERE"), "sql needs scripts = FOLDER"),
        (("sql", "HERE", "--scripts=/nowhere"), "scripts = '/nowhere': no such folder"),
    ],
)
def test_impossible_options_of_bench_are_refused_and_leave_nothing(
    bench: Bench, tmp_path: Path, arguments: tuple[str, ...], words: str
) -> None:
    asked = [str(bench.directory) if word == "HERE" else word for word in arguments]
    answer = bench.run(*asked, "--out", tmp_path / "run")
    assert answer.returncode == (3 if words.startswith("no") else 2), answer.stderr
    assert words in answer.stderr
    assert "Traceback" not in answer.stderr
    assert bench.names() == []
    assert not (tmp_path / "run").exists()


def test_settings_of_the_scripts_are_named_in_json_too(bench: Bench, tmp_path: Path) -> None:
    (tmp_path / "settings.toml").write_text('journal_mode = "wal"\n')
    (tmp_path / "schema.sql").write_text("CREATE TABLE t(a);\n")
    (tmp_path / "transaction.sql").write_text("INSERT INTO t VALUES (1);\n")
    scripts = ("sql", bench.directory, *SMALL, "--workload=sql", "--scripts", tmp_path)
    taken = "sync_call is not recorded: fsync is taken (joj inspect says what SQLite has)"
    note = f"settings of {tmp_path}/settings.toml: journal_mode=wal; {taken}"
    assert note in bench.run(*scripts).stdout.splitlines()
    assert json.loads(bench.run(*scripts, "--json").stdout)["notes"] == [note]


def test_a_run_in_which_statements_failed_is_incomplete(bench: Bench, tmp_path: Path) -> None:
    scripts = tmp_path / "scripts"
    scripts.mkdir()
    (scripts / "schema.sql").write_text("CREATE TABLE t(a UNIQUE);\n")
    for may_fail, code in (("", 4), ("--! may_fail\n", 0)):
        (scripts / "transaction.sql").write_text(f"{may_fail}INSERT INTO t VALUES (:int(1,3));\n")
        answer = bench.run("sql", bench.directory, *SMALL, "--scripts", scripts)
        assert answer.returncode == code, answer.stderr
        shown = " ".join(answer.stdout.split())  # its lines are wrapped
        assert "UNIQUE constraint failed: t.a (first: transaction.sql, line" in shown


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_directory_of_others_is_refused(bench: Bench) -> None:
    bench.directory.chmod(0o500)
    answer = bench.run("sqlite", bench.directory)
    assert answer.returncode == 3
    assert "no directory can be made in it" in answer.stderr
