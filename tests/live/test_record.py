"""joj record: programs that are not ours, call by call as strace has them."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.live.recordings import (
    ENVIRONMENT,
    LAST_TID,
    LONG_AGO,
    PYTHON,
    Recording,
    Row,
    command_of,
    in_order_of_start,
    record_program,
    recorded_calls,
    strace_calls,
)
from tests.screens import check_screen, each_width

pytestmark = pytest.mark.skipif(
    shutil.which("strace") is None, reason="strace is not installed: apt-get install strace"
)

SQL = "create table t(x); insert into t values (1); insert into t select randomblob(9000) from t;"

EDITOR = """
import os
name = os.open("note.txt", os.O_CREAT | os.O_RDWR, 0o644)
os.write(name, b"first"); os.close(name)
new = os.open(".note.txt.swp", os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
os.write(new, b"second" * 100); os.fsync(new); os.close(new)
os.replace(".note.txt.swp", "note.txt")
folder = os.open(".", os.O_RDONLY | os.O_DIRECTORY); os.fsync(folder); os.close(folder)
"""

THREADS = """
import os, threading
def work(number):
    file = os.open(f"file-{number}", os.O_CREAT | os.O_RDWR)
    for record in range(20):
        os.pwrite(file, b"x" * 100, record * 100)
    os.fdatasync(file); os.close(file)
for number in range(4):
    thread = threading.Thread(target=work, args=(number,))
    thread.start(); thread.join()
"""

DESCRIPTORS = """
import fcntl, os
file = os.open("file", os.O_CREAT | os.O_RDWR)
copy = os.dup(file); os.dup2(file, 9, inheritable=True); os.set_inheritable(copy, True)
fcntl.lockf(file, fcntl.LOCK_EX, 10, 5); fcntl.flock(copy, fcntl.LOCK_SH)
os.lseek(file, 100, os.SEEK_SET); os.ftruncate(file, 5000)
if os.fork() == 0:
    os.write(copy, b"child"); os.execv("/bin/sh", ["sh", "-c", "echo more >&9; exit 3"])
os.wait(); os.symlink("file", "link"); os.link("file", "second"); os.rename("second", "third")
os.readlink("link"); os.stat("link"); os.mkdir("d"); os.chdir("d"); os.stat("../third")
os.rmdir("../d") if False else None; os.chdir(".."); os.rmdir("d"); os.unlink("third")
"""

PROGRAMS = {
    "cp": ("sh", "-c", "cp /etc/passwd here; cp -a here there; mv there back; rm here"),
    **{
        f"sqlite3-{mode}": ("sqlite3", "a.db", f"pragma journal_mode={mode}; {SQL}")
        for mode in ("delete", "truncate", "persist", "wal")
    },
    "git": (
        "sh", "-c",
        f"git init -q a; cd a; echo x > x; {LONG_AGO} x; git add x; "
        "git -c gc.auto=0 commit -qm x; "
        "cd ..; git clone -q --no-hardlinks a b",
    ),
    "editor": (*PYTHON, EDITOR),
    "threads": (*PYTHON, THREADS),
    "descriptors": (*PYTHON, DESCRIPTORS),
}  # fmt: skip


def test_numbers_of_threads_that_begin_anew_are_in_order() -> None:
    assert in_order_of_start([4711, 4709, 4710]) == [4709, 4710, 4711]
    assert in_order_of_start([LAST_TID - 1, 301, LAST_TID - 40, 300]) == [
        LAST_TID - 40,
        LAST_TID - 1,
        300,
        301,
    ]


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_recording_has_the_calls_that_strace_sees(name: str, tmp_path: Path) -> None:
    program = PROGRAMS[name]
    mine, others = tmp_path / "1", tmp_path / "2"
    mine.mkdir()
    others.mkdir()
    # What a program leaves in the cache of its libraries is there for both.
    subprocess.run(program, cwd=mine, env=ENVIRONMENT, check=True, capture_output=True)
    shutil.rmtree(mine)
    mine.mkdir()
    recording = record_program(mine, tmp_path / "recording", *program)
    told, code = strace_calls(others, tmp_path / "log", *program)
    assert (recording.code, recording.manifest["incomplete"]) == (code, False)
    said = recorded_calls(recording, mine)
    assert [len(thread) for thread in said] == [len(thread) for thread in told]
    for ours, theirs in zip(said, told, strict=True):
        assert ours == theirs
    assert sum(map(len, said)) > 50


def test_the_snapshot_has_files_as_they_were_before(here: Path, tmp_path: Path) -> None:
    (here / "old").write_text("12345")
    script = "mv old new; mkdir d; echo x > d/f; mv d e; cat e/f new none"
    recording = record_program(here, tmp_path / "r", "sh", "-c", script)
    state = {row["path"]: row for row in recording.table("snapshot")}

    def path_state(name: str) -> Row:
        return state[str(here / name)]

    assert (path_state("old")["kind"], path_state("old")["size_bytes"]) == ("file", 5)
    assert path_state("old")["made_by_recording"] is False
    for name in ("new", "d", "d/f", "e", "none"):
        assert path_state(name)["kind"] == "absent", name
    # It is there when it is named first, but it is a child of the recording.
    assert (path_state("e/f")["kind"], path_state("e/f")["made_by_recording"]) == ("file", True)
    opened = [row for row in recording.calls("openat") if row["path"] == "d/f"]
    assert opened[0]["inode"] == path_state("e/f")["inode"]


def test_threads_and_descriptors_make_the_tables_of_a_program(here: Path, tmp_path: Path) -> None:
    recording = record_program(here, tmp_path / "r", *PYTHON, THREADS)
    threads = recording.table("threads")
    assert len(threads) == 5
    assert {row["pid"] for row in threads} == {threads[0]["pid"]}
    assert all(row["shares_descriptors"] and row["creator_id"] == 0 for row in threads[1:])
    assert [row["descriptor"] for row in recording.table("descriptors")] == [0, 1, 2]
    made = {row["call_id"]: row["result"] for row in recording.calls("clone", "clone3")}
    assert [made[row["created_by_call_id"]] for row in threads[1:]] == [
        row["tid"] for row in threads[1:]
    ]
    recording = record_program(here, tmp_path / "s", *PYTHON, DESCRIPTORS)
    first, child = recording.table("threads")
    assert (child["creator_id"], child["shares_descriptors"]) == (0, False)
    assert (first["exit_code"], child["exit_code"]) == (0, 3)
    assert child["umask"] == first["umask"]


EXECUTING = """
import os, threading, time
def work():
    while True: os.stat("/")
threading.Thread(target=work, daemon=True).start()
threading.Thread(target=lambda: os.execv("/bin/sh", ["sh", "-c", "echo x > f; exit 6"])).start()
time.sleep(60)
"""


def test_a_thread_that_executes_takes_the_place_of_all(here: Path, tmp_path: Path) -> None:
    recording = record_program(here, tmp_path / "r", *PYTHON, EXECUTING)
    assert recording.code == 6
    first, _, third = recording.table("threads")
    assert (first["exit_code"], third["exit_code"]) == (None, 6)
    assert all(row["end_ns"] for row in recording.table("threads"))
    executed = [row for row in recording.calls("execve") if row["result"] == 0]
    assert [row["thread_id"] for row in executed] == [0, 2]
    assert recording.calls()[-1]["thread_id"] == 2


# clone(2) and clone3(2) with CLONE_UNTRACED, by their numbers on this processor.
UNTRACED = """
import ctypes, os, platform, signal, struct
libc, flag = ctypes.CDLL(None, use_errno=True), 0x00800000
numbers = {"x86_64": (56, 435), "aarch64": (220, 435)}[platform.machine()]
sizes = ctypes.create_string_buffer(struct.pack("8Q", flag, 0, 0, 0, signal.SIGCHLD, 0, 0, 0))
arguments = (flag | signal.SIGCHLD, 0, 0, 0, 0), (sizes, 64)
for name, number, values in zip("ab", numbers, arguments):
    child = libc.syscall(number, *values)
    if child == 0:
        file = os.open(name, os.O_CREAT | os.O_WRONLY)
        os.write(file, b"x")
        os._exit(7)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
"""


def test_a_child_that_asks_not_to_be_traced_is_followed(here: Path, tmp_path: Path) -> None:
    recording = record_program(here, tmp_path / "r", *PYTHON, UNTRACED)
    assert (recording.code, recording.manifest["incomplete"]) == (0, False)
    assert [row["exit_code"] for row in recording.table("threads")] == [0, 7, 7]
    written = [row["thread_id"] for row in recording.calls("write")]
    assert written == [1, 2]


def test_times_count_time_asleep(here: Path, tmp_path: Path) -> None:
    """A time namespace has slept as long as one asks for (time_namespaces(7))."""
    slept_s = 86_400
    command = [*command_of(tmp_path / "r"), "--", "true"]
    before = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
    subprocess.run(
        ["unshare", "--time", "--boottime", str(slept_s), "--fork", *command],
        cwd=here,
        check=True,
        capture_output=True,
    )
    after = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
    recording = Recording(tmp_path / "r", 0)
    slept_ns = slept_s * 10**9
    [thread] = recording.table("threads")
    times = [recording.manifest["began_ns"], thread["begin_ns"], thread["end_ns"]]
    times += [row["begin_ns"] for row in recording.calls()]
    assert before + slept_ns <= min(times) <= max(times) <= after + slept_ns


MANY = "for i in $(seq 100); do (echo x > f$i; cat f$i > /dev/null; rm f$i) & done; wait"


def test_nothing_of_many_processes_at_once_is_missed(here: Path, tmp_path: Path) -> None:
    recording = record_program(here, tmp_path / "r", "bash", "-c", MANY)
    assert (recording.code, recording.manifest["incomplete"]) == (0, False)
    told, _ = strace_calls(here, tmp_path / "log", "bash", "-c", MANY)
    names = ("openat", "read", "write", "close", "unlinkat", "execve", "exit_group", "dup2")

    def count(words: list[str]) -> dict[str, int]:
        return {name: words.count(name) for name in names}

    assert count([row["name"] for row in recording.table("calls")]) == count(
        [said[0] for thread in told for said in thread]
    )
    assert len(recording.table("threads")) == len(told) > 200


@pytest.mark.parametrize("data", ["none", "hash", "keep"])
def test_contents_are_kept_only_where_asked(data: str, here: Path, tmp_path: Path) -> None:
    script = "printf abc > a; printf abc > b; printf abcd > c"
    recording = record_program(here, tmp_path / "r", "sh", "-c", script, options=("--data", data))
    told = [row["data"] for row in recording.calls("write")]
    abc = "ba7816bf8f01cfea414140de5dae2223"  # FIPS 180-2, appendix B.1
    assert told[:2] == [None if data == "none" else abc] * 2
    kept = {row["data"]: row for row in recording.table("contents")}
    assert len(kept) == (2 if data == "keep" else 0)
    assert (tmp_path / "r" / "contents.bin").exists() == (data == "keep")
    if data == "keep":
        place = kept[abc]
        text = (tmp_path / "r" / "contents.bin").read_bytes()
        assert text[place["offset_bytes"] :][: place["length_bytes"]] == b"abc"


# The child writes once three alarms came since its parent went to read: the second at the latest
# has interrupted the read.
SIGNALS = """
import os, signal
alarms = 0
def count(*_):
    global alarms
    alarms += reads
    if alarms == 3: os.write(go, b"x"); signal.setitimer(signal.ITIMER_REAL, 0)
reads = False
wait, go = os.pipe(); r, w = os.pipe()
if os.fork() == 0:
    os.read(wait, 1); os.write(w, b"x"); os._exit(0)
signal.signal(signal.SIGALRM, count)
signal.setitimer(signal.ITIMER_REAL, 0.05, 0.05)
reads = True
os.read(r, 1); os.wait()
file = os.open("f", os.O_CREAT | os.O_RDWR); os.write(file, b"last"); os.kill(os.getpid(), 9)
"""


def test_interrupted_calls_and_a_death_by_a_signal_are_told(here: Path, tmp_path: Path) -> None:
    recording = record_program(here, tmp_path / "r", *PYTHON, SIGNALS)
    assert recording.code == 128 + signal.SIGKILL
    first, child = recording.table("threads")
    assert (first["exit_signal"], child["exit_code"]) == (signal.SIGKILL, 0)
    assert recording.manifest["incomplete"] is False
    pipe = recording.calls("pipe", "pipe2")[-1]
    reads = [
        row
        for row in recording.calls("read")
        if row["descriptor"] == pipe["descriptor"] and row["call_id"] > pipe["call_id"]
    ]
    # Python's handlers have no SA_RESTART: the read is made again by Python itself.
    assert reads[0]["error"] in ("ERESTARTSYS", "EINTR")
    assert reads[-1]["result"] == 1
    assert recording.calls()[-1]["name"] == "write"


def test_the_exit_code_is_the_programs(here: Path, tmp_path: Path) -> None:
    assert record_program(here, tmp_path / "7", "sh", "-c", "exit 7").code == 7
    assert record_program(here, tmp_path / "none", "/no/such/program").code == 2
    assert not (tmp_path / "none").exists()
    assert record_program(here, tmp_path / "7", "true").code == 2  # it is not empty


def test_nobody_but_root_is_needed(here: Path, tmp_path: Path) -> None:
    """Without privileges the filter needs no_new_privs (seccomp(2))."""
    if os.geteuid() != 0:
        pytest.skip("the other tests are run by a user")
    folder = tmp_path / "of-a-user"
    folder.mkdir()
    for path in (folder, here, *tmp_path.parents[:3], tmp_path):
        path.chmod(0o777)
    agent = here / "agent"
    shutil.copy(command_of(folder)[0], agent)
    command = [str(agent), "record", "--output", str(folder), "--", "sh", "-c", "echo x > f"]
    done = subprocess.run(command, cwd=here, user=65534, group=65534, extra_groups=[],
                          env=ENVIRONMENT, capture_output=True, text=True)  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert [row["path"] for row in Recording(folder, 0).calls("openat")][-1] == "f"
    assert (here / "f").stat().st_uid == 65534


@each_width
def test_the_screen_of_a_recording_is_as_it_was(width: int, here: Path, tmp_path: Path) -> None:
    """The number of calls is each machine's own, and stands as 0."""
    command = [*command_of(tmp_path / "r"), "--", "sh", "-c", "echo x > f"]
    environment = {**ENVIRONMENT, "COLUMNS": str(width)}
    done = subprocess.run(command, cwd=here, env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "")
    told = re.sub(r"\d+ calls", "0 calls", done.stderr.replace(f"{tmp_path}/", ""))
    check_screen("record", width, lambda console: console.print(told, soft_wrap=True, end=""))


def test_joj_passes_code_and_output_on(here: Path, tmp_path: Path) -> None:
    root = Path(__file__).resolve().parents[2]
    target = root / os.environ.get("CARGO_TARGET_DIR", "target")
    done = subprocess.run(
        [sys.executable, "-m", "jojlab", "record", "-o", str(tmp_path / "r"), "--data", "hash",
         "--", "sh", "-c", "echo told; exit 5"],
        cwd=here, capture_output=True, text=True,
        env={**os.environ, "PYTHONPATH": str(root), "CARGO_TARGET_DIR": str(target)},
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (5, "told\n")
    assert "calls of 1 thread " in done.stderr
    assert Recording(tmp_path / "r", 5).manifest["data"] == "hash"


UNRECORDABLE = r"""
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	if (argc > 1) {
		/* getpid as a 32-bit program calls it. */
		int number = 20;
		__asm__ volatile("int $0x80" : "+a"(number));
		return 0;
	}
	aio_context_t context = 0;
	struct iocb one, *list[] = { &one };
	struct io_event event;
	memset(&one, 0, sizeof(one));
	one.aio_fildes = open("f", O_CREAT | O_RDWR, 0600);
	one.aio_lio_opcode = IOCB_CMD_PWRITE;
	one.aio_buf = (unsigned long)"1234";
	one.aio_nbytes = 4;
	if (syscall(SYS_io_setup, 1, &context) || syscall(SYS_io_submit, context, 1, list) != 1)
		return 9;
	return syscall(SYS_io_getevents, context, 1, 1, &event, 0) != 1;
}
"""


def test_unrecordable_calls_are_counted(here: Path, tmp_path: Path) -> None:
    source, program = tmp_path / "program.c", str(tmp_path / "program")
    source.write_text(UNRECORDABLE)
    subprocess.run(["gcc", "-o", program, str(source)], check=True)
    recording = record_program(here, tmp_path / "aio", program)
    assert recording.code == 4
    reasons = ["1 operation of io_submit, not recorded"]
    assert recording.manifest["incomplete_reasons"] == reasons
    recording = record_program(here, tmp_path / "abi", program, "32")
    assert recording.code == 4
    assert recording.manifest["missed"]["other_abi_calls"] == 1


def test_a_recording_is_compact(here: Path, tmp_path: Path) -> None:
    """At most 40 bytes a call, all tables together; 2,000 transactions of SQLite."""
    rows = ";".join("insert into t values (randomblob(100))" for _ in range(2000))
    sql = f"pragma synchronous=off; create table t(x); {rows};"
    (here / "sql").write_text(sql)
    recording = record_program(here, tmp_path / "r", "sqlite3", "a.db", ".read sql")
    assert (recording.code, recording.manifest["incomplete"]) == (0, False)
    on_disk = sum(path.stat().st_size for path in (tmp_path / "r").rglob("*") if path.is_file())
    calls = recording.manifest["calls"]
    assert calls > 30_000
    assert on_disk / calls <= 40
