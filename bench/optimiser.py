"""Compares the adviser's search with a general optimiser, Optuna's TPE, and with random draws.

Each is given as many cases as the search took, on made matrices whose every cost is known (those of
jojlab/advise/test_search.py), and starts with the present settings. No guest runs. Optuna is a
peer, and no dependency: where it is not installed, it is left out with a message.
"""

from __future__ import annotations

import argparse
import importlib
import random
import statistics
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from jojlab.advise.search import Measure, ranking, search
from jojlab.advise.space import Candidate, Space
from jojlab.advise.test_search import cost, insert_space
from jojlab.analysis.run.risks import Guarantee

NEAR = 1.05
Cost = Callable[[Candidate], float]


@dataclass(frozen=True)
class WayResult:
    """The result of a way on each matrix: cases, and the cost of what it found by the least one."""

    name: str
    cases: list[int]
    ratios: list[float]

    def line(self) -> str:
        """Return it as a line of the table."""
        near = sum(ratio <= NEAR for ratio in self.ratios)
        return (
            f"{self.name:16} {min(self.cases):4} to {max(self.cases):3} cases, within 5 % in "
            f"{near} of {len(self.ratios)}, {statistics.median(self.ratios):.3f} times the least "
            f"(median), {max(self.ratios):.3f} at worst"
        )


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the comparison; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m bench.optimiser", description=__doc__)
    parser.add_argument("--matrices", type=int, default=20, help="made matrices (20)")
    asked = parser.parse_args(arguments)
    space = insert_space(Guarantee.DURABLE)
    ways: dict[str, Callable[[Space, Cost, int, int], float]] = {"random draws": _least_by_drawing}
    try:
        importlib.import_module("optuna")
        ways["Optuna, TPE"] = _least_by_tpe
    except ImportError:
        print("left out: Optuna is not installed: pip install optuna", file=sys.stderr)
    found = {name: WayResult(name, [], []) for name in ("joj advise", *ways)}
    for number in range(asked.matrices):
        cost_of = cost(space, str(number))
        least = min(map(cost_of, space.candidates))
        ours = search(space, _measure_of(cost_of))
        taken = {name: way(space, cost_of, len(ours), number) for name, way in ways.items()}
        taken["joj advise"] = cost_of(ranking(space, ours)[0])
        for name, value in taken.items():
            found[name].cases.append(len(ours))
            found[name].ratios.append(value / least)
    print(f"{len(space.candidates):,} settings a matrix")
    for tried in found.values():
        print(tried.line())
    best = max(found.values(), key=lambda each: sum(ratio <= NEAR for ratio in each.ratios))
    ours_near = sum(ratio <= NEAR for ratio in found["joj advise"].ratios)
    return 0 if ours_near == sum(ratio <= NEAR for ratio in best.ratios) else 1


def _measure_of(cost_of: Cost) -> Measure:
    return lambda candidates: {each: cost_of(each) for each in candidates}


def _least_by_drawing(space: Space, cost_of: Cost, cases: int, seed: int) -> float:
    """Return the least of as many settings, drawn from the whole matrix."""
    return min(map(cost_of, random.Random(seed).sample(space.candidates, cases)))


def _least_by_tpe(space: Space, cost_of: Cost, cases: int, seed: int) -> float:
    """Return the least of as many settings as Optuna asks for; what cannot run or is not allowed is
    told to it as bad, and costs no case, nor does what it asked before.
    """
    optuna = importlib.import_module("optuna")
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    axes = {
        name: sorted({dict(each)[name] for each in space.candidates}, key=str)
        for name in space.values
    }
    allowed = set(space.candidates)
    worst = max(map(cost_of, space.candidates))
    study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=seed, multivariate=True))
    study.enqueue_trial(dict(space.own))
    costs: dict[Candidate, float] = {}
    for _ in range(cases * 20):
        if len(costs) == cases:
            break
        trial = study.ask()
        asked = tuple((name, trial.suggest_categorical(name, axes[name])) for name in axes)
        if asked in allowed:
            costs[asked] = cost_of(asked)
        study.tell(trial, costs.get(asked, 2 * worst))
    return min(costs.values())


if __name__ == "__main__":
    sys.exit(main())
