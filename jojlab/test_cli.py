import json
import os
import pkgutil
import re
import signal
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest
from click.testing import CliRunner

from jojlab.cli import app
from jojlab.command_line.group import Group
from jojlab.trace.run_folder import RunFolder
from tests.captures import make_run, run_of, wal_capture
from tests.this_process import joj

WAL = "filesystem=ext4,journal_mode=wal"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    return make_run(tmp_path_factory.mktemp("cli") / "run", seeds=[1, 2], transactions=12)


@pytest.fixture(autouse=True)
def _own_cache(run: RunFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JOJ_CACHE", str(run.path.parent / "cache"))


def test_show_json_keeps_its_shape(run: RunFolder) -> None:
    answer = joj("show", run.path, "--json")
    assert answer.returncode == 0
    document = json.loads(answer.stdout)
    assert document["fingerprint"] == run.fingerprint
    case = document["cases"][0]
    assert case["case"] == {"filesystem": "ext4", "journal_mode": "truncate"}
    assert case["figures"]["bytes_per_commit"] == 69632 + 4096 / 12
    assert case["spread"]["bytes_per_commit"] == [69632 + 4096 / 12] * 2
    assert {"throughput_tps", "latency_ns_p50"} <= case["figures"].keys()
    assert case["seeds"] == [1, 2]
    assert (case["lost_events"], case["unattributed_bytes"]) == (0, 0)
    assert document["cases"][2]["figures"] == {}


def test_help_loads_nothing_that_reads_tables() -> None:
    code = """
import sys
from jojlab.cli import app
for arguments in (["--help"], ["bill", "--help"], ["list", "devices"]):
    app(arguments, standalone_mode=False)
print(sorted({"duckdb", "altair", "pyarrow", "pandas"} & sys.modules.keys()))
"""
    answer = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert answer.stdout.splitlines()[-1] == "[]"


def test_figures_that_are_kept_need_no_database(run: RunFolder, tmp_path: Path) -> None:
    code = f"""
import sys
from jojlab.cli import app
app(["show", {str(run.path)!r}], standalone_mode=False)
print(sorted({{"duckdb", "jinja2", "pyarrow"}} & sys.modules.keys()))
"""
    shown = [
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True,
            env={**os.environ, "JOJ_CACHE": str(tmp_path)},
        ).stdout.rpartition("[")
        for _ in range(2)
    ]  # fmt: skip
    assert shown[0][0] == shown[1][0]
    assert shown[1][2] == "]\n"
    assert "duckdb" in shown[0][2]


def test_show_hash_is_one_line(run: RunFolder) -> None:
    answer = joj("show", run.path, "--hash")
    assert answer.stdout == run.content_hash() + "\n"
    assert joj("show", run.path, "--hash", "--json").returncode == 2


def test_show_of_one_case(run: RunFolder) -> None:
    answer = joj("show", run.path, "--case", WAL)
    assert "fdatasync of test.db-wal" in answer.stdout
    unknown = joj("show", run.path, "--case", "nonsense")
    assert unknown.returncode == 2
    assert WAL in unknown.stderr


def test_lost_events_end_with_4(tmp_path: Path) -> None:
    builder = wal_capture({"journal_mode": "wal"}, 1, transactions=2)
    builder.lost_events, builder.incomplete_reasons = 5, ["a disk went away"]
    run = run_of(tmp_path, builder)
    for command in ("show", "report"):
        answer = joj(command, run.path)
        assert answer.returncode == 4, command
    assert "5 events of the tracer were lost" in joj("show", run.path).stdout
    for view in (("show", run.path), ("show", run.path, "--characterise"), ("explain", run.path)):
        found = json.loads(joj(*view, "--json").stdout)
        [case] = found.get("cases", [found])
        assert (case["lost_events"], case["incomplete_reasons"]) == (5, ["a disk went away"]), view
    assert "Incomplete" in (run.path / "report.html").read_text()


def test_show_has_the_memory_model_of_a_run_of_one_case(tmp_path: Path) -> None:
    run = run_of(tmp_path, wal_capture({"journal_mode": "wal"}, 1, transactions=2))
    names = ("loads", "stores", "bytes", "micro_tlb_misses", "walk_levels", "l1_misses")
    counts = dict.fromkeys((*names, "l2_misses", "added_ns"), 7)
    part = {"all": counts, "buffers": {}, "functions": {}}
    cases = [{"case_id": "a", "seeds": {"1": {"commit": part}}}]
    model = {"core": "arm11", "title": "A core", "sources": ["a manual"], "cases": cases}
    (run.path / "memory-model-arm11.json").write_text(json.dumps(model))
    answer = joj("show", run.path)
    assert "Memory model: A core; while transactions ran, one seed" in answer.stdout
    [head, row] = re.findall("^(?:case|a) .*", answer.stdout, re.MULTILINE)[-2:]
    assert head.split()[-2:] == ["added", "time"]
    assert row.split()[:2] == ["a", "7"]


def test_a_damaged_table_ends_with_4_and_its_name(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", seeds=[1], transactions=1)
    path = run.path / "captures" / WAL / "seed-1" / "requests.parquet"
    path.write_bytes(path.read_bytes()[:100])
    answer = joj("show", run.path)
    assert answer.returncode == 4
    assert str(path) in answer.stderr
    assert "remedy:" in answer.stderr


def test_diff_ends_with_1_when_a_figure_changed(run: RunFolder, tmp_path: Path) -> None:
    other = make_run(tmp_path / "other", seeds=[1, 2], transactions=13)
    assert joj("diff", run.path, run.path).returncode == 0
    answer = joj("diff", run.path, other.path, "--json")
    assert answer.returncode == 1
    figures = {change["figure"] for change in json.loads(answer.stdout)["changes"]}
    assert "transactions" in figures
    assert "writes_per_commit" not in figures
    assert "transactions" in joj("diff", run.path, other.path).stdout
    assert joj("diff", run.path, other.path, "--through", run.path).returncode == 1


def test_diff_refuses_to_go_through_a_run_of_other_cases(run: RunFolder, tmp_path: Path) -> None:
    other = run_of(tmp_path / "other", wal_capture({"journal_mode": "wal"}, 1))
    answer = joj("diff", run.path, run.path, "--through", other.path)
    assert answer.returncode == 2
    assert f"--through {other.path}: it measured no case of the two runs" in answer.stderr


def test_query_prints_json_and_csv(run: RunFolder) -> None:
    sql = "SELECT journal_mode, count(*) n FROM transactions WHERE seed = 1 GROUP BY 1 ORDER BY 1"
    assert json.loads(joj("query", run.path, sql, "--json").stdout) == [
        {"journal_mode": "truncate", "n": 12},
        {"journal_mode": "wal", "n": 13},
    ]
    assert joj("query", run.path, sql, "--csv").stdout == "journal_mode,n\ntruncate,12\nwal,13\n"
    assert joj("query", run.path, "DROP TABLE requests").returncode == 2
    twins = "SELECT 1 AS n, 2 AS n"
    assert joj("query", run.path, twins, "--csv").stdout == "n,n\n1,2\n"
    assert joj("query", run.path, twins).stdout.split() == ["n", "n", "1", "2"]
    refused = joj("query", run.path, twins, "--json")
    assert refused.returncode == 2
    assert "n AS other_name" in refused.stderr


def test_wrong_use_ends_with_2(tmp_path: Path) -> None:
    assert joj("show").returncode == 2
    assert joj("nonsense").returncode == 2
    answer = joj("show", tmp_path)
    assert answer.returncode == 2
    assert answer.stderr.startswith(f"joj: {tmp_path}: not a run")


def test_a_closed_pipe_is_quiet(run: RunFolder) -> None:
    sql = "SELECT a.* FROM requests AS a, requests AS b LIMIT 20000"
    for output in ("--csv", "--json"):
        command = f"{sys.executable} -m jojlab query '{run.path}' '{sql}' {output} | head -1"
        answer = subprocess.run(
            ["bash", "-c", f"{command}; echo ${{PIPESTATUS[0]}}"],
            capture_output=True,
            text=True,
            check=True,
        )
        assert answer.stderr == ""
        assert answer.stdout.splitlines()[-1] == "141"


def test_help_loads_nothing_heavy() -> None:
    script = (
        "import sys, jojlab.cli\n"
        "heavy = {'pyarrow', 'duckdb', 'altair', 'vl_convert', 'numpy', 'pandas'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    answer = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert answer.stdout.strip() == "[]", answer.stderr


@pytest.mark.parametrize("command", ["show", "report", "diff", "query"])
def test_help_has_examples(command: str) -> None:
    answer = joj(command, "--help")
    assert answer.returncode == 0
    assert f"joj {command} " in answer.stdout.split("Examples:")[1]


@pytest.mark.parametrize(
    "command", [["-h"], ["run", "-h"], ["bench", "-h"], ["device", "show", "-h"]]
)
def test_h_is_help(command: list[str]) -> None:
    answer = CliRunner().invoke(app, command)
    assert answer.exit_code == 0
    assert "Usage: " in answer.stdout
    assert "-h, --help" in answer.stdout


def test_the_table_of_commands_has_the_first_line_of_each_help() -> None:
    rows = list(app.subcommands.values())
    checked = 0
    while rows:
        row = rows.pop()
        if isinstance(row, Group):
            rows += row.subcommands.values()
            continue
        command = pkgutil.resolve_name(row.place)
        assert row.help == command.help.partition("\n")[0]
        checked += 1
    assert checked > 30


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_that_ends_joj_is_told(number: signal.Signals) -> None:
    code = """
import os, signal, sys
number = int(sys.argv.pop())
from jojlab import cli
@cli.app.command("waits")
def waits() -> None:
    try:
        print("waits", flush=True)
        signal.pause()
    finally:
        os.kill(os.getpid(), number)  # another one, while it cleans up
        print("cleaned up", flush=True)
cli.main()
"""
    command = [sys.executable, "-c", code, "waits", str(int(number))]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True) as joj_:
        assert joj_.stdout
        assert joj_.stdout.readline() == "waits\n"
        joj_.send_signal(number)
        out, err = joj_.communicate()
    assert (joj_.returncode, out) == (128 + number, "cleaned up\n")
    assert err == f"joj: ended by {number.name}\n"


def test_the_version_is_that_of_the_package() -> None:
    command = [sys.executable, "-m", "jojlab", "--version"]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    assert answer.returncode == 0, answer.stderr
    assert answer.stdout == f"joj {metadata.version('jojlab')}\n"


def test_show_by_fields_sorted_and_as_csv(run: RunFolder) -> None:
    shown = joj("show", run.path, "--by", "journal_mode", "--figure", "bytes_per_commit")
    assert shown.returncode == 0
    assert [line.split() for line in shown.stdout.splitlines()[1:3]] == [
        ["journal_mode:", "truncate", "wal"],
        ["68.33", "KiB", "29.33", "KiB"],
    ]
    csv = joj("show", run.path, "--by", "journal_mode", "--figure", "bytes_per_commit", "--csv")
    assert csv.stdout == (
        "figure,journal_mode=truncate,journal_mode=wal\n"
        "bytes_per_commit,69973.33333333333,30037.333333333332\n"
    )
    rows = joj("show", run.path, "--sort", "-journal_mode", "--csv").stdout.splitlines()
    assert rows[0].startswith(
        "case_id,status,seeds,at_risk,durability,filesystem,journal_mode,throughput_tps,"
    )
    assert [row.split(",journal_mode=")[1][:3] for row in rows[1:]] == ["wal", "tru", "off"]
    fastest = joj("show", run.path, "--sort", "bytes_per_commit", "--json")
    assert json.loads(fastest.stdout)["cases"][0]["case"]["journal_mode"] == "wal"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--by", "jurnal_mode"], "did you mean 'journal_mode'"),
        (["--by", "journal_mode", "--sort", "throughput_tps"], "exclude each other"),
        (["--csv", "--json"], "exclude each other"),
        (["--sort", "nothing"], "neither a figure nor a field"),
        (["--hash", "--csv"], "--hash takes no other options"),
    ],
)
def test_show_tells_wrong_use(run: RunFolder, options: list[str], words: str) -> None:
    answer = joj("show", run.path, *options)
    assert answer.returncode == 2
    assert words in answer.stderr


def test_query_has_the_figures_of_each_capture(run: RunFolder) -> None:
    sql = (
        "SELECT case_id, seed, journal_mode, bytes_per_commit, ftl_wa, transactions FROM figures "
        "WHERE seed = 1"
    )
    rows = json.loads(joj("query", run.path, sql, "--json").stdout)
    assert rows == [
        {"case_id": f"filesystem=ext4,journal_mode={mode}", "seed": 1, "journal_mode": mode,
         "bytes_per_commit": of_one, "ftl_wa": None, "transactions": 12}
        for mode, of_one in (("truncate", 69632 + 4096 / 12), ("wal", 28672 + 16384 / 12))
    ]  # fmt: skip
    absent = joj("query", run.path, "SELECT sum(ftl_wa) AS s FROM figures", "--json")
    assert json.loads(absent.stdout) == [{"s": None}]
    joined = (
        "SELECT count(*) AS n FROM figures JOIN transactions USING (case_id, seed) "
        "WHERE phase = 'commit'"
    )
    assert json.loads(joj("query", run.path, joined, "--json").stdout) == [{"n": 48}]
