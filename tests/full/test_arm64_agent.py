"""The agent of arm64 on a kernel of arm64: it traces a bench to the byte, records foreign programs
call by call as strace has them, makes their calls again and those of a recording of x86-64, and
records SQL.
"""

from __future__ import annotations

import functools
import json
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

from jojlab.foundation.cache import Cache
from jojlab.live.runner import live_settings
from jojlab.trace.capture import Capture
from tests.full.arm64_guest import run_script
from tests.live.recordings import (
    ENVIRONMENT,
    CallSummary,
    Recording,
    read_strace,
    record_program,
    recorded_calls,
    strace_of,
)
from tests.live.test_record import PROGRAMS as RECORDED
from tests.live.test_record_by_ebpf import comparable_calls, snapshots_of
from tests.live.test_replay_again import (
    ReplayedCall,
    file_calls,
    read_replay,
    replay_calls,
    replay_case,
)
from tests.live.tracing import read, rows

FILESYSTEMS = ("ext4", "xfs", "btrfs", "f2fs")
TRANSACTIONS = 30
# Python is not in the guest; what else they start is busybox's.
PROGRAMS = {
    **{name: program for name, program in RECORDED.items() if "python3" not in program},
    # It opens past the page cache, and leaves that by F_SETFL for what is less than a block.
    "dd": (
        *("dd", "if=/dev/zero", "of=direct", "oflag=direct", "bs=4096", "count=10000B"),
        "status=none",  # its last message tells how long it took: two runs differ
    ),
}
# How each is run: under the recorder in three ways, and under strace.
WAYS = {
    "ebpf": ("--by", "ebpf"),
    "ptrace": ("--by", "ptrace"),
    "kept": ("--by", "ptrace", "--data", "keep"),
    "log": (),
}
OF_X86_64 = "of-x86-64"
# What arm64 makes of a call that its kernel lacks.
BY_DIRECTORY = {"access": "faccessat", "open": "openat", "readlink": "readlinkat"}
# By the numbers of x86_64: O_WRONLY, O_CREAT, O_TRUNC and O_DIRECT; the same and O_LARGEFILE, as
# open files have it; without O_DIRECT.
OPENED, DIRECT, BUFFERED = 0o41101, 0o140001, 0o100001
SQL = ("CREATE TABLE t(x)", "INSERT INTO t VALUES (1.5)", "INSERT INTO t SELECT x FROM t")
HERE = Path("/disk/here")
AGAIN = Path("/disk/again")


Programs = Callable[[str], Path]


@pytest.fixture(scope="module")
def programs(cache: Cache, tmp_path_factory: pytest.TempPathFactory) -> Programs:
    """Return what a guest leaves of a program: recordings, strace's log, a replay under recorder
    and tracer. Each program has a guest of its own, at its first use, so that no test takes long.
    """
    folder = tmp_path_factory.mktemp("programs")

    @functools.cache
    def run(name: str) -> Path:
        (place := folder / name).mkdir()
        files, recording = {"case": place / "case"}, f"/out/{name}/kept"
        commands = ["ln -s git /sbin/git-upload-pack", "mkfs.ext4 -q /dev/vda"]
        commands += ["mount /dev/vda /disk", f"mkdir -p /out/{name}/tables"]
        if name == OF_X86_64:
            (here := place / "here").mkdir()
            files["recording"], recording = place / "recording", "/files/recording"
            dd = record_program(
                here, files["recording"], *PROGRAMS["dd"], options=("--data", "keep")
            )
            assert dd.code == 0
        else:
            commands += record_commands(name)
        files["case"].write_text(replay_case(recording))
        commands += replay_commands(name)
        return run_script(cache, place / "guest", script(*commands), files) / name

    return run


def record_commands(name: str) -> list[str]:
    """Commands that run a program in HERE in each of the WAYS."""
    environment = {**ENVIRONMENT, "PATH": "/sbin"}
    alike = ["env", "-i", *(f"{key}={value}" for key, value in environment.items())]
    out, commands = f"/out/{name}", []
    for place, options in WAYS.items():
        recorder = ["joj-agent", "record", *options, "-o", f"{out}/{place}", "--"]
        before = recorder if options else strace_of(f"{out}/log")
        commands += [
            f"rm -rf {HERE}; mkdir {HERE}; cd {HERE}",
            shlex.join([*alike, *before, *PROGRAMS[name]]) + " >/dev/null",
        ]
    return commands


def replay_commands(name: str) -> list[str]:
    """Commands that make a replay in AGAIN under the recorder, and both under the tracer."""
    out = f"/out/{name}"
    bench = ["joj-agent", "bench", "--directory", str(AGAIN), "--output", f"{out}/tables"]
    recorder = ["joj-agent", "record", "--by", "ptrace", "--data", "hash", "-o", f"{out}/second"]
    return [
        f"rm -rf {AGAIN}; mkdir {AGAIN}; cd {AGAIN}",
        f"joj-agent trace --json -o {out}/traced -- {shlex.join([*recorder, '--', *bench])} "
        f"</files/case | tail -n 1 >{out}/seen.json",
    ]


def script(*commands: str) -> str:
    """A script of the shell."""
    return "\n".join(commands) + "\n"


def test_a_bench_is_traced_to_the_byte(cache: Cache, tmp_path: Path) -> None:
    case = tmp_path / "case"
    asked = {"workload": "sqlite-insert", "journal_mode": "truncate"}
    counts = {"transactions": TRANSACTIONS, "warmup_transactions": 0}
    settings = live_settings({**asked, **counts}, "test")
    case.write_text(json.dumps({"seed": 1, "case": settings}))
    commands = []
    for filesystem in FILESYSTEMS:
        out = f"/out/{filesystem}"
        bench = f"joj-agent bench --directory . --output {out}/bench </files/case >/dev/null"
        traced = shlex.join(["sh", "-c", f"{bench} && sync -f ."])
        commands += [
            "dd if=/dev/zero of=/dev/vda bs=1M count=8",
            f"mkfs.{filesystem} /dev/vda && mount /dev/vda /disk && mkdir -p {out}/bench",
            f"cd /disk && joj-agent trace --json -o {out}/traced -- {traced} >{out}/seen.json",
            "cd / && umount /disk",
        ]
    left = run_script(cache, tmp_path / "guest", script(*commands), {"case": case})
    commits = {}
    for filesystem in FILESYSTEMS:
        assert_attributed(left / filesystem)
        capture = Capture.open(left / filesystem / "bench")
        kinds = [row["kind"] for row in capture.read("transactions").to_pylist()]
        assert kinds.count("insert") == TRANSACTIONS, (filesystem, kinds)
        tables = read(left / filesystem / "traced")
        written = {
            name: sum(
                row["length_bytes"]
                for row in tables.written_runs(block_type="data")
                if str(row["file"]).endswith(f"/{name}")
            )
            for name in ("main.db", "main.db-journal")
        }
        # Each commit writes at least a database page, and a journal with its header.
        assert written["main.db"] >= TRANSACTIONS * 4096, (filesystem, written)
        assert written["main.db-journal"] >= TRANSACTIONS * 4096, (filesystem, written)
        manifest = {
            row["key"]: row["value"] for row in rows(left / filesystem / "traced", "manifest")
        }
        program = json.loads(manifest["watch"])
        assert (program["rollbacks"], program["lost_calls"]) == (0, 0), (filesystem, program)
        commits[filesystem] = program["commits"]
    # The inserts, and what prepares the database: as many on every filesystem.
    assert commits["ext4"] > TRANSACTIONS
    assert len(set(commits.values())) == 1, commits


def assert_attributed(folder: Path) -> None:
    """Every byte of a tracing has an owner, and nothing was lost."""
    seen = json.loads((folder / "seen.json").read_text())
    lost = (seen["lost_events"], seen["unattributed_bytes"], seen["incomplete_reasons"])
    assert lost == (0, 0, []), (folder, lost)


def as_of_x86_64(call: CallSummary) -> CallSummary:
    """A call of strace, with what F_GETFL gave in numbers of x86_64: two pairs change places."""
    name, paths, numbers, result = call
    if name == "fcntl" and numbers[1] == "F_GETFL" and isinstance(result, int):
        others = result & ~0o740000
        result = others | (result & 0o140000) << 2 | (result & 0o600000) >> 2
    return name, paths, numbers, result


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_recording_has_the_calls_that_strace_sees(programs: Programs, name: str) -> None:
    by_ebpf, by_ptrace = (Recording(programs(name) / by, 0) for by in ("ebpf", "ptrace"))
    wanted = [
        [as_of_x86_64(said) for said in thread]
        for thread in read_strace(HERE, programs(name) / "log")
    ]
    assert sum(map(len, wanted)) > 10
    for recording in (by_ebpf, by_ptrace):
        assert recording.manifest["incomplete_reasons"] == []
        assert recording.manifest["architecture"] == "aarch64"
        assert recorded_calls(recording, HERE) == wanted
    assert comparable_calls(by_ebpf, HERE) == comparable_calls(by_ptrace, HERE)
    assert snapshots_of(by_ebpf, HERE) == snapshots_of(by_ptrace, HERE)


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_replay_makes_the_calls_of_the_program(programs: Programs, name: str) -> None:
    first, second = (Recording(programs(name) / place, 0) for place in ("kept", "second"))
    calls, replay = read_replay(second, programs(name) / "tables", AGAIN)
    assert (replay["otherwise"], replay["left_out"], replay["reasons"]) == ({}, [], [])
    # Busybox copies by sendfile(2), which writes what it reads.
    assert (replay["kept_writes"] > 0, replay["seeded_writes"]) == (name != "cp", 0)
    assert_attributed(programs(name))
    if len(first.table("threads")) == 1:
        assert without_munmap(calls) == without_munmap(file_calls(first, replay))


def without_munmap(calls: list[ReplayedCall]) -> list[ReplayedCall]:
    """Calls but those that depend on where memory was."""
    return [call for call in calls if call[0] != "munmap"]


def flags_of_direct(recording: Recording) -> tuple[list[int], list[int], list[int]]:
    """Flags of dd's file: what it was opened with, what F_GETFL gave, what F_SETFL was given."""
    opened = [row for row in recording.calls("openat") if (row["path"] or "").endswith("direct")]
    control = recording.calls("fcntl")
    return (
        [row["flags"] & ~0o2000000 for row in opened],  # a replay's has O_CLOEXEC
        # A replay looks at others before it begins.
        [
            row["result"]
            for row in control
            if row["command"] == "F_GETFL" and row["result"] & 0o40000
        ],
        [row["flags"] for row in control if row["command"] == "F_SETFL"],
    )


def test_flags_of_open_are_those_of_x86_64(programs: Programs) -> None:
    for place in ("ebpf", "ptrace"):
        found = flags_of_direct(Recording(programs("dd") / place, 0))
        assert found == ([OPENED], [DIRECT], [BUFFERED]), (place, found)


def test_a_recording_of_x86_64_is_replayed(programs: Programs) -> None:
    first = Recording(programs(OF_X86_64).parents[2] / "recording", 0)
    second = Recording(programs(OF_X86_64) / "second", 0)
    calls, replay = read_replay(second, programs(OF_X86_64) / "tables", AGAIN)
    assert (replay["recorded_architecture"], replay["architecture"]) == ("x86_64", "aarch64")
    assert (replay["otherwise"], replay["left_out"], replay["reasons"]) == ({}, [], [])
    wanted = without_munmap(file_calls(first, replay))
    assert without_munmap(calls) == [
        (BY_DIRECTORY.get(str(name), name), *rest) for name, *rest in wanted
    ]
    opened, gotten, given = flags_of_direct(second)
    assert (opened, gotten, given) == ([OPENED], [DIRECT], [BUFFERED & ~0o100001])
    assert flags_of_direct(first) == ([OPENED], [DIRECT], [BUFFERED])


@pytest.mark.parametrize("name", [name for name in PROGRAMS if name not in ("cp", "git")])
def test_a_recording_of_arm64_is_replayed_here(
    programs: Programs, tmp_path: Path, name: str
) -> None:
    first = Recording(programs(name) / "kept", 0)
    calls, replay = replay_calls(first.folder, tmp_path, ("--data", "hash"))
    assert (replay["recorded_architecture"], replay["architecture"]) == ("aarch64", "x86_64")
    assert (replay["otherwise"], replay["left_out"], replay["reasons"]) == ({}, [], [])
    assert without_munmap(calls) == without_munmap(file_calls(first, replay))
    if name == "dd":
        assert flags_of_direct(Recording(tmp_path / "second", 0))[:2] == ([OPENED], [DIRECT])


def test_the_preload_library_records_sql(cache: Cache, tmp_path: Path) -> None:
    sqlite3 = shlex.join(["sqlite3", "a.db", "; ".join(SQL)])
    commands = [f"mkdir -p {HERE}; cd {HERE}", f"joj-agent record --sql -o /out/sql -- {sqlite3}"]
    left = run_script(cache, tmp_path / "guest", script(*commands), {})
    recording = Recording(left / "sql", 0)
    assert recording.manifest["incomplete_reasons"] == []
    assert recording.manifest["architecture"] == "aarch64"
    told_sql = [row["sql"].rstrip("; ") for row in recording.table("statements")]
    assert [sql for sql in told_sql if sql in SQL] == list(SQL), told_sql
