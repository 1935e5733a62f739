from jojlab.verify.compare import Addresses
from jojlab.verify.verdict import COLUMNS, Verdict

FOUND = {
    **dict.fromkeys(COLUMNS[1:12], 0),
    "bytes": 8192,
    "reasons": [],
    "complaints": [],
    "did": ["buffered", "direct"],
    "left_out": {},
}


def test_a_clean_verdict_is_neither_wrong_nor_incomplete() -> None:
    verdict = Verdict.of("ext4", FOUND)
    assert not verdict.wrong
    assert not verdict.incomplete
    assert verdict.row()["bytes"] == 8192


def test_what_was_done_and_left_out_is_told() -> None:
    refused = {"swapped": "swapon: Invalid argument (os error 22)"}
    verdict = Verdict.of("nilfs2", {**FOUND, "left_out": refused})
    assert verdict.row()["did"] == ("buffered", "direct")
    assert verdict.row()["left_out"] == refused
    assert not verdict.incomplete


def test_each_count_that_matters_shows() -> None:
    for name in ("misattributed_bytes", "missing_bytes", "wrong_asker_requests"):
        assert Verdict.of("ext4", {**FOUND, name: 512}).wrong
    for name in ("unknown_bytes", "askerless_requests", "lost_events"):
        assert Verdict.of("ext4", {**FOUND, name: 1}).incomplete
    assert Verdict.of("ext4", {**FOUND, "reasons": ["1 flush"]}).incomplete
    moved = Verdict.of("ext4", FOUND).with_addresses(Addresses(wrong=("sector 8 is data",)))
    assert moved.wrong
    assert moved.complaints == ("sector 8 is data",)
    assert moved.row()["address_wrong_bytes"] == 512
