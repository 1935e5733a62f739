"""The words of what survives: exact, and never more than was tested."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from jojlab.analysis.run.durability import summarise_power_cuts
from jojlab.analysis.run.risks import hazards
from jojlab.analysis.run.summary import CaseSummary
from jojlab.campaign.generated import SQL
from jojlab.experiment.cases import complete
from jojlab.model.filesystems import SUPERBLOCK
from jojlab.model.filesystems.ubifs import UNCHECKED_DATA
from jojlab.model.hazards import ModeCounts, Observation
from jojlab.report import generated
from jojlab.report.durability import (
    boot_sentence,
    case_mark,
    cause_sentences,
    contradiction,
    model_limits,
    moments,
    needs_sentence,
    outcome_words,
    risk,
    short_lines,
    summarise_durability,
    unjudged_line,
    verdict_sentence,
    worst_sentence,
)
from jojlab.report.shared import text
from jojlab.trace.power_cuts import PowerCuts
from tests.power_cut_answers import (
    COMMIT_BLOCK_LOG,
    SUPERBLOCK_LOG,
    XFS_LOG,
    answer,
    slot,
    smallest,
    state,
    states,
)


def case(outcomes: list[dict[str, Any]] | None, settings: Any = None, **more: Any) -> CaseSummary:
    fields = complete(settings or {"journal_mode": "wal"})
    left = None
    if outcomes is not None:
        left = summarise_power_cuts(
            [msgspec.convert(answer(outcomes, {"a": "b"}, **more), PowerCuts)]
        )
    return CaseSummary("case", "case", fields, "ok", "", hazards=hazards(fields), durability=left)


MODEL = (
    "[volatile cache, FUA, writes torn at 512 bytes, second cuts during recovery, "
    "fsck of every state]"
)


TORN = state(1, "torn", "corrupt")
SECOND = state(2, "second", "corrupt")


def test_an_untested_case_says_that_it_was_not_tested() -> None:
    assert (
        outcome_words(case(None))
        == verdict_sentence(case(None))
        == summarise_durability([case(None)])
        == "not tested"
    )
    assert risk(case(None)) == case_mark(case(None)) == contradiction(case(None)) == ""


def test_the_verdict_names_the_modelled_cache_and_tears() -> None:
    told = {"volatile_cache": [True, False], "fua": [True, False], "torn_bytes": [4096, 512]}
    assert (
        "[device: volatile cache, FUA, slots of 4 KiB kept whole; journal_device: no volatile "
        "cache, writes torn at 512 bytes, no second cuts, no fsck]"
    ) in verdict_sentence(case(states(harmless=4), model=told))
    alike = {"volatile_cache": [True, True], "fua": [True, True], "torn_bytes": [512, 512]}
    words = "[volatile cache, FUA, writes torn at 512 bytes, no second cuts, no fsck]"
    assert words in verdict_sentence(case(states(harmless=4), model=alike))
    nand = {"volatile_cache": False, "torn_bytes": 512, "torn_pages": True}
    words = "[no volatile cache, torn pages of NAND, which cannot be read, no second cuts, no fsck]"
    assert words in verdict_sentence(case(states(harmless=4), model=nand))


def test_several_torn_slots_are_part_of_the_model() -> None:
    told = {"volatile_cache": True, "torn_bytes": 512, "torn_slots_max": 8}
    words = "writes torn at 512 bytes, up to 8 slots torn at once, no second cuts"
    assert words in verdict_sentence(case(states(harmless=4), model=told))
    assert "at once" not in verdict_sentence(
        case(states(harmless=4), model={**told, "torn_slots_max": 1})
    )


def test_torn_slots_that_cannot_be_read_are_part_of_the_model() -> None:
    told = {"volatile_cache": True, "torn_bytes": 512, "unreadable_tears": True}
    judged = case(states(harmless=4), model=told)
    words = "writes torn at 512 bytes, torn slots unreadable until they are written, no second"
    assert words in verdict_sentence(judged)
    assert judged.durability
    assert "other sectors that cannot be read" in model_limits(judged, judged.durability)


def test_atomic_writes_are_part_of_the_model() -> None:
    told = {"volatile_cache": True, "torn_bytes": 512, "atomic_write_bytes": 16384}
    words = "writes torn at 512 bytes, atomic writes of up to 16 KiB"
    assert f"{words}, no second" in verdict_sentence(case(states(harmless=4), model=told))
    torn = case([state(1, outcome="torn")], model={**told, "torn_atomic_writes": True})
    assert f"{words}, which the device tears all the same" in verdict_sentence(torn)
    assert short_lines([torn])[1].endswith("; the manuals take the device for sound.")
    none = case(states(harmless=4), model={**told, "atomic_write_bytes": 0})
    assert "atomic" not in verdict_sentence(none)


def test_a_cut_of_the_devices_own_work_is_part_of_the_model() -> None:
    told = {"volatile_cache": True, "torn_bytes": 512}
    own = {"stale_mapping_flushes": [0, 2], "early_erase": [False, True]}
    judged = case([state(1, "stale-mapping", "lost")], model={**told, **own})
    words = (
        "torn at 512 bytes, mapping stale by up to 2 flushes, slots lost that garbage collection "
        "moved out of erased rows, no second cuts"
    )
    assert words in verdict_sentence(judged)
    assert "a part of the device's mapping was as before an earlier flush" in worst_sentence(judged)
    assert short_lines([judged])[1] == (
        "The case loses the last commit: 1 of 1 state; the manuals take the device for sound."
    )
    erased = case([state(1, outcome="lost")], model={**told, "early_erase": True})
    assert short_lines([erased])[1].endswith("; the manuals take the device for sound.")
    assert judged.durability
    assert "garbage" not in model_limits(judged, judged.durability)
    sound = case(states(harmless=4), model={**told, "stale_mapping_flushes": 0})
    assert "stale" not in verdict_sentence(sound)
    assert sound.durability
    assert "in the middle of garbage collection" in model_limits(sound, sound.durability)


def test_unmountable_states_are_told_with_what_a_boot_makes_of_them() -> None:
    refused = {
        "command": "e2fsck -p",
        "words": "exit status: 4: flash0: UNEXPECTED INCONSISTENCY;\nRUN fsck MANUALLY.",
        "outcome": "unmountable",
        "message": "",
    }
    repaired = {**refused, "words": "exit status: 1: ", "outcome": "kept"}
    found = case(
        [
            state(9, outcome="unmountable", at_boot=refused),
            state(2, outcome="unmountable", at_boot=repaired),
            state(3, outcome="unmountable"),
        ]
    )
    assert boot_sentence(found) == (
        "Of 2 unmountable states, once a boot has run its fsck: 1 mounted, and kept, 1 still not "
        "mounted."
    )
    assert (
        "; e2fsck -p, as boots run it (exit status: 4: flash0: UNEXPECTED INCONSISTENCY; RUN fsck "
        "MANUALLY.): still not mounted."
    ) in worst_sentence(found)
    assert boot_sentence(case([state(1, outcome="lost")])) == ""


def test_a_case_that_lost_nothing_is_not_refuted() -> None:
    found = case(states(harmless=1000))
    assert outcome_words(found) == "nothing lost in 1,000 states"
    assert verdict_sentence(found) == (
        f"not refuted: all 250 boundary states and 750 sampled of model {MODEL}; "
        "of states drawn like these at most 0.40 % do harm (95 %, 3/750)"
    )
    left_out = case(states(harmless=8), boundary_states_left_out=5)
    assert "not refuted: 2 of 7 boundary states and 6 sampled" in verdict_sentence(left_out)


def test_the_answer_counts_cases_and_calls_none_safe() -> None:
    found, harmed = case(states(harmless=1000)), case([state(1, outcome="lost"), state(2)])
    assert short_lines([found, harmed]) == (
        "Power cuts proved 1 of 2 cases unsafe; 1 not refuted in 1,000 states, which proves "
        "nothing safe.",
        "The worst, case, loses the last commit: 1 of 2 states; the manuals rule that out.",
        "",
        "",
    )
    block = state(3, "torn", "unmountable", kernel_log=COMMIT_BLOCK_LOG, smallest=TORN_INODE)
    assert short_lines([case([block, state(4)])]) == (
        "Power cuts proved 1 of 1 case unsafe.",
        "The case can leave the filesystem unmountable: 1 of 2 states; the manuals rule that out.",
        "Of 1 harmful state 1 was shrunk; it takes a torn write in 1.",
        "In 1 of them it is a torn commit block of ext4's journal, which any setting here risks.",
        "",
    )
    lazy = {"journal_mode": "wal", "synchronous": "normal"}
    both = case([block, state(5, outcome="lost")], lazy)
    assert short_lines([both])[1] == "The case loses the last commit: 1 of 2 states."
    assert contradiction(both) == ("contradiction: the manuals rule this harm out (1 unmountable)")
    assert short_lines([case(None)]) == ("No case was judged.",)


def test_the_answer_names_a_judging_that_failed_and_counts_the_others() -> None:
    assert unjudged_line({}) == ""
    one = {"wal: fsync main.db 3, seed 1": "Input/output error"}
    assert unjudged_line(one) == "Failed, and so not judged: wal: fsync main.db 3, seed 1."
    two = {"wal, seed 1": "it did not boot", "wal, seed 2": "it did not boot"}
    assert unjudged_line(two) == "Failed, and so not judged: wal, seed 1, and 1 other."


@pytest.mark.parametrize(
    ("harm", "words"),
    [
        (state(1, outcome="lost"), "loses the last commit: 1 of 2 states"),
        (state(1, outcome="lost", lost=43), "loses up to 43 commits: 1 of 2 states"),
        (state(1, outcome="torn"), "can split a transaction: 1 of 2 states"),
        (state(1, outcome="corrupt"), "can corrupt: 1 of 2 states"),
        (state(1, outcome="unmountable"), "can leave the filesystem unmountable: 1 of 2 states"),
    ],
)
def test_harm_that_was_seen_is_proof(harm: dict[str, Any], words: str) -> None:
    found = case([harm, state(2)])
    assert outcome_words(found) == words
    assert risk(found) == words
    assert case_mark(found) == f"seen: {words}"
    assert verdict_sentence(found).startswith("proven unsafe: ")
    assert "manuals rule this harm out" in contradiction(found)


def test_a_file_has_operations_in_place_of_commits() -> None:
    found = case([state(1, outcome="lost")], {"workload": "file-write"})
    assert outcome_words(found) == "loses the last operation: 1 of 1 state"
    assert "acknowledged operations lost" in worst_sentence(found)
    assert "just after an operation returned" in moments(found)


def test_a_replay_is_judged_by_its_syncs_and_says_so() -> None:
    kept = case(states(harmless=40), {"workload": "replay"})
    assert outcome_words(kept) == "nothing that a sync promised was lost in 40 states"
    words = "; judged by what its syncs promised, not by its commits"
    assert verdict_sentence(kept).endswith(words)
    assert "not refuted" in verdict_sentence(kept)
    lost = case([state(1, outcome="lost")], {"workload": "replay"})
    assert verdict_sentence(lost).endswith(words)
    assert "contradiction" in contradiction(lost)
    # What is said of its commits its power cuts neither confirm nor refute.
    unsynced = Observation(modes={"wal": ModeCounts(9, end_unsynced=9)}, found_databases=1)
    warned = replace(kept, hazards=hazards(kept.case, observation=unsynced))
    assert warned.hazards
    assert contradiction(warned) == ""


@pytest.mark.parametrize(
    ("found", "words"),
    [
        ([56, 57], "the databases are as after 56 commits and 57 commits"),
        ([56, 1, None], "as after 56 commits, 1 commit and no number of commits that was known"),
        ([3, 3], "each of the databases is as after 3 commits"),
        ([1], "the database is as after 1 commit"),
    ],
)
def test_databases_that_differ_are_told_in_words(found: list[int | None], words: str) -> None:
    torn = state(1, outcome="torn") | {"found": found, "message": ""}
    assert worst_sentence(case([torn])).endswith(f"{words}.")


def test_a_risk_mark_names_manuals_and_power_cuts() -> None:
    lazy = {"journal_mode": "wal", "synchronous": "normal"}
    assert risk(case([state(1, outcome="lost")], lazy)) == (
        "last commits; loses the last commit: 1 of 1 state"
    )
    assert "no harm was seen" in contradiction(case(states(harmless=3), lazy))


LOST_PAGE = smallest(slot(file="/a.db-wal", place=12288))
TORN_INODE = smallest(slot(0, 1, 7))


@pytest.mark.parametrize(
    ("harm", "told"),
    [
        ([], ""),
        ([TORN], "What the harm takes is not known: no harmful state was shrunk."),
        ([TORN | {"smallest": TORN_INODE}], "it takes a torn write in 1:"),
        # A torn draw whose harm a lost slot does as well: no tear is said.
        ([TORN | {"smallest": LOST_PAGE}], "none takes a torn write or a second cut:"),
        (
            [SECOND | {"smallest": smallest(slot(), first_slots=2)}],
            "a second cut in 1",
        ),
        (
            [TORN | {"smallest": smallest()}],
            "it takes no lost write in 1",
        ),
        # What was not shrunk to the end is no finding.
        ([TORN | {"smallest": LOST_PAGE | {"is_minimal": False}}], "no harmful state was shrunk"),
    ],
)
def test_a_tear_is_said_only_where_it_is_needed(harm: list[dict[str, Any]], told: str) -> None:
    found = needs_sentence(case([*harm, state(9, "torn"), state(10, "subset")]))
    assert told in found if told else not found
    # What one harmful state takes says nothing of a device that tears none.
    assert "4 KiB" not in found
    assert "atomic_slots" not in found


def test_the_smallest_cut_names_file_kind_place_and_call() -> None:
    shrunk = case([state(3, "subset", "lost", smallest=LOST_PAGE)])
    words = "lost: 4 KiB of data of /a.db-wal at 12,288, by fsync(/a.db-wal)"
    assert f"acknowledged commits lost; the least that does it: {words}" in worst_sentence(shrunk)
    assert cause_sentences(shrunk) == [f"1 state lost: {words}"]
    flush = {"issue_ns": 3000 - 1500, "call": "fdatasync", "call_file": "/a.db-wal"}
    kept = state(3, "subset", "lost", cut_ns=3000, smallest=LOST_PAGE | {"kept_flush": flush})
    flushed = "kept: what the flush of fdatasync(/a.db-wal) found completed, 1.50 µs before the cut"
    assert f"{words}; {flushed}" in worst_sentence(case([kept]))
    assert cause_sentences(case([kept])) == cause_sentences(shrunk)
    twice = state(4, "second", "corrupt", smallest=smallest(slot(0, 1, 7), first_slots=2))
    assert cause_sentences(case([twice])) == [
        "1 state corrupt: by a second cut, after a first that took 2 slots (not shrunk): torn: "
        "4 KiB of fs-metadata inode at 28,672 of flash0, by fsync, of which 3 of 8 sectors survive"
    ]


def test_a_torn_slot_that_cannot_be_read_is_said_to_be_so() -> None:
    torn = state(4, "torn", "corrupt", smallest=smallest(slot(0, 1, 7)))
    words = "torn: 4 KiB of fs-metadata inode at 28,672 of flash0, by fsync, which cannot be read"
    for told in (True, [True, False]):
        judged = case([torn], model={"torn_bytes": 512, "unreadable_tears": told})
        assert cause_sentences(judged) == [f"1 state corrupt: {words}"]
    other = case([torn], model={"torn_bytes": 512, "unreadable_tears": [False, True]})
    assert cause_sentences(other)[0].endswith("of which 3 of 8 sectors survive")


def test_a_slot_of_which_two_writes_must_be_lost_is_named_once() -> None:
    superblock = slot(file="", place=65536)
    twice = state(1, "subset", "lost", smallest=smallest(superblock, superblock))
    (words,) = cause_sentences(case([twice]))
    assert words.endswith(", in 2 writes")
    assert words.count("4 KiB") == 1


def test_states_of_one_cause_are_counted_together() -> None:
    other = smallest(slot(file="/a.db-wal", place=4096))
    found = case(
        [state(n, "subset", "lost", smallest=cut) for n, cut in ((1, LOST_PAGE), (2, other))]
    )
    assert [line.split(":")[0] for line in cause_sentences(found)] == ["2 states lost"]


def test_a_program_is_judged_by_its_check_and_the_words_say_so() -> None:
    fields = {"workload": "program", "program": "./engine", "check": "./check"}
    kept = case(states(harmless=40), fields)
    assert outcome_words(kept) == "the check found no harm in 40 states"
    assert verdict_sentence(kept).endswith("; judged by the check ./check and by the filesystem")
    words = "check: what was acknowledged is lost (exit code 1): 2 of 9 records"
    lost = case([state(9, "prefix", "lost", lost=0, message=words)], fields)
    drawn = case(states(harmless=4), {**fields, "schedule": 3})
    assert "; in the drawn order 3 of its threads; judged by" in verdict_sentence(drawn)
    assert outcome_words(lost) == "loses what was acknowledged: 1 of 1 state"
    assert words in worst_sentence(lost)
    assert "just after a line was acknowledged" in moments(lost)
    # No manual says what a check looks for, and its harm is a failure all the same.
    assert contradiction(lost) == ""
    assert (kept.is_refuted, lost.is_refuted) == (False, True)


def test_databases_of_a_program_are_judged_as_far_as_their_rows_are_known() -> None:
    kept = case(states(harmless=40), {"workload": "program", "program": "./app"})
    assert outcome_words(kept) == "no harm was found in its databases in 40 states"
    assert "integrity_check, and the rows after each commit" in verdict_sentence(kept)
    words = "app.db: its rows are older by 2 commits that had returned"
    lost = state(9, "prefix", "lost", lost=2, message=words)
    assert words in worst_sentence(case([lost], {"workload": "program", "program": "./app"}))


@pytest.mark.parametrize(
    ("log", "told"),
    [
        (
            SUPERBLOCK_LOG,
            "a torn superblock: every setting on this filesystem and device risks it (docs/",
        ),
        (
            COMMIT_BLOCK_LOG,
            "a torn commit block of ext4's journal: every setting on this filesystem and device "
            "risks it, e2fsck -p repairs it, and kernels that have "
            "jbd2_commit_block_csum_verify_partial() mount it (docs/",
        ),
        (
            XFS_LOG,
            "a torn metadata block of XFS: every setting on this filesystem and device risks it, "
            "xfs_repair -L repairs it, but loses what only the log has (docs/",
        ),
    ],
)
def test_a_torn_block_is_told_of_every_setting(log: str, told: str) -> None:
    for torn, kernel_log in ((True, log), (True, ""), (False, log)):
        found = state(2, "second", "unmountable", is_torn=torn, kernel_log=kernel_log)
        assert (told in worst_sentence(case([found]))) == (torn and bool(kernel_log))


def test_the_worst_state_is_told() -> None:
    found = case([state(9, "drop-one", "lost", lost=2), state(3, "prefix", "lost")])
    assert worst_sentence(found) == (
        "The worst (state 00000000): cut just after a commit returned, all of what was in flight "
        "survived but one write: 2 of 9 acknowledged commits lost."
    )
    assert summarise_durability(
        [case(states(harmless=3)), case([state(1, outcome="lost")]), case(None)]
    ) == ("1 proven unsafe, 1 not refuted, 1 not tested")


@pytest.mark.parametrize(
    ("options", "is_blind"),
    [
        ("noatime", True),
        ("noatime,chk_data_crc", False),
        ("chk_data_crc,no_chk_data_crc", True),
    ],
)
def test_ubifs_says_where_it_gives_wrong_bytes_without_an_error(
    options: str, is_blind: bool
) -> None:
    found = case(states(harmless=3), {"filesystem": "ubifs", "mount_options": options})
    assert found.durability
    assert (UNCHECKED_DATA in model_limits(found, found.durability)) == is_blind


def test_no_other_filesystem_is_said_to_be_mounted_without_ubifs_checks() -> None:
    found = case(states(harmless=3), {"filesystem": "ext4"})
    assert found.durability
    assert UNCHECKED_DATA not in model_limits(found, found.durability)


def test_a_replay_with_commits_costs_by_commit_and_is_judged_by_operation() -> None:
    cut = case(states(lost=2, harmless=38))
    replay = replace(cut, case={"workload": "replay"})
    with_sqlite = replace(replay, has_found_commits=True)
    names = [text.transaction_name([each]) for each in (replay, with_sqlite, cut)]
    assert names == ["operation", "COMMIT", "COMMIT"]
    assert "commit" in outcome_words(cut)
    assert "commit" not in outcome_words(with_sqlite)


def test_no_harm_of_drawn_scripts_is_said_of_what_was_judged() -> None:
    torn = Counter({SUPERBLOCK: 2})
    assert generated.short_lines(SQL, 9, 50, None, None, torn, 3) == (
        "No harm against the manuals in 9 scripts, up to 50 states each; that proves nothing safe.",
        "Not counted: a torn superblock in 2 states; no script avoids it.",
        "Failed, and so not judged: 3 cases.",
    )
    assert len(generated.short_lines(SQL, 1000, 1000, None, None, Counter(), 0)) == 1
