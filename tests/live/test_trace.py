"""joj trace on this kernel: foreign programs from start to end, and every way a tracing can end."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from jojlab.analysis.rows.completeness import completeness
from jojlab.foundation.places import agent_path
from jojlab.trace.dataset import Dataset
from jojlab.trace.run_folder import RunFolder
from tests import this_process
from tests.hangs import HANG_S, await_end
from tests.live.conftest import CHECKOUT, joj
from tests.live.loop import Loop, mounted_loop, need_tracer

FinishedRun = subprocess.CompletedProcess[str]


@pytest.fixture(scope="module")
def loop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Loop]:
    with mounted_loop("ext4", tmp_path_factory.mktemp("ext4")) as loop:
        yield loop


def start(
    loop: Loop, *arguments: str | Path, before: tuple[str, ...] = ()
) -> subprocess.Popen[str]:
    """Start joj trace in the filesystem, in a process group of its own."""
    target = os.environ.get("CARGO_TARGET_DIR", "target")
    changes = {"PYTHONPATH": str(CHECKOUT), "CARGO_TARGET_DIR": str(CHECKOUT / target)}
    return subprocess.Popen(
        [*before, sys.executable, "-m", "jojlab", "trace", *map(str, arguments)],
        cwd=loop.directory,
        env={**os.environ, **changes},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        process_group=0,
    )


def trace(loop: Loop, *arguments: str | Path, before: tuple[str, ...] = ()) -> FinishedRun:
    """Run joj trace to its end."""
    with start(loop, *arguments, before=before) as process:
        out, err = process.communicate(timeout=HANG_S)
    return FinishedRun(arguments, process.returncode, out, err)


def written_bytes(out: Path) -> dict[str, int]:
    """Bytes of data written, by path."""
    sums = Dataset.from_runs(RunFolder.open(out)).rows(
        "SELECT path, sum(length_bytes) AS bytes FROM page_runs JOIN files USING (file_id) "
        "WHERE block_type = 'data' GROUP BY path"
    )
    return {row["path"]: int(row["bytes"]) for row in sums}


def test_the_exit_code_is_the_commands_and_its_writes_are_seen(loop: Loop, tmp_path: Path) -> None:
    command = "dd if=/dev/zero of=x bs=4096 count=25 conv=fsync status=none; echo said; exit 7"
    answer = trace(loop, "-o", tmp_path / "run", "--", "sh", "-c", command)
    assert (answer.returncode, answer.stdout) == (7, "said\n"), answer.stderr
    assert written_bytes(tmp_path / "run")["/x"] == 25 * 4096
    answer_lines, _, details = answer.stderr.partition("\n\n")
    assert len(answer_lines.splitlines()) <= 6
    assert "0 events lost, 0 bytes unattributed" in details
    # Its one sync is what it made durable.
    assert answer_lines.startswith("sh made 1 sync in ")
    # What came while it was being started is within the time that was traced.
    [row] = Dataset.from_runs(RunFolder.open(tmp_path / "run")).rows(
        "SELECT max(coalesce(complete_ns, queue_ns)) - min(queue_ns) AS span_ns, "
        "(SELECT CAST(value AS BIGINT) FROM manifest WHERE key = 'traced_ns') AS traced_ns "
        "FROM requests WHERE phase = 'commit'"
    )
    assert 0 < row["span_ns"] <= row["traced_ns"]


@pytest.mark.full
def test_a_big_import_by_the_sqlite_shell_is_explained_to_the_byte(
    loop: Loop, tmp_path: Path
) -> None:
    table = tmp_path / "table.csv"
    table.write_text("".join(f"{n},{'x' * (n % 97)},{n * n}\n" for n in range(200_000)))
    script = f".mode csv\n.import {table} t\n"
    sql = loop.directory.parent / "script.sql"
    sql.write_text("CREATE TABLE t (a, b, c);\n" + script)
    out = tmp_path / "run"
    answer = trace(
        loop, "-o", out, "--json", "--", "sh", "-c", f"sqlite3 big.db < {sql}; sync -f ."
    )
    assert answer.returncode == 0, answer.stderr
    seen = json.loads(answer.stdout)
    assert (seen["lost_events"], seen["unattributed_bytes"]) == (0, 0)
    # Every page of the database was written at least once.
    assert written_bytes(out)["/big.db"] >= (loop.directory / "big.db").stat().st_size
    assert not any(
        missing.is_incomplete
        for missing in completeness(Dataset.from_runs(RunFolder.open(out))).values()
    )


def test_a_package_install_is_explained_to_the_byte(loop: Loop, tmp_path: Path) -> None:
    package = tmp_path / "package"
    (package / "DEBIAN").mkdir(parents=True)
    control = (
        "Package: joj-test\nVersion: 1\nArchitecture: all\nMaintainer: nobody\nDescription: x\n"
    )
    (package / "DEBIAN" / "control").write_text(control)
    share = package / "usr" / "share" / "joj-test"
    share.mkdir(parents=True)
    for number in range(60):
        (share / f"file-{number}.so").write_bytes(bytes([number]) * (5000 + 137 * number))
    deb = tmp_path / "joj-test.deb"
    subprocess.run(["dpkg-deb", "--build", str(package), str(deb)], check=True, capture_output=True)
    root = loop.directory / "root"
    (root / "var/lib/dpkg/info").mkdir(parents=True)
    (root / "var/lib/dpkg/status").touch()
    out = tmp_path / "run"
    install = ("dpkg", "--root", root, "--force-depends", "--force-script-chrootless", "-i", deb)
    answer = trace(loop, "-o", out, "--", *install)
    assert answer.returncode == 0, answer.stderr
    # dpkg syncs every file before it renames it into place.
    written = written_bytes(out)
    for number in range(60):
        whole_pages = -(-(5000 + 137 * number) // 4096) * 4096
        paths = [
            path
            for path in written
            if path.startswith(f"/root/usr/share/joj-test/file-{number}.so")
        ]
        assert sum(written[path] for path in paths) == whole_pages, paths
    # All else too: nothing is of an unknown type, and every file that was written has a name.
    data = Dataset.from_runs(RunFolder.open(out))
    types = set(data.columns("SELECT DISTINCT block_type FROM page_runs")["block_type"])
    assert {"data", "fs-journal"} <= types <= {"data", "fs-journal", "fs-metadata"}
    assert "" not in written
    reasons = json.loads(show_run(out).stdout)["cases"][0]["incomplete_reasons"]
    assert reasons == []


def test_ctrl_c_ends_it_and_keeps_what_was_seen(loop: Loop, tmp_path: Path) -> None:
    out = tmp_path / "run"
    command = (
        "dd if=/dev/zero of=y bs=4096 count=5 conv=fsync status=none; echo ready; exec sleep 60"
    )
    process = start(loop, "-o", out, "--", "sh", "-c", command)
    assert process.stdout
    assert process.stdout.readline() == "ready\n"
    os.killpg(process.pid, signal.SIGINT)
    process.communicate(timeout=HANG_S)
    assert process.returncode == 128 + signal.SIGINT
    assert written_bytes(out)["/y"] == 5 * 4096
    assert not json.loads(show_run(out).stdout)["cases"][0]["incomplete_reasons"]


def show_run(out: Path) -> FinishedRun:
    command = [sys.executable, "-m", "jojlab", "show", str(out), "--json"]
    environment = {**os.environ, "PYTHONPATH": str(CHECKOUT)}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.full
def test_segments_survive_a_kill_and_say_that_they_are_incomplete(
    loop: Loop, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    write = "dd if=/dev/zero of=z bs=4096 count=5 conv=fsync status=none; echo ready; exec sleep 60"
    process = start(loop, "-o", out, "--", "sh", "-c", write)
    assert process.stdout
    assert process.stdout.readline() == "ready\n"
    segments = out / "captures/trace/seed-0/requests"
    while not list(segments.glob("*.parquet")):  # written every ten seconds
        assert process.poll() is None
        time.sleep(0.1)
    os.killpg(process.pid, signal.SIGKILL)
    await_end(process)
    assert written_bytes(out)["/z"] == 5 * 4096
    answer = show_run(out)
    assert answer.returncode == 4, answer.stderr
    reasons = json.loads(answer.stdout)["cases"][0]["incomplete_reasons"]
    assert reasons == ["the tracing was not ended properly"]


def test_the_end_of_a_process_or_a_time_ends_a_trace(loop: Loop, tmp_path: Path) -> None:
    with subprocess.Popen(["sleep", "1"]) as sleeper:
        answer = trace(loop, "-o", tmp_path / "a", "--pid", str(sleeper.pid))
    assert answer.returncode == 0, answer.stderr
    answer = trace(loop, "-o", tmp_path / "b", "--device", loop.device, "--duration", "0.2")
    assert answer.returncode == 0, answer.stderr


# Writes three pages of a file past the page cache, from a thread each, once it is told to.
DIRECT_WRITER = """
import mmap, os, sys, threading
PAGES, PAGE = 3, 4096
file = os.open(sys.argv[1], os.O_CREAT | os.O_RDWR | os.O_DIRECT)
page = mmap.mmap(-1, PAGE)
for place in range(2 * PAGES):
    os.pwrite(file, page, place * PAGE)
os.fsync(file)
print("ready", flush=True)
sys.stdin.readline()
for place in range(PAGES):
    threading.Thread(target=os.pwrite, args=(file, page, 2 * place * PAGE)).start()
"""


def test_requests_that_are_under_way_at_the_end_are_no_loss(tmp_path: Path) -> None:
    """The disk is a file of a filesystem that is frozen: it does nothing until that is thawed."""
    (tmp_path / "below").mkdir()
    with mounted_loop("ext4", tmp_path / "below") as below:
        folder = below.directory / "disk"
        folder.mkdir()
        with mounted_loop("ext4", folder) as loop, contextlib.ExitStack() as undo:
            pipe = subprocess.PIPE
            command = [sys.executable, "-c", DIRECT_WRITER, str(loop.directory / "file")]
            writer = undo.enter_context(subprocess.Popen(command, stdin=pipe, stdout=pipe))
            assert writer.stdin
            assert writer.stdout
            assert writer.stdout.readline() == b"ready\n"
            frozen = str(below.directory)
            subprocess.run(["fsfreeze", "--freeze", frozen], check=True, timeout=HANG_S)
            # Before anything else ends: nothing on the disk can.
            undo.callback(subprocess.run, ["fsfreeze", "--unfreeze", frozen], check=True)
            where = ("-o", tmp_path / "run", "--device", loop.device)
            process = undo.enter_context(
                start(Loop("", tmp_path), *where, "--duration", "2", "--json")
            )
            assert process.stderr
            assert "tracing" in process.stderr.readline()
            writer.stdin.write(b"write\n")
            writer.stdin.flush()
            out, err = process.communicate(timeout=HANG_S)
    assert process.returncode == 0, err
    found = json.loads(out)
    assert (found["under_way_requests"], found["incomplete_reasons"]) == (3, [])
    words = "3 requests were under way at the end: their times are not known"
    assert words in found["details"]
    missing = completeness(Dataset.from_runs(RunFolder.open(tmp_path / "run")))["trace"]
    assert (missing.is_incomplete, missing.notes) == (False, (words,))


@pytest.mark.full
def test_the_tracers_own_writes_are_told_apart(loop: Loop) -> None:
    # It writes for the first time after ten seconds, and a segment is there once it is synced.
    command = (
        "dd if=/dev/zero of=w bs=4096 count=50 oflag=direct,dsync status=none;"
        "until ls here/captures/trace/seed-0/requests/*.parquet; do sleep 0.1; done >&2 2>/dev/null"
    )
    answer = trace(loop, "-o", "here", "--json", "--", "sh", "-c", command)
    assert answer.returncode == 0, (answer.stdout, answer.stderr)
    assert "on a traced disk" in answer.stderr
    seen = json.loads(answer.stdout)
    assert 0 < seen["own_bytes"] < 8 << 20
    own = [row for row in seen["rows"] if row["file"] == "(the tracer's own)"]
    assert own
    assert not any(row["file"].startswith("/here") for row in seen["rows"])


def test_a_device_that_goes_away_is_told(tmp_path: Path) -> None:
    need_tracer()
    image = tmp_path / "image"
    with image.open("wb") as file:
        file.truncate(16 << 20)
    attach = ["losetup", "--find", "--show", str(image)]
    device = subprocess.run(attach, capture_output=True, text=True, check=True).stdout.strip()
    command = (
        f"dd if=/dev/zero of={device} bs=4096 count=3 oflag=direct status=none; losetup -d {device}"
    )
    out = tmp_path / "run"
    answer = trace(Loop(device, tmp_path), "-o", out, "--device", device, "--", "sh", "-c", command)
    assert answer.returncode == 4, answer.stderr
    assert "went away" in answer.stderr
    rows = Dataset.from_runs(RunFolder.open(out)).rows(
        "SELECT DISTINCT operation, block_type, block_subtype FROM requests"
    )
    assert {"operation": "write", "block_type": "data", "block_subtype": "raw-device"} in rows


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("--device", "/dev/null", "--", "true"), 2, "no block device"),
        (("--device", "/dev/no-such-disk", "--", "true"), 2, "/dev/no-such-disk"),
        (("--directory", "/proc", "--", "true"), 2, "proc is on no block device"),
        (("--directory", "/no/such/place", "--", "true"), 2, "/no/such/place"),
        (("--", "/no/such/program"), 2, "cannot run /no/such/program"),
        (("--pid", "4194304"), 2, "--pid 4194304"),
        ((), 2, "nothing says when to end"),
        (("--device", "/dev/null", "--directory", "/", "--", "true"), 2, "exclude each other"),
    ],
)
def test_a_trace_that_cannot_begin_is_refused_and_leaves_nothing(
    loop: Loop, tmp_path: Path, arguments: tuple[str, ...], code: int, words: str
) -> None:
    answer = trace(loop, "-o", tmp_path / "run", *arguments)
    assert (answer.returncode, words in answer.stderr) == (code, True), answer.stderr
    assert not (tmp_path / "run").exists()


def test_a_trace_without_root_or_btf_says_what_is_missing(loop: Loop, tmp_path: Path) -> None:
    powerless = ("setpriv", "--bounding-set=-all", "--inh-caps=-all")
    answer = trace(loop, "-o", tmp_path / "run", "--", "true", before=powerless)
    assert answer.returncode == 3, answer.stderr
    assert "root" in answer.stderr or "kptr_restrict" in answer.stderr
    hidden = ("unshare", "--mount", "sh", "-c", 'mount -t tmpfs none /sys/kernel/btf && "$@"', "sh")
    answer = trace(loop, "-o", tmp_path / "run", "--", "true", before=hidden)
    assert answer.returncode == 3, answer.stderr
    assert "needs BTF" in answer.stderr
    assert not (tmp_path / "run").exists()


def test_the_agent_says_what_the_kernel_lets_it_do() -> None:
    need_tracer()
    for user, code in (([], 0), (["setpriv", "--reuid=65534", "--clear-groups"], 3)):
        command = [*user, str(agent_path()), "doctor"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == code, done.stdout + done.stderr
        kernel, without_bpf, *others = done.stdout.splitlines()
        assert kernel.startswith(f"Linux {os.uname().release}, ")
        assert without_bpf.startswith("can     bench")
        assert len(others) == 3
        assert all(line.startswith("cannot  " if code else "can     ") for line in others), others


def test_a_database_on_ext4_without_a_journal_is_at_risk(tmp_path: Path) -> None:
    for word, is_at_risk in (("^has_journal", True), ("has_journal", False)):
        folder = tmp_path / word
        folder.mkdir()
        with mounted_loop("ext4", folder, "-O", word) as loop:
            database = loop.directory / "a.db"
            sql = "PRAGMA journal_mode = wal; CREATE TABLE t (x);"
            traced = joj("trace", "--device", loop.device, "-o", folder / "run", "--json",
                         "--", "sqlite3", database, sql)  # fmt: skip
            inspected = this_process.joj("inspect", database)
        assert traced.returncode == inspected.returncode == 0
        in_short = json.loads(traced.stdout.splitlines()[-1])["in_short"]
        [safety] = [line for line in in_short if "by the manuals" in line]
        assert ("filesystem" in safety) == is_at_risk
        assert ("ext4 without a journal" in inspected.stdout) == is_at_risk
