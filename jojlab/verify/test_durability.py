from __future__ import annotations

from typing import Any

from jojlab.experiment.cases import Case, complete
from jojlab.verify.durability import OUTCOMES, Durability, unfit

SAFE = Case("case", complete({"journal_mode": "truncate"}))


def cut(outcome: str, acknowledged: int = 5, *found: int, message: str = "") -> dict[str, Any]:
    return {
        "cut_ns": 100,
        "after_return": True,
        "kind": "boundary-none",
        "acknowledged": acknowledged,
        "begun": acknowledged + 1,
        "outcome": outcome,
        "found": found,
        "lost": acknowledged - min(found) if outcome == "lost" else 0,
        "message": message,
    }


def judged(*cuts: dict[str, Any], case: Case = SAFE) -> Durability:
    return Durability.of(case, 1, {"states": list(cuts)})


def test_a_safe_case_that_kept_everything_is_fine() -> None:
    verdict = judged(cut("kept", 5, 5), cut("kept", 5, 6))
    assert not verdict.broken and not verdict.worst and verdict.most_lost_commits == 0
    assert verdict.outcomes == {"kept": 2, "lost": 0, "torn": 0, "corrupt": 0, "unmountable": 0}


def test_any_harm_breaks_the_promise_of_a_safe_case_alone() -> None:
    unsafe = Case("case", complete({"journal_mode": "delete"}))
    for outcome in OUTCOMES[1:]:
        harm = cut(outcome, 5, 3, 4)
        assert judged(cut("kept", 5, 5), harm).broken, outcome
        assert not judged(cut("kept", 5, 5), harm, case=unsafe).broken, outcome


def test_the_worst_cut_is_told() -> None:
    damage = cut("corrupt", message="fails SQLite's\nintegrity_check")
    verdict = judged(cut("lost", 7, 3), cut("lost", 9, 8), damage)
    assert verdict.most_lost_commits == 4
    assert verdict.worst.endswith("fails SQLite's integrity_check")
    assert "4 of 7 acknowledged" in judged(cut("lost", 9, 8), cut("lost", 7, 3)).worst
    assert verdict.row()["corrupt"] == 1


def test_what_cannot_be_cut_says_why() -> None:
    assert not unfit(SAFE)
    for settings in ({"workload": "file-write"}, {"workload": "file-metadata"}):
        assert not unfit(Case("case", complete(settings)))
    stat = {"workload": "file-metadata", "metadata_operation": "stat"}
    assert "nothing is changed" in unfit(Case("case", complete(stat)))
    for field, value in (
        ("workload", "file-read"),
        ("workload", "replay"),
        ("device", "qemu-nvme"),
    ):
        case = Case("case", {**SAFE.settings, field: value})
        assert unfit(case).startswith(f"{field} {value}")
