from pathlib import Path

import pytest

from jojlab.foundation.errors import UseError
from jojlab.trace.run_folder import RunFolder
from jojlab.trace.sql import query
from tests.captures import make_run, run_of, truncate_capture


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    return make_run(tmp_path_factory.mktemp("sql") / "run", seeds=[1, 2], transactions=2)


def test_case_fields_and_seed_are_columns(run: RunFolder) -> None:
    answer = query(
        run,
        "SELECT journal_mode, seed, count(*) AS n, sum(length_bytes)::BIGINT AS bytes "
        "FROM requests WHERE phase = 'commit' GROUP BY ALL ORDER BY ALL",
    )
    assert answer.to_pylist() == [
        {"journal_mode": mode, "seed": seed, "n": 2 * n, "bytes": 2 * bytes_}
        for mode, n, bytes_ in (("truncate", 9, 69632), ("wal", 3, 28672))
        for seed in (1, 2)
    ]


def test_page_runs_join_files_by_their_keys(run: RunFolder) -> None:
    answer = query(
        run,
        "WITH owned AS (SELECT * FROM page_runs JOIN files USING (case_id, seed, file_id)) "
        "SELECT path, sum(length_bytes)::BIGINT AS bytes FROM owned "
        "WHERE seed = 1 AND case_id LIKE '%truncate' GROUP BY ALL ORDER BY ALL",
    )
    assert answer.to_pylist() == [
        {"path": "/test.db", "bytes": 2 * 8192},
        {"path": "/test.db-journal", "bytes": 2 * 16384},
    ]


def test_a_field_named_like_a_column_gets_a_prefix(tmp_path: Path) -> None:
    case = {"journal_mode": "truncate", "device": "ufs-2.1", "size": 1, "mixed": None}
    run = run_of(tmp_path, truncate_capture(case, 1, 1))
    answer = query(run, "SELECT DISTINCT device, case_device, size, mixed FROM requests")
    assert answer.to_pylist() == [
        {"device": "flash0", "case_device": "ufs-2.1", "size": 1, "mixed": None}
    ]


@pytest.mark.parametrize(
    "sql",
    [
        "COPY requests TO 'out.csv'",
        "SELECT 1; SELECT 2",
        "CREATE TABLE x (a INT)",
        "SET enable_external_access = true",
        "ATTACH 'x.db'",
        "PRAGMA database_list",
        "INSTALL httpfs",
    ],
)
def test_a_query_must_be_one_statement_that_reads(run: RunFolder, sql: str) -> None:
    with pytest.raises(UseError, match="one statement that reads"):
        query(run, sql)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM read_text('{file}')",
        "SELECT * FROM '{file}'",
        "SELECT * FROM read_csv('{file}')",
        "SELECT * FROM glob('{folder}/*')",
        "SELECT * FROM captures",  # a Python variable of the caller
    ],
)
def test_no_file_is_read(run: RunFolder, tmp_path: Path, sql: str) -> None:
    secret = tmp_path / "secret.csv"
    secret.write_text("a,b\n1,2\n")
    with pytest.raises(UseError, match=r"the query failed|not SQL"):
        query(run, sql.format(file=secret, folder=tmp_path))


def test_a_query_of_a_file_is_told_what_it_may_read(run: RunFolder) -> None:
    with pytest.raises(UseError) as refused:
        query(run, "SELECT * FROM read_csv('/etc/passwd')")
    assert "no file" in refused.value.remedy


def test_nonsense_is_told_with_the_place(run: RunFolder) -> None:
    with pytest.raises(UseError, match="selec"):
        query(run, "selec 1")
    with pytest.raises(UseError, match="nope"):
        query(run, "SELECT nope FROM files")


def test_a_relative_folder_works(run: RunFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(run.path.parent)
    answer = query(RunFolder.open(Path(run.path.name)), "SELECT count(*) AS n FROM manifest")
    assert answer.to_pylist()[0]["n"] > 0
