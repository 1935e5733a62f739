"""joj diff: the figures that changed between two runs, and what made them differ."""

from __future__ import annotations

from pathlib import Path

from jojlab.analysis.run.compare import compare, comparison_json
from jojlab.analysis.run.summary import summarise
from jojlab.command_line.group import argument, command, option
from jojlab.command_line.options import PATH, json_option
from jojlab.foundation.cache import Cache
from jojlab.foundation.errors import EXPECTATION_FAILED, FINE, INCOMPLETE, UseError
from jojlab.foundation.printable import json_text
from jojlab.report.comparison import print_comparison
from jojlab.report.shared.console import terminal
from jojlab.trace.run_folder import RunFolder


@command()
@argument("run_a", type=PATH, help="The older run.")
@argument("run_b", type=PATH, help="The newer run.")
@option(
    "--through",
    metavar="RUN",
    type=PATH,
    multiple=True,
    help="A run between the two, with some parts of the first: how much of a change came before "
    "it, and how much after? May be given several times, in order.",
)
@json_option()
def diff(run_a: Path, run_b: Path, through: tuple[Path, ...], as_json: bool) -> int:
    """Compare two runs, figure by figure, and the parts that made them.

    \b
    Examples:
      joj diff runs/before runs/after
      joj diff runs/debian-12 runs/debian-13 --through runs/debian-13-with-kernel-6.1
      joj diff runs/before runs/after --json | jq '.changes[] | select(.within_spread | not)'

    Exit code 1 if a figure changed, if only one run has a case, seed or figure, or if the runs are
    incomplete in different ways. Exit code 4 if nothing differs, but a run is incomplete or there
    is nothing to compare.
    """
    cache = Cache.default()
    runs = [
        summarise(RunFolder.open(run), figures_only=True, cache=cache)
        for run in (run_a, *(through or ()), run_b)
    ]
    asked = {case.case_id for end in (runs[0], runs[-1]) for case in end.measured}
    for path, between in zip(through or (), runs[1:-1], strict=True):
        if between.clocks != runs[0].clocks:
            raise UseError(
                f"--through {path}: its clock is another", "name a run of the same clock"
            )
        if asked.isdisjoint(case.case_id for case in between.measured):
            raise UseError(
                f"--through {path}: it measured no case of the two runs",
                "run the same experiment with the same settings",
            )
    comparison = compare(runs[0], runs[-1], runs[1:-1])
    if as_json:
        print(json_text(comparison_json(comparison)))
    else:
        print_comparison(terminal(), comparison)
    if comparison.incomplete and (comparison.same or comparison.nothing):
        return INCOMPLETE
    return FINE if comparison.same else EXPECTATION_FAILED
