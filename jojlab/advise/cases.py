"""The cases of some candidates: gets what was given of the app and the regimes that count; gives an
experiment, whose plan a campaign runs.
"""

from __future__ import annotations

from collections.abc import Mapping

from jojlab.advise.space import Candidate, Space
from jojlab.experiment.read import Experiment
from jojlab.experiment.variants import Variant
from jojlab.model.field import Value


def experiment(
    space: Space,
    settings: Mapping[str, Value],
    regimes: tuple[str, ...],
    candidates: Mapping[str, Candidate],
    seeds: tuple[int, ...],
    notes: tuple[str, ...] = (),
) -> Experiment:
    """Return the experiment of some candidates by name, in each of the regimes; without regimes,
    in the one that the fields say.
    """
    chosen = {*space.values, "regime"} if regimes else {*space.values}
    return Experiment(
        "advise",
        "Which settings are the cheapest that keep the guarantee?",
        seeds,
        {name: value for name, value in settings.items() if name not in chosen},
        {"regime": regimes} if regimes else {},
        tuple(Variant(name, dict(candidate)) for name, candidate in candidates.items()),
        notes=notes,
        where="joj advise",
    ).expanded()
