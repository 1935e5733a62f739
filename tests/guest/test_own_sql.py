"""SQL of a user in a guest: two connections on one database, drawn and recorded scripts; every
transaction is there, and the same bytes come twice. Scripts are drawn until a power cut harms one.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from jojlab.analysis.run.summary import summarise
from jojlab.campaign.campaign import Campaign
from jojlab.campaign.images import images_of
from jojlab.campaign.jobs import RunProgress
from jojlab.campaign.power_cuts import observation_before_run
from jojlab.experiment.plan import plan
from jojlab.experiment.read import read
from jojlab.lab.lab import Lab
from jojlab.model.hazards import Harm
from tests.guest.experiments import assert_complete, run_experiment
from tests.this_process import joj

TOML = """
question = "What do two connections cost?"
[case]
scripts      = "app"
journal_mode = "wal"
[[variant]]
name         = "drawn"
workload     = "sql"
transactions = 37
[[variant]]
name         = "recorded"
workload     = "sql-recorded"
"""
SCRIPTS = {
    "schema.sql": "CREATE TABLE t (id INTEGER PRIMARY KEY, body TEXT);\n",
    "transaction-one.sql": "--! repeat 11\nBEGIN IMMEDIATE;\n"
    "INSERT INTO t (body) VALUES (:text(300));\nCOMMIT;\n--! end\n",
    "transaction-two.sql": "--! repeat 7\nINSERT INTO t (body) VALUES (:text(10,90));\n"
    "SELECT count(*) FROM t;\n--! end\n",
}
# Of the recorded scripts: 11 and 7 writes, 7 transactions that only read.
RECORDED = Counter({"write": 18, "read-only": 7})


@pytest.mark.full
def test_two_connections_lose_nothing_and_repeat_to_the_byte(lab: Lab, tmp_path: Path) -> None:
    (tmp_path / "app").mkdir()
    for name, text in SCRIPTS.items():
        (tmp_path / "app" / name).write_text(text)
    (tmp_path / "experiment.toml").write_text(TOML)
    runs = []
    for number in range(2):
        name = str(tmp_path / "experiment.toml")
        runs.append(run_experiment(lab, tmp_path / str(number), name, use_cache=False))
    assert_complete(runs[0])
    for (entry, _, first), (_, _, second) in zip(*(run.captures() for run in runs), strict=True):
        rows = first.read("transactions").to_pylist()
        rows = [row for row in rows if row["kind"] in RECORDED]
        assert len({row["tid"] for row in rows}) == 2, entry.case_id
        if entry.case_id == "recorded":
            assert Counter(row["kind"] for row in rows) == RECORDED
        for table in sorted(first.folder.glob("*.parquet")):
            other = (second.folder / table.name).read_bytes()
            assert table.read_bytes() == other, (entry.case_id, table.name)


ATTACHED = """
question = "Does a transaction over two WALs stay whole?"
[case]
workload     = "sql"
scripts      = "app"
journal_mode = "wal"
synchronous  = "full"
transactions = 30
# No block of the filesystem is torn: that would be harm of another kind.
"device.atomic_slots" = 1
"""
TWO_DATABASES = {
    "schema.sql": "--! database a.db\nCREATE TABLE t(x);\n--! database b.db\nCREATE TABLE u(x);\n",
    "transaction.sql": "--! database a.db\n--! attach b.db AS b\nBEGIN;\n"
    "INSERT INTO t VALUES (:key);\nINSERT INTO b.u VALUES (:text(100));\nCOMMIT;\n",
}


@pytest.mark.full
def test_a_transaction_over_attached_wals_may_be_split_and_that_is_no_contradiction(
    lab: Lab, tmp_path: Path
) -> None:
    (tmp_path / "app").mkdir()
    for name, text in TWO_DATABASES.items():
        (tmp_path / "app" / name).write_text(text)
    (tmp_path / "experiment.toml").write_text(ATTACHED)
    name = str(tmp_path / "experiment.toml")
    planned = plan(read(Path(name)))
    run = run_experiment(lab, tmp_path / "run", name)
    images = images_of(planned, lab.cache)
    steps = list(Campaign(planned, images, lab).cut_power(run, 100, RunProgress()))
    assert not any(step.failure for step in steps)
    summary = summarise(run)
    (case,) = summary.cases
    assert [each.kind for each in case.hazards] == [Harm.TRANSACTION]
    assert case.durability
    assert case.durability.outcomes["torn"]
    assert not summary.is_refuted
    # Known before it runs, as the adviser asks it, and after, by the manifest.
    assert observation_before_run(planned.experiment.cases[0]).databases == 2


@pytest.mark.full
@pytest.mark.parametrize(
    ("settings", "file"),
    [
        (("--set", "journal_mode=truncate"), "transaction.sql"),
        (("--set", "workload=replay"), "calls.strace"),
    ],
    ids=["sql", "files"],
)
def test_the_first_script_that_is_harmed_is_shrunk_and_kept(
    tmp_path: Path, settings: tuple[str, ...], file: str
) -> None:
    """A device that lies about flushes does harm, and no manual knows of it."""
    done = joj(
        *("verify", "durability", "--generate", "4", "--states", "16", "--json"),
        *("--set", "filesystem=ext4", "--set", "device.flush_lies=1", *settings),
        folder=tmp_path,
    )
    assert done.returncode == 1, done.stderr
    harm = json.loads(done.stdout)["harm"]
    assert 1 <= len(harm["script"]) <= harm["steps"]
    assert harm["durability"]["outcomes"]["kept"] < harm["durability"]["states"]
    kept = (tmp_path / "runs" / "generated" / file).read_text()
    if file == "transaction.sql":
        assert all(transaction in kept for transaction in harm["script"])
    assert kept
