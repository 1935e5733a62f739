"""Estimates how long a run takes: how many guests it must boot, times the usual time of one."""

from __future__ import annotations

from jojlab.campaign.images import Images
from jojlab.campaign.jobs import jobs_of
from jojlab.experiment.plan import Plan
from jojlab.lab.lab import Lab

# Of 200 transactions, on one core each of a quiet machine of 2 (joj run first-look --no-cache); an
# experiment with longer cases takes longer.
USUAL_CASE_S = 6.0
# What is not worth a word.
SHORT_S = 120.0


def guests(planned: Plan, images: Images, lab: Lab) -> int:
    """Return how many cases and seeds are not in the cache; those that are the same count once."""
    return sum(not lab.is_cached(each.job) for each in jobs_of(planned, images, lab.cache))


def in_words(count: int, jobs: int) -> str:
    """Say how long `count` guests take, `jobs` at a time; empty below two minutes."""
    seconds = count * USUAL_CASE_S / jobs
    if seconds < SHORT_S:
        return ""
    return (
        f"{count:,} guests to run, {jobs} at a time: some {span(seconds)}, "
        f"by {USUAL_CASE_S:g} s for a usual case; Ctrl-C keeps what is finished"
    )


def span(seconds: float) -> str:
    """Say so many seconds as such, in minutes or in hours."""
    if seconds < 60:
        return f"{max(1, seconds):,.0f} s"
    amount, unit = (seconds / 3600, "h") if seconds >= 5400 else (seconds / 60, "min")
    return f"{amount:,.0f} {unit}"
