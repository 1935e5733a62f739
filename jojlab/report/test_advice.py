"""Lines to paste, given to the programs that they are for."""

from __future__ import annotations

import re
import shutil
import sqlite3
import subprocess
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from jojlab.advise.advice import Advice, Choice
from jojlab.advise.request import advice_request
from jojlab.advise.search import Limits, Score
from jojlab.advise.space import Candidate, Space
from jojlab.analysis.run.durability import summarise_power_cuts
from jojlab.analysis.run.risks import Guarantee
from jojlab.analysis.run.summary import CaseSummary
from jojlab.experiment.cases import complete
from jojlab.model.field import Value
from jojlab.report.advice import (
    advice_lines,
    durability_words,
    incomplete,
    over_limits,
    states_judged,
)
from jojlab.report.settings import concessions, lines_to_paste, settings_label
from jojlab.trace.power_cuts import NATIVE, PowerCuts
from tests.power_cut_answers import COMMIT_BLOCK_LOG, SUPERBLOCK_LOG, answer, state, states

GIB = 1 << 30
PAGE = "PRAGMA page_size"


def lines_of(candidate: Candidate, space: Space) -> list[str]:
    return lines_to_paste(space.settings(candidate), space.differences(candidate), space.schemas)


def app_choice(guarantee: str = "durable", journal_device: str = "", **given: Value) -> Space:
    return advice_request(given, set(), guarantee, journal_device=journal_device).space


def sql(lines: list[str]) -> str:
    return "\n".join(line for line in lines if line.startswith(("PRAGMA", "VACUUM")))


@pytest.mark.parametrize("own", ["delete", "wal"])
def test_sqlite_takes_the_settings_of_a_database_that_is_there(tmp_path: Path, own: str) -> None:
    found = app_choice(journal_mode=own)
    wanted: dict[str, Value] = {"page_size_bytes": 1024, "journal_mode": "wal"}
    wanted |= {"synchronous": "extra", "wal_autocheckpoint_pages": 4000}
    candidate = tuple((name, wanted.get(name, value)) for name, value in found.own)
    path = tmp_path / "main.db"
    with sqlite3.connect(path) as before:
        before.execute(f"PRAGMA journal_mode = {own}")
        before.execute("CREATE TABLE t (x)")
        before.executemany("INSERT INTO t VALUES (?)", [("x" * 100,)] * 50)
    before.close()
    told = lines_of(candidate, found)
    database = sqlite3.connect(path, isolation_level=None)
    database.executescript(sql(told))
    names = ("page_size", "journal_mode", "synchronous", "wal_autocheckpoint")
    assert [database.execute(f"PRAGMA {name}").fetchone()[0] for name in names] == [
        1024, "wal", 3, 4000
    ]  # fmt: skip
    assert database.execute("SELECT count(*) FROM t").fetchone() == (50,)
    database.close()
    # The part that is for every opening writes nothing anew.
    whenever = told[told.index("-- SQL, whenever the database is opened") :]
    assert not any(word in sql(whenever) for word in ("VACUUM", PAGE, "DELETE"))


ATTACHED = "--! database shop.db\n--! attach media.db AS media\nBEGIN;\nCOMMIT;\n"


def scripts_choice(folder: Path, **given: Value) -> Space:
    app = folder / "app"
    app.mkdir()
    (app / "transaction.sql").write_text(ATTACHED)
    return app_choice("durable", "", workload="sql", scripts=str(app), **given)


def test_every_attached_database_gets_the_settings_that_were_tested(tmp_path: Path) -> None:
    found = scripts_choice(tmp_path, page_size_bytes=4096)
    assert found.schemas == ("main", "media")
    wanted: dict[str, Value] = {
        "journal_mode": "persist", "synchronous": "extra", "page_size_bytes": 1024,
        "locking_mode": "exclusive",
    }  # fmt: skip
    candidate = tuple((name, wanted.get(name, value)) for name, value in found.own)
    told = lines_of(candidate, found)
    once, _, whenever = "\n".join(told).partition("-- SQL, whenever the database is opened")
    assert "after ATTACH" in once
    assert whenever.startswith(", after ATTACH\n")
    for name in ("shop.db", "media.db"):
        with sqlite3.connect(tmp_path / name) as before:
            before.execute("CREATE TABLE t (x)")
        before.close()

    def open_databases() -> sqlite3.Connection:
        database = sqlite3.connect(tmp_path / "shop.db", isolation_level=None)
        database.execute("ATTACH ? AS media", (str(tmp_path / "media.db"),))
        return database

    database = open_databases()
    database.executescript(sql(once.splitlines()))
    database.close()
    database = open_databases()
    database.executescript(sql(whenever.splitlines()))
    names = ("journal_mode", "synchronous", "page_size", "locking_mode")
    for schema in found.schemas:
        read = [database.execute(f"PRAGMA {schema}.{name}").fetchone()[0] for name in names]
        assert read == ["persist", 3, 1024, "exclusive"], schema
    database.close()


def test_an_app_that_sets_its_pragmas_before_it_attaches_sets_main_alone() -> None:
    found = app_choice("none", databases=2, attached_settings="sqlite")
    assert found.schemas == ("main", "db2")
    told = lines_of(found.own, found)
    assert "PRAGMA journal_mode = TRUNCATE;" in told
    assert not any("db2" in each for each in told)
    of_both = app_choice("none", databases=2)
    assert "PRAGMA db2.synchronous = FULL;" in lines_of(of_both.own, of_both)


def test_the_vfs_is_tried_with_a_wal_alone_and_named_with_its_line() -> None:
    found = app_choice(journal_mode="wal")
    candidate = found.change_field(found.own, "vfs", "wal")
    assert found.can_run(candidate)
    assert found.is_allowed(candidate)
    assert "LD_PRELOAD=$(joj cure --path)/joj_wal_preload.so APP" in lines_of(candidate, found)
    assert "LD_PRELOAD" not in "".join(lines_of(found.own, found))
    told = concessions(found.settings(candidate), found.differences(candidate))
    assert told == ["a library in the app's process; the WAL stays, of up to 4 MiB"]
    of_truncate = app_choice(journal_mode="truncate")
    assert not of_truncate.can_run(of_truncate.change_field(of_truncate.own, "vfs", "wal"))


def test_a_redo_log_is_tried_for_several_databases_or_where_a_wal_is_none() -> None:
    found = app_choice(journal_mode="truncate", databases=3)
    candidate = found.change_field(found.own, "vfs", "redo")
    assert found.can_run(candidate)
    assert found.is_allowed(candidate)
    assert "LD_PRELOAD=$(joj cure --path)/joj_redo_preload.so APP" in lines_of(candidate, found)
    price = concessions(found.settings(candidate), found.differences(candidate))
    assert any("refuses a database whose process died" in each for each in price)
    in_wal = found.change_field(candidate, "journal_mode", "wal")
    assert not found.can_run(in_wal)
    of_one = app_choice(journal_mode="truncate")
    assert not of_one.can_run(of_one.change_field(of_one.own, "vfs", "redo"))
    of_fixed = replace(of_one, values={**of_one.values, "journal_mode": ("truncate",)})
    assert of_fixed.can_run(of_fixed.change_field(of_fixed.own, "vfs", "redo"))


def test_a_closing_without_a_checkpoint_is_tried_with_a_wal_alone_and_named_with_its_line() -> None:
    found = app_choice(journal_mode="wal")
    candidate = found.change_field(found.own, "checkpoint_when_closed", "off")
    assert found.can_run(candidate)
    line = "sqlite3_db_config(db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, {}, (int *)0);"
    assert line.format(1) in lines_of(candidate, found)
    assert "NO_CKPT_ON_CLOSE" not in "".join(lines_of(found.own, found))
    assert "no checkpoint when closed" in settings_label(found.settings(candidate))
    told = concessions(found.settings(candidate), found.differences(candidate))
    assert [each.partition(":")[0] for each in told] == ["a closed database has commits in its WAL"]
    left = app_choice(journal_mode="wal", checkpoint_when_closed="off")
    copied = left.change_field(left.own, "checkpoint_when_closed", "on")
    assert line.format(0) in lines_of(copied, left)
    truncate = app_choice(journal_mode="truncate")
    idle = truncate.change_field(truncate.own, "checkpoint_when_closed", "off")
    assert not truncate.can_run(idle)


def test_settings_that_split_a_transaction_of_scripts_are_left_out(tmp_path: Path) -> None:
    found = scripts_choice(tmp_path)
    modes = {dict(each)["journal_mode"] for each in found.candidates}
    assert modes == {"delete", "truncate", "persist"}
    wal = found.change_field(found.own, "journal_mode", "wal")
    assert not found.is_allowed(wal)
    told = concessions(found.settings(wal), found.differences(wal), found.observation)
    assert any("in only some of them" in each for each in told)


def test_every_mkfs_line_makes_its_filesystem(tmp_path: Path) -> None:
    found = app_choice("none")
    made = set()
    for candidate in found.structures():
        for name, near in [("", candidate), *found.neighbours(candidate)]:
            told = [line for line in lines_of(near, found) if line.startswith("mkfs.")]
            if name in ("", "mkfs_options") and told:
                made |= set(told)
    assert {line.split()[0] for line in made} == {
        "mkfs.ext4", "mkfs.xfs", "mkfs.btrfs", "mkfs.nilfs2", "mkfs.f2fs"
    }  # fmt: skip
    for line in made:
        if not shutil.which(program := line.split()[0]):
            pytest.fail(f"{program} is not installed")
        disk = tmp_path / "disk"
        with disk.open("wb") as file:
            file.truncate(GIB)
        words = [str(disk) if word == "DEVICE" else word for word in line.split()]
        answer = subprocess.run(words, capture_output=True, text=True, check=False)
        assert answer.returncode == 0, (line, answer.stderr)
        disk.unlink()


def test_a_journal_of_its_own_is_named_in_every_line_that_needs_it() -> None:
    for filesystem, wanted in {
        "ext4": ["mkfs.ext4 -b 4096 -O journal_dev JOURNAL_DEVICE",
                 "mkfs.ext4 -b 4096 -J device=JOURNAL_DEVICE DEVICE",
                 "mount -t ext4 -o noatime DEVICE DIRECTORY"],
        "xfs": ["mkfs.xfs -l logdev=JOURNAL_DEVICE DEVICE",
                "mount -t xfs -o noatime,logdev=JOURNAL_DEVICE DEVICE DIRECTORY"],
    }.items():  # fmt: skip
        found = app_choice("none", "ufs-3.1", filesystem=filesystem)
        [moved] = [near for name, near in found.neighbours(found.own) if name == "journal_device"]
        assert [each for each in lines_of(moved, found) if "DEVICE" in each][1:] == wanted


def test_a_changed_mount_option_needs_no_mkfs() -> None:
    found = app_choice(filesystem="ext4")
    [lazy] = [
        near for name, near in found.neighbours(found.own)
        if name == "mount_options" and "lazytime" in str(dict(near)[name])
    ]  # fmt: skip
    told = lines_of(lazy, found)
    assert told[-2:] == ["# as root", "mount -t ext4 -o noatime,lazytime DEVICE DIRECTORY"]
    assert not concessions(found.settings(lazy), found.differences(lazy))
    assert not re.search("mkfs|VACUUM", "\n".join(told))


def test_risks_that_a_change_adds_are_told_as_given_up() -> None:
    found = app_choice("none", filesystem="ext4", journal_mode="delete", synchronous="full")
    for name, value, wanted in (
        ("mount_options", "noatime,nobarrier", "corrupt the database and the filesystem"),
        ("synchronous", "off", "can lose commits and corrupt the database"),
    ):
        near = found.change_field(found.own, name, value)
        told = concessions(found.settings(near), found.differences(near))
        assert any(wanted in each for each in told)
        # What the present settings risk already is not given up.
        assert not any("DELETE with" in each for each in told)
    assert not concessions(found.settings(found.own), {})


def test_advice_says_how_many_states_of_which_run_were_judged() -> None:
    def judged_cases(regime: str, native: int = 0, **fields: Value) -> dict[str, CaseSummary]:
        settings = complete({"regime": regime, **fields})
        judges = [NATIVE] * native + ["guest"] * (40 - native)
        each = [
            {**state, "judge": judge}
            for state, judge in zip(states(harmless=40), judges, strict=True)
        ]
        found = answer(each, {"a": "b"}, draws=9000)
        cuts = summarise_power_cuts([msgspec.convert(found, PowerCuts)])
        return {regime: CaseSummary("case", "case", settings, "ok", "", durability=cuts)}

    cost = Score(1, 1, 1, 1, 1)
    inserts = Choice((), cost, judged_cases("steady", transactions=90))
    assert states_judged(inserts, 40) == "steady: 40 distinct states of a run of 90 transactions"
    recorded = Choice(
        (), cost, judged_cases("reopened", workload="sql-recorded", scripts="app-sql")
    )
    assert states_judged(recorded) == "reopened: 40 distinct states of the run"
    told = "reopened: all 40 distinct states that 9000 draws found of the run"
    assert states_judged(recorded, 41) == told
    assert states_judged(Choice((), cost)) == ""
    some = "(User Mode Linux judged 30 of 40 states, and the guest the others)"
    assert states_judged(Choice((), cost, judged_cases("steady", 30))).endswith(some)
    every = states_judged(Choice((), cost, judged_cases("steady", 40)))
    assert every.endswith("(User Mode Linux judged all 40 states)")


def test_a_torn_block_is_no_fault_of_settings_on_the_same_filesystem() -> None:
    superblock = state(41, "second", "unmountable", is_torn=True, kernel_log=SUPERBLOCK_LOG)
    commit = state(42, "torn", "unmountable", kernel_log=COMMIT_BLOCK_LOG)
    for harmful, told, breaks in (
        ([superblock], "a torn superblock in 1 of 41 states", False),
        ([commit], "a torn commit block of ext4's journal in 1 of 41 states", False),
        (
            [superblock, commit],
            "a torn superblock or a torn commit block of ext4's journal in 2 of 42 states",
            False,
        ),
        ([commit, state(43, outcome="lost")], "harm in 2 of 42 states", True),
        ([superblock, state(43, outcome="unmountable")], "harm in 2 of 42 states", True),
    ):
        found = answer([*states(harmless=40), *harmful], {"a": "b"})
        cuts = summarise_power_cuts([msgspec.convert(found, PowerCuts)])
        case = CaseSummary("case", "case", complete({}), "ok", "", durability=cuts)
        choice = Choice((), Score(1, 1, 1, 1, 1), {"": case})
        assert durability_words(choice) == told
        assert choice.breaks(Guarantee.DURABLE, but_torn_blocks=True) == breaks
        assert choice.breaks(Guarantee.DURABLE, but_torn_blocks=False)


def test_the_answer_names_a_torn_block_in_thousands_of_states() -> None:
    commit = state(2459, "torn", "unmountable", kernel_log=COMMIT_BLOCK_LOG)
    found = {**answer([*states(harmless=2458), commit], {"a": "b"}), "end_ns": 10**13}
    cuts = summarise_power_cuts([msgspec.convert(found, PowerCuts)])
    case = CaseSummary("case", "case", complete({}), "ok", "", durability=cuts)
    request = advice_request({"journal_mode": "wal"}, set(), "durable", states=2459)
    choice = Choice(request.space.own, Score(1, 1, 1, 1, 1), {"": case})
    assert (
        "Power cuts: a torn commit block of ext4's journal in 1 of 2,459 states; durable by the "
        "manuals."
    ) in advice_lines(Advice(choice, [choice]), request)


def test_settings_that_the_manuals_refuse_are_not_shown_as_safe() -> None:
    cuts = summarise_power_cuts(
        [msgspec.convert(answer(states(harmless=40), {"a": "b"}), PowerCuts)]
    )
    case = CaseSummary("case", "case", complete({}), "ok", "", durability=cuts)
    off = Choice((), Score(1, 1, 1, 1, 1), {"": case}, manual_refuses=True)
    assert durability_words(off) == "nothing lost in 40 states; refused by the manuals"


def test_lost_work_alone_is_not_called_harm() -> None:
    found = answer([*states(harmless=40), state(41, outcome="lost")], {"a": "b"})
    cuts = summarise_power_cuts([msgspec.convert(found, PowerCuts)])
    case = CaseSummary("case", "case", complete({}), "ok", "", durability=cuts)
    normal = Choice((), Score(1, 1, 1, 1, 1), {"": case})
    assert durability_words(normal) == "acknowledged work lost in 1 of 41 states, nothing corrupt"


def test_the_candidate_closest_to_the_limits_is_named() -> None:
    limits = Limits(p99_ns=1e6, years=50, commits_a_day=10_000)
    asked = advice_request({"filesystem": "ext4"}, {"filesystem"}, "durable", limits=limits)
    own = asked.space.own
    advice = Advice(Choice(own, Score(1, 1, 1, 1, 1)), over_limits=2)
    assert over_limits(advice, asked) == "2 candidates over the limits"
    advice.closest = (own, Score(2e7, 2e7, 3e6, 4096, 65536))
    told = over_limits(advice, asked)
    assert told.startswith("2 candidates over the limits; the closest, with a p99 of 3.000 ms and ")
    assert told.endswith("26.91 years: ext4, truncate, full, fsync, pages of 4 KiB, noatime")


def test_incomplete_reasons_are_told_with_their_choices() -> None:
    failed, grew = "3 statements failed", "app.db grew in the measured part"
    cost = Score(1, 1, 1, 1, 1)
    advice = Advice(
        Choice((), cost, incomplete=(failed,)),
        answers=[Choice((), cost, incomplete=(failed, grew)), Choice((), cost)],
        refused=[Choice((), cost, incomplete=(grew,))],
    )
    assert incomplete(advice) == [f"{failed} (present, answer-1)", f"{grew} (answer-1, refused-1)"]
