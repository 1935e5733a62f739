import numpy as np
import pytest

from jojlab.fleet.simulation.phones import USERS, UserDays, daily_counts


@pytest.mark.parametrize("user", USERS, ids=lambda user: str(user.user))
@pytest.mark.parametrize("days", [97, 400])
def test_the_published_row_is_that_of_the_days(user: UserDays, days: int) -> None:
    counts = daily_counts(user, days, np.random.default_rng(7))
    assert len(counts) == days
    assert counts.mean() == pytest.approx(user.average, abs=0.6 / days**0.5 + 0.3)
    assert np.quantile(counts, 0.5) == pytest.approx(user.median, abs=1)
    assert np.quantile(counts, 0.75) == pytest.approx(user.upper_quartile, abs=1)
    assert counts.max() == user.most


def test_few_days_are_drawn() -> None:
    one = [daily_counts(USERS[0], 1, np.random.default_rng(seed))[0] for seed in range(200)]
    assert len(set(one)) > 50
    assert np.mean(one) == pytest.approx(USERS[0].average, rel=0.15)
