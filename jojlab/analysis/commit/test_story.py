"""A commit's story, of a capture that is worked out by hand (tests/captures.py)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from jojlab.analysis.commit.story import Call, OwnerBytes, commit_traces, story
from jojlab.report.commits import call_stories, event_sentence
from jojlab.trace.dataset import Dataset
from tests.captures import CaptureBuilder, make_run, run_of

KIB = 1024


def ext4_calls(folder: Path) -> tuple[Call, ...]:
    """A write of 8 KiB, ext4's commit with a flush before and after its commit block, a return."""
    builder = CaptureBuilder({"journal_mode": "truncate", "filesystem": "ext4"}, 1)
    journal = builder.file("/main.db-journal", "db-journal")
    calls: dict[str, Any] = {"asker": ("fsync", journal), "service_time_ns": 1_000_000}
    carried: dict[str, Any] = {
        "reason": "main.db-journal: grew, times",
        "submitter_comm": "jbd2/flash0-8",
    }

    def body() -> None:
        waits = {**calls, "asker_begin_ns": builder.now_ns}
        builder.request([("data", "", journal, 8 * KIB)], **waits)
        runs = [("fs-journal", "descriptor", None, 4 * KIB), ("fs-journal", "copy", None, 4 * KIB)]
        builder.request(runs, **waits, **carried)
        builder.request([], operation="flush", **waits, **carried)
        builder.request([("fs-journal", "commit", None, 4 * KIB)], **waits, **carried)
        builder.request([], operation="flush", **waits, **carried)

    builder.transaction(body)
    builder.transaction(lambda: None)
    builder.transaction(body)
    return story(commit_traces(Dataset.from_runs(run_of(folder, builder)))["a"])


def test_a_flush_makes_durable_what_was_written_since_the_last(tmp_path: Path) -> None:
    (call,) = ext4_calls(tmp_path)
    assert (call.cause, call.begin_ns) == ("fsync of main.db-journal", 30_000)
    first, second = [event for event in call.events if event.operation == "flush"]
    assert first.before == "commit"
    assert second.before == ""
    assert first.durable == (
        OwnerBytes("data", "/main.db-journal", 8 * KIB),
        OwnerBytes("fs-journal", "", 8 * KIB),
    )
    assert second.durable == (OwnerBytes("fs-journal", "", 4 * KIB),)
    assert call.end_ns == 30_000 + 5 * 1_005_000


def test_a_call_of_ext4_s_commit_is_told_in_sentences(tmp_path: Path) -> None:
    (call,) = call_stories(ext4_calls(tmp_path), "ext4")
    assert call.heading == (
        "At 30.00 µs after BEGIN, fsync of main.db-journal; its last request ends at 5.055 ms"
    )
    assert call.sentences == (
        "8 KiB of main.db-journal is written (1.000 ms).",
        "ext4 must commit, because main.db-journal grew and has new times: it writes 8 KiB of "
        "fs-journal (descriptor, copy) (1.000 ms).",
        "The device flushes its cache before the commit block may be written: 8 KiB of "
        "main.db-journal and 8 KiB of fs-journal must be durable (1.000 ms).",
        "ext4 writes the commit block, 4 KiB (1.000 ms).",
        "The device flushes its cache before fsync may return: 4 KiB of fs-journal must be durable "
        "(1.000 ms).",
    )


def test_a_sync_that_is_a_transaction_begins_with_it(tmp_path: Path) -> None:
    (call,) = ext4_calls(tmp_path)
    begins = {-1000: "At its begin, fsync of ", 2000: "At 2.000 µs after its begin, fsync of "}
    for begin_ns, words in begins.items():
        [told] = call_stories([replace(call, begin_ns=begin_ns)], "ext4", "sync")
        assert told.heading.startswith(words)


def test_a_node_and_a_checkpoint_are_no_commit(tmp_path: Path) -> None:
    (call,) = ext4_calls(tmp_path)
    event = next(each for each in call.events if each.subtypes[:1] == ("descriptor",))
    for subtypes, does in (
        (("node",), "write the node of what was changed"),
        (("checkpoint",), "write a checkpoint"),
        (("node", "checkpoint"), "commit"),
    ):
        words = event_sentence(replace(event, subtypes=subtypes), call, "f2fs")
        assert words.startswith(f"f2fs must {does}, because main.db-journal grew")


def test_every_request_of_a_commit_is_in_its_story(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", seeds=[1], transactions=3)
    for trace in commit_traces(Dataset.from_runs(run)).values():
        calls = story(trace)
        events = [event for call in calls for event in call.events]
        requests = {each.request_id for each in trace.runs}
        assert sum(event.requests for event in events) == len(requests)
        written = sum(moved.bytes for event in events for moved in event.moved)
        assert written == sum(each.length_bytes for each in trace.runs)
        assert all(call.sentences for call in call_stories(calls, ""))
