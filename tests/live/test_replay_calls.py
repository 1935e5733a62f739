"""joj bench mobibench -g replays MobiGen's scripts, and touches nothing but its own directory."""

from __future__ import annotations

import json
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

from jojlab.foundation.places import agent_path
from tests.hangs import await_end
from tests.live.conftest import Bench
from tests.live.test_strace import parse_log
from tests.mobigen import LEFT_OUT, LEFT_OUT_REASONS, NO_SCRIPT, NO_SCRIPT_REASON, SCRIPT

LINES = """\
replay_script start
Write target : {directory}
line count : 9
script_thread_num: 2
open count : 2
max size : W 1024, R 4096
original execution time : 0.020 sec
replay_script end
Total IO time : F sec (N usec)
Total IO count : 9 
Total Write: 1032 bytes, Read: 4096 bytes
[LATENCY] : p50,p90,p99,p99.9,max usec : N N N N N
Err string : No error
"""


def write_script(tmp_path: Path, script: str) -> Path:
    """Write a script beside the directory that is benched."""
    path = tmp_path / "script"
    path.write_text(script)
    return path


def mask_numbers(text: str) -> str:
    """Put letters for what differs from run to run."""
    text = re.sub(r"time : \d+\.\d{3} sec \(\d+ usec\)", "time : F sec (N usec)", text)
    return re.sub(r"(usec) : \d+ \d+ \d+ \d+ \d+\n", r"\1 : N N N N N\n", text)


def test_the_lines_of_a_replay_and_its_files(bench: Bench, tmp_path: Path) -> None:
    logs = ("-L", tmp_path / "latencies", "-k", tmp_path / "rates")
    answer = bench.run(
        "mobibench", "-p", bench.directory, "-g", write_script(tmp_path, SCRIPT), *logs
    )
    assert answer.returncode == 0, answer.stderr
    assert mask_numbers(answer.stdout) == LINES.format(directory=bench.directory)
    assert "the most delayed call started" in answer.stderr
    assert "differently than recorded" not in answer.stderr
    latencies = (tmp_path / "latencies").read_text().splitlines()
    assert len([line for line in latencies if re.fullmatch(r"\d+\tusec", line)]) == 9
    assert latencies[-1].startswith("Total IO time :")
    assert (tmp_path / "rates").read_text().startswith("\n#In replay mode\n")
    assert bench.names() == []


def test_calls_that_are_left_out_make_a_replay_incomplete(bench: Bench, tmp_path: Path) -> None:
    script = write_script(tmp_path, SCRIPT + LEFT_OUT)
    answer = bench.run("mobibench", "-p", bench.directory, "-q", "-g", script)
    assert answer.returncode == 4
    for reason in LEFT_OUT_REASONS:
        assert f"incomplete: {reason}" in answer.stderr
    assert "Total IO count : 9 \n" in answer.stdout


@pytest.mark.parametrize(
    ("script", "words"),
    [
        (NO_SCRIPT, NO_SCRIPT_REASON),
        ("1 0 close 3\n1 1 write 3 999999999\n", "line 2, bytes: 999999999 is more than"),
        ("", "no file system call"),
        ("\0\1\2\n", "line 1, thread:"),
    ],
)
def test_a_script_that_is_none_is_refused(
    bench: Bench, tmp_path: Path, script: str, words: str
) -> None:
    flags = ("-q", "-g", write_script(tmp_path, script))
    answer = bench.run("mobibench", "-p", bench.directory, *flags)
    assert answer.returncode == 2
    assert words in answer.stderr
    assert str(tmp_path / "script") in answer.stderr
    assert bench.names() == []


def test_no_path_of_a_script_leads_out(bench: Bench, tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_text("text")
    # Absolute, by way of the parent, and by way of a link that is in the directory before.
    (bench.directory / "link").symlink_to(tmp_path)
    paths = (precious, "../precious", "../../precious", "link/precious", "../link/precious")
    lines = []
    for path in paths:
        lines.append(f'1 0 open "{path}" O_WRONLY|O_CREAT|O_TRUNC 5')
        lines += ["1 0 write 5 100", "1 0 close 5 0", f'1 0 unlink "{path}" 0']
    script = write_script(tmp_path, "\n".join(lines))
    answer = bench.run("mobibench", "-p", bench.directory, "-q", "-g", script)
    assert answer.returncode == 0, answer.stderr
    assert precious.read_text() == "text"
    assert bench.names() == ["link"]


def test_a_full_disk_is_told_with_the_line(small: Bench, tmp_path: Path) -> None:
    # The other thread's call is not waited for.
    lines = ['1 0 open "/a" O_WRONLY|O_CREAT 5', *(["1 0 write 5 1000000"] * 9)]
    lines.append("2 900000000000 close 5")
    script = write_script(tmp_path, "\n".join(lines))
    answer = small.run("mobibench", "-p", small.directory, "-q", "-g", script)
    assert answer.returncode == 3
    assert "became full" in answer.stderr
    assert "of the recording, write" in answer.stderr
    assert small.names() == []


def test_a_long_replay_can_be_interrupted(bench: Bench, tmp_path: Path) -> None:
    script = write_script(tmp_path, '1 0 open "/a" O_WRONLY|O_CREAT 5\n2 900000000 close 5 0\n')
    with bench.start("mobibench", "-p", bench.directory, "-g", script) as process:
        while not list(bench.directory.glob("joj-bench-*/a")):
            assert process.poll() is None
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        await_end(process)
    assert process.returncode == 130
    assert bench.names() == []


@pytest.mark.skipif(
    shutil.which("strace") is None, reason="strace is not installed: apt-get install strace"
)
def test_strace_sees_the_calls_of_the_script(tmp_path: Path) -> None:
    here, tables, log = tmp_path / "here", tmp_path / "tables", tmp_path / "strace"
    here.mkdir()
    tables.mkdir()
    command = ["strace", "-f", "-y", "-qq", "-o", str(log)]
    command += ["-e", "trace=pread64,pwrite64,write,fsync,access,faccessat,faccessat2"]
    command += [str(agent_path()), "bench", "--directory", str(here), "--output", str(tables)]
    case: dict[str, object] = {"workload": "replay", "background": "none"}
    case |= {"timing": "recorded", "timing_percent": 100, "recorded_root": "/"}
    case["recording"] = str(write_script(tmp_path, SCRIPT))
    text = json.dumps({"seed": 1, "case": case})
    subprocess.run(command, input=text, text=True, check=True, capture_output=True)
    calls = [
        (call.name, re.sub(r'^.*?/joj-bench-[0-9a-f]+/([^>"]*).*$', r"\1", call.arguments))
        for call in parse_log(log.read_text())
        if f"{here}/joj-bench-" in call.arguments
    ]
    # What the file is made of before is one write; reads ask for that much of it.
    assert sorted(calls) == [
        ("access", "data/app/x.db-wal"),
        ("fsync", "data/app/x.db"),
        ("pread64", "data/app/x.db"),
        ("pwrite64", "data/app/x.db"),
        ("write", "_opened-before/1"),
        ("write", "_opened-before/1"),
        ("write", "data/app/x.db"),
    ]
