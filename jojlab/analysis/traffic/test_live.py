"""Tests the owners of the I/O of a small live trace, and its short answer, worked out by hand."""

from __future__ import annotations

import io
import re
from pathlib import Path

from jojlab.analysis.run.summary import summarise
from jojlab.analysis.traffic.live import live_json, live_traces
from jojlab.report.answer import answer_lines
from jojlab.report.cheaper import cheaper_command
from jojlab.report.commits import print_story
from jojlab.report.page import report_html
from jojlab.report.shared.console import QuietConsole
from jojlab.trace.dataset import Dataset
from tests.captures import live_capture, run_of, wal_capture

KIB = 1024


def test_each_request_is_of_the_program_of_another_or_of_nobody_that_is_known(
    tmp_path: Path,
) -> None:
    data = Dataset.from_runs(run_of(tmp_path, live_capture()))
    live = live_traces(data)["a"]
    # Each commit sends 8 KiB of the WAL, 16 KiB and 4 KiB of the journal; then come 12 KiB of a
    # checkpoint and 4 KiB of inodes.
    assert live.program_io.write_bytes == 10 * 28 * KIB + 12 * KIB + 4 * KIB
    assert (live.others.write_bytes, live.unknown.write_bytes) == (8 * KIB, 4 * KIB)
    found = {(each.process, each.is_watched): each.writes for each in live.processes}
    assert found == {("joj-agent", True): 32, ("logger", False): 1, ("", False): 1}
    assert (live.write_calls, live.write_bytes) == (20, 42 * KIB)
    assert live.counted_bytes == 400 * KIB
    seconds = 365 * 86400 / 20
    assert live.bytes_a_year() == live.program_io.write_bytes * seconds
    told = live_json(live)
    assert told["device_write_bytes"] == live.program_io.write_bytes
    # Ten commits in 20 s, and the flush of one checkpoint.
    assert (told["commits_a_second"], told["flushes_a_second"]) == (0.5, 0.05)


def test_each_file_has_what_was_given_and_sent_where_both_are_known(tmp_path: Path) -> None:
    builder = live_capture()
    shared = next(row["file_id"] for row in builder.tables["files"] if row["path"] == "/log")
    [wal, _, others] = builder.tables["writers"]
    mapped, again = builder.file("/mapped", "other"), builder.file("/test.db-wal", "wal")
    builder.phase = "commit"
    for file_id, length in ((mapped, 8 * KIB), (again, 20 * KIB)):
        builder.request([("data", "", file_id, length)])
    # One request has the data of two files.
    builder.request([("data", "", mapped, 4 * KIB), ("data", "", again, 4 * KIB)])
    builder.tables["writers"] += [
        wal | {"file_id": mapped, "write_calls": 0, "write_bytes": 0},
        wal | {"file_id": again, "write_bytes": 12 * KIB},
        wal | {"file_id": shared, "write_bytes": 3 * KIB},
        others | {"file_id": 0},
    ]
    live = live_traces(Dataset.from_runs(run_of(tmp_path, builder)))["a"]
    found = {
        each.path or each.owner: (each.given_bytes, each.sent_bytes, each.times)
        for each in live.files
    }
    assert found == {
        # Both files of this name, one after the other.
        "/test.db-wal": (52 * KIB, 104 * KIB, 2.0),
        "/mapped": (None, 12 * KIB, None),
        # Others wrote to it too, and what was sent of it is theirs.
        "/log": (3 * KIB, 0, None),
        "file without I/O": (2 * KIB, 0, None),
        "fs-journal": (None, 200 * KIB, None),
        "fs-metadata": (None, 4 * KIB, None),
    }
    assert sum(each.sent_bytes for each in live.files) == live.program_io.write_bytes
    assert sum(each.given_bytes or 0 for each in live.files) == live.write_bytes
    assert live_json(live)["files"][0]["times"] == 2.0


def test_a_pace_of_commits_that_were_not_looked_for_is_not_known(tmp_path: Path) -> None:
    builder = live_capture()
    del builder.more_manifest["watch"]
    told = live_json(live_traces(Dataset.from_runs(run_of(tmp_path, builder)))["a"])
    assert (told["commits_a_second"], told["flushes_a_second"]) == (None, 0.05)


def test_data_of_others_that_a_commit_wrote_is_not_of_its_database(tmp_path: Path) -> None:
    """ext4 writes the data of all files that its transaction holds, whoever syncs."""
    builder = live_capture()
    log = next(row["file_id"] for row in builder.tables["files"] if row["path"] == "/log")
    builder.phase, builder.transaction_id = "commit", 1
    builder.request([("data", "", log, 300 * KIB)], asker=("fsync", 1))
    builder.request([("data", "", 1, 5 * KIB)], phase="other", asker_comm="logger")
    summary = summarise(run_of(tmp_path, builder))
    assert answer_lines(summary)[1].startswith("50.3 % of the bytes are files of other programs, ")
    live = summary.cases[0].live
    assert live
    assert (live.program_io.write_bytes, live.others.write_bytes) == (301 * KIB, 308 * KIB)
    found = {each.process: each.write_bytes // KIB for each in live.processes}
    assert found == {"joj-agent": 296, "app": 5, "logger": 308, "": 4}


def test_bytes_that_a_kernel_thread_wrote_for_others_are_theirs(tmp_path: Path) -> None:
    builder = live_capture()
    log = builder.tables["writers"][-1]
    builder.tables["writers"].append(log | {"pid": 10, "process": "rotate"})
    live = live_traces(Dataset.from_runs(run_of(tmp_path, builder)))["a"]
    assert (live.others.write_bytes, live.unknown.write_bytes) == (8 * KIB, 4 * KIB)


def test_its_answer_has_the_commits_their_cost_and_what_the_disk_counted(tmp_path: Path) -> None:
    lines = answer_lines(summarise(run_of(tmp_path, live_capture())))
    assert lines[0].startswith("app made 10 commits in 20 s: one takes ")
    assert lines[0].endswith("; 29.6 KiB sent per commit.")
    one = answer_lines(summarise(run_of(tmp_path / "one", live_capture(1))))[0]
    assert re.fullmatch(r"app made 1 commit in 20 s: it takes [\d.]+ ms; 32 KiB sent\.", one)
    assert (
        "Write calls gave 42 KiB, the device got 296 KiB, 7.05 times that: 0.478 TB a year, "
        "extrapolated."
    ) in lines
    assert (
        "Others wrote 8 KiB to it; the writer of 4 KiB is not known; the kernel counted 400 KiB in "
        "all."
    ) in lines
    assert len(lines) <= 6
    assert max(map(len, lines)) <= 100


def test_a_live_answer_names_what_is_cheaper_in_the_lab_and_its_command(
    tmp_path: Path,
) -> None:
    def cheaper_lines(
        name: str, mode: str, call: str, filesystem: str, several: int = 0, joint: int = 0
    ) -> list[str]:
        builder = live_capture()
        place = {"filesystem": filesystem, "mount": f"/dev/sda / {filesystem} rw"}
        builder.more_manifest["configuration"] = place
        for request in builder.tables["requests"]:
            request["reason"] = "test.db-wal: grew, times"
        watch = builder.more_manifest["watch"]
        counts = {**watch["journal_modes"]["wal"], "several_databases": several}
        watch |= {"journal_modes": {mode: counts}, "sync_calls": {call: 10}}
        [first] = watch["database_files"]
        other = {**first, "inode": 13, "commits": joint, "journal_modes": {mode: joint}}
        watch["database_files"] += [other] * bool(joint)
        summary = summarise(run_of(tmp_path / name, builder))
        lines = answer_lines(summary)
        assert f"{filesystem}'s journal (because test.db-wal grew)" in " ".join(lines)
        [cheaper] = [line for line in lines if line.startswith("Cheaper")]
        return [cheaper, cheaper_command(summary)]

    both = "wal for truncate, fdatasync for fsync"
    assert cheaper_lines("rollback", "truncate", "fsync", "ext4") == [
        f"Cheaper in the lab: {both}; not measured here (joj bill --like FILE).",
        "joj bill --like FILE --set journal_mode=wal --set sync_call=fdatasync",
    ]
    # A WAL would take the atomicity of commits over several databases.
    for name, several, joint in (("several", 1, 0), ("joint", 0, 3)):
        assert cheaper_lines(name, "delete", "fsync", "f2fs", several, joint) == [
            "Cheaper in the lab: fdatasync for fsync; not measured here (joj bill --like FILE).",
            "joj bill --like FILE --set sync_call=fdatasync",
        ]
    assert cheaper_lines("growing", "wal", "fsync", "ext4") == [
        "Cheaper in the lab: a WAL that does not grow (joj cure); not measured here "
        "(joj bill --like FILE).",
        "joj bill --like FILE --set vfs=wal",
    ]
    assert cheaper_lines("unknown", "delete", "fsync", "btrfs") == [
        "Cheaper: most commits were delete, with fsync; joj advise searches.", "",
    ]  # fmt: skip


def test_a_trace_without_a_commit_says_so_and_tells_no_cost(tmp_path: Path) -> None:
    """A program that reads: nothing is said of what its commits cost, or of their safety."""
    builder = live_capture()
    builder.tables["transactions"] = []
    for name in ("requests", "page_runs", "writers", "counters"):
        builder.tables[name] = []
    builder.more_manifest["watch"] |= {"commits": 0, "journal_modes": {}, "database_files": []}
    lines = answer_lines(summarise(run_of(tmp_path, builder)))
    assert lines == (
        "No commit and no sync of app was seen on these disks in 20 s.",
        "Nothing was given to write calls, and nothing was sent to the device.",
        "Nobody else wrote to it.",
    )
    builder.more_manifest["watch"] |= {"rollbacks": 1, "checkpoints": 2}
    assert answer_lines(summarise(run_of(tmp_path / "undone", builder)))[0] == (
        "No commit and no sync but in 1 rollback and 2 checkpoints of app was seen on these disks "
        "in 20 s."
    )


def test_commits_and_syncs_of_everybody_fit_into_a_line(tmp_path: Path) -> None:
    builder = live_capture()
    builder.case["command"] = ""
    builder.more_manifest["watch"] |= {"command": [], "commits": 1153, "syncs": 15}
    line = answer_lines(summarise(run_of(tmp_path, builder)))[0]
    assert line.startswith("everybody made 1,153 commits and 15 other syncs in 20 s: one takes ")
    assert line.endswith(" KiB sent each.")
    builder.more_manifest["watch"] |= {"commits": 0, "syncs": 0}
    builder.tables["transactions"] = []
    line = answer_lines(summarise(run_of(tmp_path / "idle", builder)))[0]
    assert line == "No commit and no sync was seen on these disks in 20 s."


def test_nobody_else_wrote_is_not_said_where_the_writer_is_not_known(tmp_path: Path) -> None:
    builder = live_capture()
    for request in builder.tables["requests"]:
        request["phase"] = request["phase"].replace("other", "trace")
    words = "The writer of 12 KiB is not known; the kernel counted 400 KiB in all."
    assert words in answer_lines(summarise(run_of(tmp_path, builder)))


def test_a_count_that_is_less_than_its_parts_is_not_of_all(tmp_path: Path) -> None:
    builder = live_capture()
    builder.tables["counters"][-1]["value"] = 300 * KIB
    lines = answer_lines(summarise(run_of(tmp_path, builder)))
    assert "Others wrote 8 KiB to it; the writer of 4 KiB is not known." in lines


def test_a_device_that_got_less_than_was_written_has_no_yearly_pace(tmp_path: Path) -> None:
    builder = live_capture()
    builder.tables["writers"][0]["write_bytes"] = 900 * KIB
    lines = answer_lines(summarise(run_of(tmp_path, builder)))
    assert "Write calls gave 902 KiB, the device got 296 KiB meanwhile." in lines
    assert "a year" not in " ".join(lines)


def test_a_trace_of_a_running_program_has_no_yearly_pace(tmp_path: Path) -> None:
    builder = live_capture()
    builder.case["command"] = ""
    lines = answer_lines(summarise(run_of(tmp_path, builder)))
    got = "Write calls gave 42 KiB, the device got 296 KiB"
    assert f"{got}, which may be in part from before the trace." in lines
    assert "a year" not in " ".join(lines)


def test_a_trace_of_seconds_is_made_no_pace(tmp_path: Path) -> None:
    builder = live_capture()
    builder.more_manifest["traced_ns"] = 9_000_000_000
    lines = answer_lines(summarise(run_of(tmp_path, builder)))
    assert "Write calls gave 42 KiB, the device got 296 KiB, 7.05 times that." in lines


def test_commits_whose_bytes_were_not_seen_are_not_called_free_of_risk(tmp_path: Path) -> None:
    """They may be in a database on a disk that was not traced."""
    builder = live_capture()
    builder.more_manifest["configuration"] = {"filesystem": "btrfs", "mount": "/dev/sda / btrfs rw"}
    for name in ("requests", "page_runs"):
        builder.tables[name] = []
    lines = answer_lines(summarise(run_of(tmp_path, builder)))
    safe = "Safe by the manuals, as far as its commits were seen; power cuts were not tested."
    assert safe in lines


def test_its_commit_and_page_are_told_as_of_a_real_machine(tmp_path: Path) -> None:
    """The filesystem has its name, and nothing is offered that only the lab can do."""
    builder = live_capture()
    builder.more_manifest["configuration"] = {"filesystem": "ext4", "mount": "/dev/sda / ext4 rw"}
    for request in builder.tables["requests"]:
        request["reason"] = "test.db-wal: grew, times"
    summary = summarise(run_of(tmp_path, builder))
    printed = io.StringIO()
    print_story(QuietConsole(file=printed, width=80, highlight=False), summary.cases[0])
    assert "- ext4 must commit, because test.db-wal grew" in printed.getvalue()
    assert max(map(len, printed.getvalue().splitlines())) <= 80
    page = report_html(summary, "run")
    assert "--durability" not in page
    assert "Fingerprint" not in page


def test_a_risk_of_many_words_leaves_room_for_what_was_not_tested(tmp_path: Path) -> None:
    """DELETE with synchronous OFF: how many commits are at risk is spared first."""
    builder = live_capture()
    builder.more_manifest["configuration"] = {"filesystem": "ext4", "mount": "/dev/sda / ext4 rw"}
    counts = dict.fromkeys(("end_unsynced", "journal_exposed", "database_unsynced"), 10_000)
    modes = {"delete": {**counts, "commits": 10_000, "several_databases": 0}}
    builder.more_manifest["watch"] |= {"journal_modes": modes}
    lines = answer_lines(summarise(run_of(tmp_path, builder)))
    risk = "At risk by the manuals: last commits, database; power cuts were not tested."
    assert risk in lines


def test_a_live_trace_is_called_safe_as_far_as_it_has_seen(tmp_path: Path) -> None:
    builder = live_capture()
    builder.more_manifest["configuration"] = {"filesystem": "ext4", "mount": "/dev/sda / ext4 rw"}
    lines = answer_lines(summarise(run_of(tmp_path, builder)))
    safe = "Safe by the manuals, as far as its commits were seen; power cuts were not tested."
    assert safe in lines


def test_why_a_journal_wrote_is_not_told_at_the_cost_of_half_the_bytes(tmp_path: Path) -> None:
    builder = live_capture()
    for request in builder.tables["requests"]:
        request["reason"] = f"{'a-long-name-of-a-database' * 2}.db-wal: grew, times"
    [where] = [
        line
        for line in answer_lines(summarise(run_of(tmp_path, builder)))
        if "of the bytes are" in line
    ]
    assert "because" not in where
    assert "the WAL" in where


def test_a_disk_that_counts_in_steps_says_so(tmp_path: Path) -> None:
    builder = live_capture()
    counted = {"phase": "trace", "source": "device", "name": "lifetime_write_bytes", "value": 0}
    builder.tables["counters"].append(counted)
    lines = answer_lines(summarise(run_of(tmp_path, builder)))
    [line] = [line for line in lines if "the kernel counted" in line]
    # Where there is no room for the disk's own count, it is left out whole.
    assert "the disk itself" not in line or line.endswith("0 KiB, in steps of 500 KiB.")


def test_pages_longer_than_blocks_are_named_where_the_lab_measured_them(tmp_path: Path) -> None:
    def cheaper(name: str, mode: str, page_bytes: int | None, block_bytes: int | None) -> list[str]:
        builder = live_capture()
        configuration = {"filesystem": "ext4", "mount": "/dev/sda / ext4 rw"}
        builder.more_manifest["configuration"] = configuration | {"block_bytes": block_bytes}
        watch = builder.more_manifest["watch"]
        watch |= {"journal_modes": {mode: watch["journal_modes"]["wal"]}}
        watch["database_files"][0]["page_bytes"] = page_bytes
        summary = summarise(run_of(tmp_path / name, builder))
        [line] = [line for line in answer_lines(summary) if line.startswith("Cheaper")]
        return [line, cheaper_command(summary)]

    assert cheaper("long", "wal", 65536, 4096) == [
        "Cheaper in the lab: pages of 4 KiB for 64 KiB; not measured here (joj bill --like FILE).",
        "joj bill --like FILE --set page_size_bytes=4096 --set sync_call=fdatasync",
    ]
    nothing = ["Cheaper: most commits were wal, with fdatasync; joj advise searches.", ""]
    assert cheaper("short", "wal", 4096, 4096) == nothing
    assert cheaper("blocks", "wal", 65536, 65536) == nothing
    assert cheaper("unknown", "wal", None, 4096) == nothing
    assert cheaper("before", "wal", 65536, None) == nothing
    assert "pages" not in cheaper("persist", "persist", 65536, 4096)[0]


def test_a_run_of_the_lab_is_no_live_trace(tmp_path: Path) -> None:
    run = run_of(tmp_path, wal_capture({"journal_mode": "wal"}, 1, 3))
    assert live_traces(Dataset.from_runs(run)) == {}
