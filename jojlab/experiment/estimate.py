"""Estimates how long a run takes: how many guests it must boot, times the usual time of one."""

from __future__ import annotations

from jojlab.device.emulated import EMULATED
from jojlab.experiment.cases import Case
from jojlab.experiment.devices import expected_bytes
from jojlab.experiment.execute import Laboratory, case_json, shift_of, todo
from jojlab.experiment.read import Experiment
from jojlab.guest.runner import is_cached

# Of 200 transactions, on one core each of a quiet machine of 2 (joj run first-look --no-cache); an
# experiment with longer cases takes longer.
USUAL_CASE_S = 6.0
# What is not worth a word.
_SHORT_S = 120.0


def guests(experiment: Experiment, lab: Laboratory) -> int:
    """Return how many cases and seeds are not in the cache; those that are the same count once."""
    return sum(not _is_cached(lab, same[0]) for same in todo(experiment, lab))


def in_words(count: int, jobs: int) -> str:
    """Say how long `count` guests take, `jobs` at a time; empty below two minutes."""
    seconds = count * USUAL_CASE_S / jobs
    if seconds < _SHORT_S:
        return ""
    amount, unit = (seconds / 3600, "h") if seconds >= 5400 else (seconds / 60, "min")
    return (
        f"{count:,} guests to run, {jobs} at a time: some {amount:,.0f} {unit}, "
        f"by {USUAL_CASE_S:g} s for a usual case; Ctrl-C keeps what is finished"
    )


def _is_cached(lab: Laboratory, case_and_seed: tuple[Case, int]) -> bool:
    case, seed = case_and_seed
    if not lab.options.use_cache or str(case.settings["device"]) in EMULATED:
        return False
    return is_cached(
        lab.cache,
        lab.image,
        case_json(case, seed, lab.profiles),
        shift_of(case, lab.profiles),
        expected_bytes(case.settings, lab.profiles),
    )
