"""How many multi-file transactions a user's days have: fits days to the four published figures.

The days of a user are points of one quantile function, which goes straight from zero to the median
and to the upper quartile, and by a power from there to the most. The power is what makes the
average the published one.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from jojlab.fleet.simulation.published import UserDays

Counts = NDArray[np.int64]
_FEWEST = 8  # fewer days have no quartiles and no maximum of their own
_STEPS = 60  # of a bisection


def daily_counts(user: UserDays, days: int, generator: np.random.Generator) -> Counts:
    """Return the multi-file transactions of each of `days`, in random order.

    From 90 days on, average, median, upper quartile and most are those of `user`, but for rounding.
    Of fewer, the one day with the most weighs more than it did; below 8, days are drawn.
    """
    if days < _FEWEST:
        shares = generator.random(days)
        return _counts(user, shares, _power(user, np.linspace(0, 1, user.days)))
    shares = np.linspace(0, 1, days)
    counts = _counts(user, shares, _power(user, shares))
    generator.shuffle(counts)
    return counts


def _counts(user: UserDays, shares: NDArray[np.float64], power: float) -> Counts:
    lower = np.interp(shares, (0, 0.5, 0.75), (0, user.median, user.upper_quartile))
    beyond = np.clip((shares - 0.75) / 0.25, 0, 1)
    upper = user.upper_quartile + (user.most - user.upper_quartile) * beyond**power
    return np.rint(np.where(shares > 0.75, upper, lower)).astype(np.int64)


def _power(user: UserDays, shares: NDArray[np.float64]) -> float:
    """Return the power that gives the average; the greater it is, the smaller the average."""
    low, high = 0.01, 400.0
    for _ in range(_STEPS):
        middle = (low * high) ** 0.5
        if _counts(user, shares, middle).mean() > user.average:
            low = middle
        else:
            high = middle
    return high
