"""Replays of recorded calls in a guest: several threads fill the tracer's ring, and a recording
writes the bytes that its program writes there.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from jojlab.analysis.commit.bill import Bill, commit_bills
from jojlab.lab.lab import Lab
from jojlab.trace.capture import Capture
from jojlab.trace.dataset import Dataset
from tests.guest.experiments import assert_complete, run_experiment
from tests.live.recordings import recorded

TOML = """
question = "What does a replay cost?"
[case]
workload = "replay"
script   = "recorded/script"
"""
THREADS = 3
# Each read is a bio of 280 bytes in the ring; a pause is due when 16 MiB of it are full.
ROUNDS = 24_000


def written(folder: Path, script: str) -> str:
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


RECORDED_TOML = """
question = "Does a recording write what its program writes?"
[[variant]]
name          = "program"
workload      = "program"
program       = "sqlite3"
arguments     = "app.db '{sql}'"
[[variant]]
name          = "recording"
workload      = "replay"
recording     = "recording"
recorded_root = "{root}"
"""
SQL = "CREATE TABLE t(x); " + "INSERT INTO t VALUES (zeroblob(900)); " * 7


def replayed(lab: Lab, out: Path, name: str) -> Capture:
    run = run_experiment(lab, out, name, use_cache=False)
    assert_complete(run)
    [(_, _, capture)] = run.captures()
    return capture


def test_a_replay_that_fills_the_ring_ends_and_repeats_to_the_byte(
    lab: Lab, tmp_path: Path
) -> None:
    name = written(tmp_path, busy_script())
    first, second = (replayed(lab, tmp_path / str(number), name) for number in range(2))
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


def test_a_recording_writes_what_its_program_writes(lab: Lab, tmp_path: Path) -> None:
    (here := tmp_path / "here").mkdir()
    assert recorded(here, tmp_path / "recording", "sqlite3", "app.db", SQL).code == 0
    text = RECORDED_TOML.format(sql=SQL, root=here)
    (tmp_path / "experiment.toml").write_text(text)
    name = str(tmp_path / "experiment.toml")
    run, again = (
        run_experiment(lab, tmp_path / place, name, *chosen, use_cache=False)
        for place, chosen in (("run", ()), ("again", ("variant=recording",)))
    )
    assert_complete(run)
    captures = {entry.case_id: capture for entry, _, capture in run.captures()}
    [(_, _, second)] = again.captures()
    first = captures["recording"]
    assert (first.manifest["replay"]["otherwise"], first.manifest["replay"]["left_out"]) == ({}, [])
    for table in sorted(first.folder.glob("*.parquet")):
        assert table.read_bytes() == (second.folder / table.name).read_bytes(), table.name
    bills = commit_bills(Dataset.of(run))
    program, replay = (written_bytes(bills[case_id]) for case_id in ("program", "recording"))
    assert program["fs-journal"] > 0 and program.keys() == replay.keys()
    assert all(abs(replay[it] - program[it]) <= program[it] / 50 for it in program), (
        program,
        replay,
    )
