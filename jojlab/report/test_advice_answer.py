"""The short answer of an advice: what to change, what a commit then takes, what power cuts left,
and for which app and device that holds.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from jojlab.advise.advice import Advice, Choice
from jojlab.advise.request import AdviceRequest, advice_request
from jojlab.advise.search import Limits, Score
from jojlab.model.field import Value
from jojlab.report.advice import advice_json, advice_lines, speed
from jojlab.report.shared import short_answer
from jojlab.report.shared.short_answer import MOST_COLUMNS, MOST_LINES

SLOW, FAST = Score(2e7, 2e7, 3e7, 8192, 9000), Score(1e7, 5e6, 2e7, 4096, 5000)


def request_of(
    guarantee: str = "durable", states: int = 10, most_rows: int = 0, **given: Value
) -> AdviceRequest:
    return advice_request(
        {"filesystem": "ext4", "transactions": 40, **given}, {"filesystem"}, guarantee,
        limits=Limits(p99_ns=5e7), states=states, most_rows=most_rows,
    )  # fmt: skip


def test_a_change_its_gain_and_its_conditions() -> None:
    asked = request_of(most_rows=2)
    own = asked.space.own
    better = asked.space.change_field(own, "statements", 2)
    assert advice_lines(Advice(Choice(own, SLOW), [Choice(better, FAST)]), asked) == (
        "Change statements to 2 (now 1).",
        "One COMMIT then takes 10 ms on average in place of 20 ms: 4 times as fast by the row.",
        "Its p99 is 20 ms in place of 30 ms; it sends 4 KiB in place of 8 KiB.",
        "Durable by the manuals; after power cuts: not tested.",
        "For sqlite-insert on the model emmc-galaxy-s3; 90 % steady, 10 % reopened; p99 within 50 "
        "ms; seed 1.",
    )


def test_an_answer_with_a_redo_log_says_what_that_is() -> None:
    asked = request_of(databases=3)
    own = asked.space.own
    redo = asked.space.change_field(own, "vfs", "redo")
    lines = advice_lines(Advice(Choice(own, SLOW), [Choice(redo, FAST)]), asked)
    assert lines[0] == "Change vfs to redo (now none)."
    trial = "vfs=redo is for trial: plain SQLite refuses databases of a process that died."
    assert lines[4] == trial
    assert trial not in advice_lines(Advice(Choice(own, SLOW), [Choice(own, SLOW)]), asked)


def test_its_numbers_are_those_of_json() -> None:
    asked = replace(request_of(), notes=("settings of app/settings.toml: none",))
    own = asked.space.own
    wal = asked.space.change_field(own, "journal_mode", "wal")
    answer = Score(3.403e6, 3.403e6, 15.07e6, 9513, 46162)
    found = advice_json(Advice(Choice(own, SLOW), [Choice(wal, answer)]), asked, {})
    assert found["notes"] == list(asked.notes)
    change, takes, sends, *_ = found["in_short"]
    now, then = found["present"], found["answers"][0]
    [(name, values)] = then["changed"].items()
    assert change == f"Change {name} to {values['new']} (now {values['old']})."

    def text_of(record: dict[str, Any], figure: str) -> str:
        formatter = short_answer.size if figure == "bytes" else short_answer.duration
        return formatter(record[figure])

    assert takes == (
        f"One COMMIT then takes {text_of(then, 'commit_ns')} on average in place of "
        f"{text_of(now, 'commit_ns')}: {short_answer.number(then['times_as_fast'])} times as fast."
    )
    assert sends == (
        f"Its p99 is {text_of(then, 'p99_ns')} in place of {text_of(now, 'p99_ns')}; it sends "
        f"{text_of(then, 'bytes')} in place of {text_of(now, 'bytes')}."
    )


def test_nothing_to_change_and_no_answer() -> None:
    asked = request_of()
    present = Choice(asked.space.own, SLOW)
    change, takes, *_ = advice_lines(Advice(present, [present]), asked)
    assert change == (
        "Change nothing: no measured settings that keep the guarantee and the limits are cheaper "
        "by 1 %."
    )
    assert takes == "One COMMIT takes 20 ms on average (p99 30 ms), and sends 8 KiB."
    none = advice_lines(Advice(present, []), asked)
    assert none[0] == "No settings that were measured keep the guarantee and the limits."
    assert not any("COMMIT" in line for line in none)


def test_advice_without_power_cuts_says_so() -> None:
    for asked, words in (
        (request_of(states=0), "Durable by the manuals alone: no power cut was asked for."),
        (request_of("none"), "A power cut may do anything (--guarantee none)."),
    ):
        present = Choice(asked.space.own, SLOW)
        assert words in advice_lines(Advice(present, [present]), asked)


def test_a_dearer_answer_says_what_the_present_settings_lose() -> None:
    for synchronous, words in (
        ("normal", "It is dearer: your present settings may lose commits."),
        ("off", "It is dearer: your present settings put at risk: last commits, database."),
    ):
        asked = request_of(journal_mode="wal", synchronous=synchronous)
        own = asked.space.own
        full = asked.space.change_field(own, "synchronous", "full")
        dear = Score(2e8, 2e8, 3e8, 8192, 9000)
        present = Choice(own, SLOW, manual_refuses=True)
        _, why, takes, *_ = advice_lines(Advice(present, [Choice(full, dear)]), asked)
        assert why == words
        assert takes == (
            "One COMMIT then takes 200 ms on average in place of 20 ms: 10 times as long."
        )
    assert (speed(0.1), speed(1), speed(12.3)) == ("1/10 ×", "1.0 ×", "12 ×")


def test_an_answer_says_that_wal_was_left_out_of_several_databases() -> None:
    def lines_and_reasons(databases: int) -> tuple[list[str], dict[str, str]]:
        asked = request_of(databases=databases)
        own = Choice(asked.space.own, SLOW)
        found = advice_json(Advice(own, [own]), asked, {})
        return found["in_short"], found["left_out"]

    lines, reasons = lines_and_reasons(2)
    assert lines[-2] == "WAL is left out, which puts at risk by the manuals: atomicity."
    assert reasons["wal"].startswith("WAL over several databases: a power cut may leave a trans")
    lines, reasons = lines_and_reasons(1)
    assert not [line for line in lines if "WAL" in line]
    assert "wal" not in reasons


def test_an_advice_s_answer_fits_and_names_incomplete_choices() -> None:
    asked = request_of(
        journal_mode="wal", synchronous="normal", value_bytes=3000, key_order="random"
    )
    own = candidate = asked.space.own
    for name, value in (("synchronous", "full"), ("page_size_bytes", 16384),
                        ("wal_autocheckpoint_pages", 4000), ("locking_mode", "exclusive"),
                        ("vfs", "wal")):  # fmt: skip
        candidate = asked.space.change_field(candidate, name, value)
    lacking = Choice(candidate, Score(2e8, 2e8, 3e8, 8192, 9000), incomplete=("a", "b"))
    lines = advice_lines(Advice(Choice(own, SLOW, manual_refuses=True), [lacking]), asked)
    assert len(lines) == MOST_LINES
    assert max(map(len, lines)) <= MOST_COLUMNS
    assert lines[0] == (
        "Change synchronous to full, page_size_bytes to 16384, wal_autocheckpoint_pages to 4000 "
        "and 2 more."
    )
    cheaper = Advice(Choice(own, SLOW), [Choice(candidate, FAST)])
    assert advice_lines(cheaper, asked)[1] == "The others: locking_mode to exclusive, vfs to wal."
    assert lines[1].startswith("It is dearer: ")
    assert lines[-2].startswith("For sqlite-insert on the model emmc-galaxy-s3; ")
    assert lines[-1] == "Incomplete: the runs of answer-1 do not count in full."
