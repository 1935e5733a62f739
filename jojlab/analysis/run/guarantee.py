"""What a user wants to hold after a power cut, and whether the states that were judged left it so.

Reads what survived of a case (survival.py). No number of states proves a guarantee; one proves that
it is broken.
"""

from __future__ import annotations

from enum import StrEnum

from jojlab.analysis.run.survival import Survival


class Guarantee(StrEnum):
    """What must hold. `durable`: every commit that returned is there. `consistent`: commits may be
    missing, the last ones first, but what is there is what was once committed. `none`: nothing.
    """

    DURABLE = "durable"
    CONSISTENT = "consistent"
    NONE = "none"


# Outcomes of a state that break no promise.
_ALLOWED = {
    Guarantee.DURABLE: frozenset({"kept"}),
    Guarantee.CONSISTENT: frozenset({"kept", "lost"}),
}


def breaks(outcome: str, guarantee: Guarantee) -> bool:
    """Whether a state with this outcome breaks the guarantee."""
    return guarantee is not Guarantee.NONE and outcome not in _ALLOWED[guarantee]


def broken_states(found: Survival, guarantee: Guarantee) -> int:
    """Return how many of the states that were judged break the guarantee."""
    return sum(count for name, count in found.outcomes.items() if breaks(name, guarantee))
