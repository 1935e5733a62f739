"""Replays of recorded calls in a guest: several threads fill the tracer's ring, and recordings
commit and write what their programs do there.
"""

from __future__ import annotations

import json
import shlex
import shutil
from collections import Counter
from pathlib import Path

import pytest

from jojlab.analysis.commit.bill import Bill, commit_bills
from jojlab.lab.lab import Lab
from jojlab.trace.capture import Capture
from jojlab.trace.dataset import Dataset
from tests.guest.experiments import assert_complete, run_experiment
from tests.live.recordings import ENVIRONMENT, LONG_AGO, record_program

TOML = """
question = "What does a replay cost?"
[case]
workload = "replay"
recording = "recorded/script"
"""
THREADS = 3
# Each read is a bio of 280 bytes in the ring; a pause is due when 16 MiB of it are full.
ROUNDS = 21_000


def write_experiment(folder: Path, script: str) -> str:
    """Write an experiment file and its script; return the name of the experiment."""
    (folder / "recorded").mkdir()
    (folder / "recorded" / "script").write_text(script)
    (folder / "experiment.toml").write_text(TOML)
    return str(folder / "experiment.toml")


def busy_script() -> str:
    """Threads that read past the page cache, and now and then sync a file that is common to all.

    The last call of one thread is late: it sleeps when the others fill the ring.
    """
    lines = ['1 0 open "/data/common" O_RDWR|O_CREAT 50']
    for thread in range(1, THREADS + 1):
        lines.append(f'{thread} 1 open "/data/{thread}.db" O_RDONLY|O_DIRECT {thread + 100}')
    for number in range(ROUNDS):
        for thread in range(1, THREADS + 1):
            begin = f"{thread} {10 + number}"
            lines.append(f"{begin} pread {thread + 100} {number % 256 * 4096} 4096")
            if number % 400 == 0:
                lines.append(f"{begin} pwrite 50 {number % 64 * 4096} 4096")
                lines.append(f"{begin} fsync 50 0")
    lines.append(f'{THREADS} 60000000 access "/data/common" 0')
    return "\n".join(lines) + "\n"


# Programs and their arguments, and what else they start: SQLite's shell (of other journal modes
# tests/live/test_replay_bytes.py shows it), git with its syncs, and vim, which saves a file that
# was there.
SQL = "CREATE TABLE t(x); " + "INSERT INTO t VALUES (zeroblob(900)); " * 7
GIT = (
    "git -c core.fsync=all init -q --template= here && cd here && seq 2000 >a && "
    f"{LONG_AGO} a && git add a && git -c core.fsync=all commit -qm 1 && cd .. && "
    "git -c core.fsync=all clone -q --template= here there"
)
PROGRAMS = {
    "wal": (("sqlite3", "app.db", f"PRAGMA journal_mode = wal; {SQL}"), ""),
    "git": (("sh", "-c", GIT), "git seq touch git-upload-pack"),
    "vim": (
        ("vim", "-es", "-u", "NONE", "-c", "set fsync|normal ihello", "-c", "wq", "note.txt"),
        "",
    ),
}
KEPT, OTHERS = "wal", ("git", "vim")
# vim gives its file an access control list, whose contents are not recorded.
LEFT_OUT = {"vim": ["setxattr"]}


def recorded_programs(folder: Path, names: tuple[str, ...]) -> str:
    """Record programs; write an experiment file with each and its recording. Its name."""
    variants = []
    for name in names:
        command, others = PROGRAMS[name]
        (here := folder / f"{name}-files").mkdir()
        if name == "vim":
            (here / "note.txt").write_text("a line\n" * 5000)
        shutil.copytree(here, folder / f"{name}-before")
        # With its contents, of which the replay writes the same bytes.
        options = ("--data", "keep") if name == KEPT else ()
        recording = record_program(here, folder / f"{name}-recording", *command, options=options)
        assert recording.code == 0
        environment = [f"{key}={value}" for key, value in ENVIRONMENT.items() if "GIT_" in key]
        for kind, fields in (
            (
                "program",
                {
                    "program": command[0],
                    "arguments": shlex.join(command[1:]),
                    "files": f"{name}-before",
                    "environment": shlex.join(environment),
                    "other_programs": others,
                },
            ),
            ("replay", {"recording": f"{name}-recording", "recorded_root": str(here)}),
        ):
            fields = {"name": f"{name}-{kind}", "workload": kind, **fields}
            lines = [f"{field} = {json.dumps(value)}" for field, value in fields.items()]
            variants.append("\n".join(["[[variant]]", *lines]))
    text = 'question = "Does a recording write what its program writes?"\n[case]\n'
    (folder / "experiment.toml").write_text(text + "\n".join(variants) + "\n")
    return str(folder / "experiment.toml")


def run_replayed(lab: Lab, out: Path, name: str) -> Capture:
    run = run_experiment(lab, out, name, use_cache=False)
    assert_complete(run)
    [(_, _, capture)] = run.captures()
    return capture


@pytest.mark.full
def test_a_replay_that_fills_the_ring_ends_and_repeats_to_the_byte(
    lab: Lab, tmp_path: Path
) -> None:
    name = write_experiment(tmp_path, busy_script())
    first, second = (run_replayed(lab, tmp_path / str(number), name) for number in range(2))
    # It paused, with threads that slept or waited for their turn on the common file.
    phases = Counter(phase["name"] for phase in first.manifest["phases"])
    assert phases["commit"] > 1
    kinds = Counter(row["kind"] for row in first.read("transactions").to_pylist())
    assert kinds["read"] == THREADS * ROUNDS
    assert first.manifest["replay"]["otherwise"] == {}
    for table in sorted(first.folder.glob("*.parquet")):
        assert table.read_bytes() == (second.folder / table.name).read_bytes(), table.name


def written_bytes(bill: Bill) -> Counter[str]:
    """Bytes written to the device in a whole run, by block type."""
    found: Counter[str] = Counter()
    for row in bill.rows:
        if row.operation == "write":
            found[row.block_type] += row.bytes
    return found


@pytest.mark.parametrize(
    "names", [(KEPT,), pytest.param(OTHERS, marks=pytest.mark.full)], ids=["kept", "others"]
)
def test_a_recording_writes_what_its_program_writes(
    lab: Lab, tmp_path: Path, names: tuple[str, ...]
) -> None:
    name = recorded_programs(tmp_path, names)
    run = run_experiment(lab, tmp_path / "run", name, use_cache=False)
    captures = {entry.case_id: capture for entry, _, capture in run.captures()}
    bills = commit_bills(Dataset.from_runs(run))
    for each in names:
        replay = captures[f"{each}-replay"].manifest["replay"]
        assert replay["otherwise"] == {}, each
        assert (replay["kept_writes"] > 10) == (replay["seeded_writes"] == 0) == (each == KEPT), (
            each
        )
        assert [left["name"] for left in replay["left_out"]] == LEFT_OUT.get(each, []), each
        kinds = [
            [row["kind"] for row in captures[f"{each}-{kind}"].read("transactions").to_pylist()]
            for kind in ("program", "replay")
        ]
        assert kinds[0] == kinds[1], each
        assert len(kinds[0]) > 2, each
        program, found = (written_bytes(bills[f"{each}-{kind}"]) for kind in ("program", "replay"))
        assert program["fs-journal"] > 0, each
        assert program.keys() == found.keys(), each
        for block_type, length in program.items():
            assert abs(found[block_type] - length) <= length / 50, (each, program, found)
        assert not captures[f"{each}-program"].is_incomplete, each
        assert captures[f"{each}-replay"].is_incomplete == (each in LEFT_OUT), each


@pytest.mark.full
def test_a_replay_of_a_recording_repeats_to_the_byte(lab: Lab, tmp_path: Path) -> None:
    name = recorded_programs(tmp_path, (KEPT,))
    first, second = (
        run_experiment(lab, tmp_path / place, name, "variant=wal-replay", use_cache=False)
        for place in ("run", "again")
    )
    [(_, _, one)], [(_, _, other)] = first.captures(), second.captures()
    for table in sorted(one.folder.glob("*.parquet")):
        assert table.read_bytes() == (other.folder / table.name).read_bytes(), table.name
