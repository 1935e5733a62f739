"""What a shell offers for an argument: names that come with jojlab."""

from __future__ import annotations


def experiment_names(incomplete: str) -> list[str]:
    """Return the experiments whose names begin so."""
    from jojlab.foundation.places import EXPERIMENTS

    names = sorted(path.parent.name for path in EXPERIMENTS.glob("*/experiment.toml"))
    return [name for name in names if name.startswith(incomplete)]
