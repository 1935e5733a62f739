"""Progress of a live workload on stderr: the seed and its stage; one line per seed if stderr is not
a terminal.
"""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Iterator

from rich.markup import escape
from rich.status import Status

from jojlab.campaign.jobs import RunProgress, Step
from jojlab.foundation.printable import printable
from jojlab.report.shared.console import QuietConsole

# What the agent calls its stages, in words for the user.
_STAGES = {
    "prepare": "creates its files",
    "warm-up": "warms up",
    "commit": "is measured",
    "settle": "writes back dirty data",
    "check": "checks its files",
}


class ShownBenchProgress(RunProgress):
    """Shows every stage and every seed; see `shown`."""

    def __init__(self, seeds: int) -> None:
        self._console = QuietConsole(stderr=True, highlight=False, soft_wrap=True)
        self._seeds = seeds
        self._done = 0
        self.status = Status("", console=self._console)

    def stage(self, case_id: str, seed: int, stage: str) -> None:
        """Show the stage of the agent that the run of `seed` has come to."""
        if stage.startswith("lasts "):
            self._console.print(f"the recording {stage}, and so does its replay", markup=False)
        elif self._console.is_terminal:
            words = _STAGES.get(stage, stage)
            self.status.update(escape(f"[{self._done + 1}/{self._seeds}] seed {seed} {words}"))

    def finished(self, step: Step) -> None:
        """Count a run that is done."""
        self._done += 1
        if not self._console.is_terminal:
            print(f"[{self._done}/{self._seeds}] seed {step.seed}", file=sys.stderr)


@contextlib.contextmanager
def bench_progress(title: str, seeds: int) -> Iterator[ShownBenchProgress]:
    """Yield the progress of `seeds` live runs; print the time that they took at the end."""
    begin_s = time.monotonic()
    print(printable(title), file=sys.stderr)
    progress = ShownBenchProgress(seeds)
    with progress.status if sys.stderr.isatty() else contextlib.nullcontext():
        yield progress
    runs = f"{seeds} run{'s' if seeds != 1 else ''}"
    print(f"{runs} in {time.monotonic() - begin_s:.1f} s", file=sys.stderr)
