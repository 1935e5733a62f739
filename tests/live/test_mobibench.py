"""joj bench mobibench prints what scripts written for Mobibench look for."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.live.conftest import Bench

RULE = "-" * 41
# Numbers that differ from run to run are masked; all else is the format, to the space.
DATABASE = f"""\
{RULE}
[mobibench measurement setup]
{RULE}
DB teset mode enabled.
DB time interval : 1 ms
Operation : 0
Transactions per thread: 10
# of Tables : 3
# of Databases : 2
# of Threads : 1
{RULE}
[DB information of db db2]
{RULE}
sqlite_version=N.N.N
page_size=4096
journal_mode=persist
synchronous=1
{RULE}
[DB information of db main]
{RULE}
sqlite_version=N.N.N
page_size=4096
journal_mode=persist
synchronous=1
{RULE}
[Messurement Result]
{RULE}
[CPU] : Active,Idle,IoWait : F F F
[TIME] :       N sec Nus. \tF Transactions/sec
[CON SWITCHES] : N N
[LATENCY] : p50,p90,p99,p99.9,max usec : N N N N N
Err string : No error
"""
FILE = f"""\
{RULE}
[mobibench measurement setup]
{RULE}
File size per thread : 128 KB
IO size : 8 KB
IO count : 16 
Access Mode 1, Sync Mode 8
# of Threads : 2
{RULE}
[Messurement Result]
{RULE}
[CPU] : Active,Idle,IoWait : F F F
[TIME] :       N sec Nus. \tN B/sec, \tF KB/sec, \tF MB/sec. F IOPS(8KB) 
[LATENCY] : p50,p90,p99,p99.9,max usec : N N N N N
Err string : No error
"""


def mask_numbers(text: str) -> str:
    """Put F for fractions and N for numbers, in the lines that have measured ones."""
    lines = []
    for line in text.splitlines():
        if line.startswith("sqlite_version"):
            line = re.sub(r"\d+", "N", line)
        if line.startswith(("[CPU]", "[TIME]", "[CON", "[LATENCY]")):
            begin, colon, rest = line.partition(" : " if "[TIME]" not in line else " sec ")
            labels, last_colon, numbers = rest.rpartition(" : ")
            numbers = re.sub(r"\b\d+\.\d\d\b", "F", numbers)
            numbers = re.sub(r"(?<![(\w])\d+", "N", numbers)
            # Whole seconds too, in as many columns.
            begin = re.sub(r"\d+$", lambda found: "N".rjust(len(found[0])), begin)
            line = begin + colon + labels + last_colon + numbers
        lines.append(line)
    return "".join(f"{line}\n" for line in lines)


def test_the_lines_of_a_database_run(bench: Bench) -> None:
    flags = ("-n", "10", "-j", "2", "-s1", "-D", "2", "-i", "1", "-q")
    answer = bench.run("mobibench", "-p", bench.directory, "-d", "0", *flags)
    assert answer.returncode == 0, answer.stderr
    assert mask_numbers(answer.stdout) == DATABASE
    assert "one transaction is 6 statements" in answer.stderr
    assert "synchronous is set in every attached database" in answer.stderr
    assert bench.names() == []


def test_the_lines_of_a_file_run_and_its_files(bench: Bench, tmp_path: Path) -> None:
    logs = ("-L", tmp_path / "latencies", "-k", tmp_path / "rates")
    flags = ("-f", "256", "-r", "8", "-a", "1", "-y", "8", "-t", "2", "-v", "50", "-q")
    answer = bench.run("mobibench", "-p", bench.directory, *flags, *logs)
    assert answer.returncode == 0, answer.stderr
    assert mask_numbers(answer.stdout) == FILE
    assert "for writing back at the end" in answer.stderr
    latencies = (tmp_path / "latencies").read_text().splitlines()
    assert latencies[:2] == ["", "#In 1 IO mode and 8 sync mode"]
    assert len([line for line in latencies if re.fullmatch(r"\d+\tusec", line)]) == 32
    assert latencies[-1].startswith("[TIME] :")
    assert (tmp_path / "rates").read_text().startswith("\n#In 1 IO mode and 8 sync mode\n")
    assert bench.names() == []


def test_a_checkpoint_is_told_apart(bench: Bench) -> None:
    flags = ("-d", "0", "-n", "20", "-j", "3", "-s", "2", "-q")
    answer = bench.run("mobibench", "-p", bench.directory, *flags)
    assert "checkpoints of the WAL took" in answer.stderr
    rate = re.search(r"\t([0-9.]+) Transactions/sec", answer.stdout)
    with_them = re.search(r"as Mobibench counts, ([0-9.]+) Transactions/sec", answer.stderr)
    assert rate
    assert with_them
    assert float(with_them[1]) < float(rate[1])


def test_a_directory_that_is_not_there_is_made_and_goes(bench: Bench) -> None:
    answer = bench.run("mobibench", "-p", bench.directory / "new", "-f", "64", "-q")
    assert answer.returncode == 0, answer.stderr
    assert bench.names() == []


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (("-x",), "option -x not recognized"),
        (("-n",), "option -n requires argument"),
        (("-d", "3"), "-d 3"),
        (("-d", "0", "-n", "many"), "-n many: not a whole number"),
        (("-t", "101"), "allowed: 1 to 100"),
        (("-y", "9"), "fbarrier"),
        (("-a", "2", "-y", "5"), "mapped memory is not read"),
        (("-f", "4", "-r", "8"), "no room for a record"),
        (("-g", "no-script"), "-g no-script: no such file"),
        (("-q", "there"), "'there' belongs to no flag"),
    ],
)
def test_a_flag_that_cannot_be_is_refused(bench: Bench, flags: tuple[str, ...], words: str) -> None:
    answer = bench.run("mobibench", *flags)
    assert answer.returncode == 2
    assert words in answer.stderr
    assert answer.stdout == ""
    assert "Traceback" not in answer.stderr


def test_help_shows_the_flags(bench: Bench) -> None:
    for flags in ((), ("-h",), ("--help",)):
        answer = bench.run("mobibench", *flags)
        assert answer.returncode == 0
        assert "-y N     0 none, 1 O_SYNC" in answer.stdout
        assert "Examples:" in answer.stdout
