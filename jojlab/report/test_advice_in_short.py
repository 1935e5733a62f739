"""The first lines of an advice say what to do, what it gains, and for what that holds."""

from __future__ import annotations

from jojlab.advise.advice import Advice, Choice
from jojlab.advise.request import AdviceRequest, advice_request
from jojlab.advise.score import Limits, Score
from jojlab.model.field import Value
from jojlab.report.advice import in_short, speed

SLOW, FAST = Score(2e7, 2e7, 3e7, 8192, 9000), Score(1e7, 5e6, 2e7, 4096, 5000)


def request_of(guarantee: str = "durable", states: int = 10, most_rows: int = 0) -> AdviceRequest:
    given: dict[str, Value] = {"filesystem": "ext4", "transactions": 40}
    return advice_request(
        given, {"filesystem"}, guarantee, limits=Limits(p99_ns=5e7), states=states,
        most_rows=most_rows,
    )  # fmt: skip


def test_a_change_its_gain_and_its_conditions() -> None:
    asked = request_of(most_rows=2)
    own = asked.space.own
    better = asked.space.changed(own, "statements", 2)
    told = in_short(Advice(Choice(own, SLOW), [Choice(better, FAST)]), asked)
    assert told["do"] == "statements = 2 (now 1); answer-1 has the lines to paste"
    assert told["gain"] == (
        "4.0 times as fast by the row: a commit takes 10.00 ms in place of 20.00 ms, p99 20.00 ms "
        "in place of 30.00 ms, and sends 4 KiB to the device in place of 8 KiB"
    )
    assert told["holds"] == (
        "sqlite-insert on emmc-galaxy-s3, a model of a device; transactions=40; "
        "commits: 90 % steady, 10 % reopened; p99 of at most 50.00 ms; seed 1; durable by the "
        "manuals, and after power cuts not tested"
    )


def test_nothing_to_change_and_no_answer() -> None:
    asked = request_of()
    present = Choice(asked.space.own, SLOW)
    told = in_short(Advice(present, [present]), asked)
    assert told["do"].startswith("change nothing")
    assert told["gain"].startswith("none")
    none = in_short(Advice(present, []), asked)
    assert none["do"].startswith("no settings that were measured")
    assert "gain" not in none


def test_what_was_not_tested_is_said() -> None:
    for asked, words in (
        (request_of(states=0), "no power cut was asked for"),
        (request_of("none"), "a power cut may do anything"),
    ):
        present = Choice(asked.space.own, SLOW)
        assert words in in_short(Advice(present, [present]), asked)["holds"]


def test_a_dearer_answer_says_what_the_present_settings_lose() -> None:
    given: dict[str, Value] = {"filesystem": "ext4", "journal_mode": "wal"}
    for synchronous, words in (
        ("normal", "none: your present settings may lose commits; keeping them costs 10 times as "),
        ("off", "none: your present settings put at risk: last commits, database; keeping that "),
    ):
        asked = advice_request({**given, "synchronous": synchronous}, {"filesystem"}, "durable")
        own = asked.space.own
        full = asked.space.changed(own, "synchronous", "full")
        dear = Score(2e8, 2e8, 3e8, 8192, 9000)
        told = in_short(Advice(Choice(own, SLOW, manual_refuses=True), [Choice(full, dear)]), asked)
        assert told["gain"].startswith(words)
        assert "much: a commit takes 200.0 ms in place of 20.00 ms" in told["gain"]
        assert "0.1 times" not in told["gain"]
    assert (speed(0.1), speed(1), speed(12.3)) == ("1/10 ×", "1.0 ×", "12 ×")
