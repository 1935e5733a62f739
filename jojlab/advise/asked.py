"""What an adviser is asked: how the app is now, what may change, what must hold, and what is shown.

Reads the fields and limits that a user gives; refuses what no search could answer.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass

from jojlab.advise.score import Flash, Limits
from jojlab.advise.space import Space, space
from jojlab.analysis.run.guarantee import Guarantee
from jojlab.device.emulated import EMULATED
from jojlab.device.profile import read_profile
from jojlab.experiment.cases import Case, complete, impossible, refuse_useless
from jojlab.experiment.fields import ALL_SQLITE, Value, field_named
from jojlab.foundation.errors import UseError
from jojlab.foundation.nearest import nearest
from jojlab.verify.durability import unfit


@dataclass(frozen=True)
class Asked:
    """`given` are the fields that the user gave; `shares` of commits are made in each regime, ""
    where the workload has none. `states` are judged of each answer, in each regime and seed.
    """

    space: Space
    given: Mapping[str, Value]
    shares: Mapping[str, float]
    seeds: tuple[int, ...]
    limits: Limits
    flash: Flash
    states: int
    answers: int


def given_fields(texts: list[str]) -> dict[str, Value]:
    """Return the fields of KEY=VALUE; UseError for one that is given twice, or as a list."""
    given: dict[str, Value] = {}
    for each in texts:
        name, equals, text = each.partition("=")
        if not equals:
            raise UseError(f"{each}: no value", "KEY=VALUE")
        if name in given:
            raise UseError(f"{each}: {name} is given twice", "give it once")
        given[name] = field_named(name, each).parse(text, each)
    return given


def asked_for(
    given: Mapping[str, Value],
    fixed: Set[str],
    guarantee: str,
    *,
    reopened_share: float = 0.1,
    limits: Limits | None = None,
    cycles: int = 3000,
    most_rows: int = 0,
    journal_device: str = "",
    states: int = 1000,
    answers: int = 3,
) -> Asked:
    """Return what is asked of an app with the `given` fields, those in `fixed` unchanged; UseError
    where that cannot be measured, or no power cut can test it.
    """
    if guarantee not in {each.value for each in Guarantee}:
        raise UseError(
            f"--guarantee {guarantee}: no guarantee{nearest(guarantee, list(Guarantee))}",
            f"one of: {', '.join(Guarantee)}",
        )
    wanted = Guarantee(guarantee)
    present = complete(given)
    refuse_useless(given, [present["workload"]], "joj advise")
    if str(present["device"]) in EMULATED:
        raise UseError(
            f"device {present['device']} is measured in real time, and its power cannot be cut",
            "name a modelled device: joj list devices",
        )
    if wanted is not Guarantee.NONE and (why := unfit(Case("present", present))):
        raise UseError(f"no power cut can test it: {why}", "give --guarantee none")
    shares = {"": 1.0}
    if present["workload"] in ALL_SQLITE:
        shares = {"steady": 1 - reopened_share, "reopened": reopened_share}
        shares = {regime: share for regime, share in shares.items() if share}
        if "regime" in given:
            shares = {str(given["regime"]): 1.0}
    for regime in shares:
        if why := impossible({**present, **({"regime": regime} if regime else {})}):
            raise UseError(f"the app as it is now cannot be measured: {why}", "change the field")
    bytes_ = int(read_profile(str(present["device"])).model["capacity_bytes"])
    return Asked(
        space(present, frozenset(fixed), wanted, most_rows=most_rows,
              journal_device=journal_device),
        given, shares, (1,), limits or Limits(), Flash(bytes_, cycles), states, answers,
    )  # fmt: skip
