"""Progress of a long run on stderr: one live line on a terminal; else a line per case or seed."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Callable, Iterator

from rich.markup import escape
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.status import Status
from rich.table import Column

from jojlab.campaign.jobs import RunProgress, Step
from jojlab.foundation.printable import printable
from jojlab.report.shared.console import QuietConsole

# What is shown of a stage of a job; the others end a case.
_RUNNING = {"snapshot": "{} waits for its guest", "run": "{}"}

# What the agent calls the stages of a live workload, in words for the user.
_STAGES = {
    "prepare": "creates its files",
    "warm-up": "warms up",
    "commit": "is measured",
    "settle": "writes back dirty data",
    "check": "checks its files",
}


class ShownProgress(RunProgress):
    """A watcher that counts and prints every step; see `shown`."""

    def __init__(self, steps: int, unit: str) -> None:
        self._console = QuietConsole(stderr=True, highlight=False, soft_wrap=True)
        self._steps, self._unit = steps, unit
        self._done = self._cached = self._there = self._failed = 0
        self._running: dict[str, str] = {}
        self._lock = threading.Lock()
        # Only the names of the running cases give way on a narrow terminal, never the counts.
        self.bar = Progress(
            BarColumn(bar_width=20),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            TextColumn(
                "{task.description}", table_column=Column(no_wrap=True, overflow="ellipsis")
            ),
            console=self._console,
            disable=not self._console.is_terminal,
        )
        self._task = self.bar.add_task("", total=steps)

    def stage(self, case_id: str, seed: int, stage: str) -> None:
        """Keep the list of running cases, in the order in which they began."""
        name = f"{case_id}, seed {seed}"
        with self._lock:
            if stage in _RUNNING:
                self._running[name] = _RUNNING[stage].format(name)
            else:
                self._running.pop(name, None)
            running = escape(" | ".join(self._running.values()))
            self.bar.update(self._task, description=running)

    def again(self, step: Step) -> None:
        """Print a failure after which the case is tried again."""
        name = f"{step.case_id}, seed {step.seed}"
        self.stage(step.case_id, step.seed, "")
        self._console.print(f"{name} is tried again: {step.failure}", markup=False)

    def note_finished(self, step: Step) -> None:
        """Count a step, and print it unless it was there or came from the cache."""
        name = f"{step.case_id}, seed {step.seed}"
        self.stage(step.case_id, step.seed, "")
        self._done += 1
        self._cached += step.cached
        self._there += step.is_there
        self.bar.advance(self._task)
        place = f"[{self._done}/{self._steps}]"
        if step.failure:
            self._failed += 1
            self._console.print(f"{place} {name} failed: {step.failure}", markup=False)
        elif not (step.cached or step.is_there) and self.bar.disable:
            self._console.print(f"{place} {name}", markup=False)

    def summary(self) -> str:
        """Return how many steps went well, how many of them were known, and how many failed."""
        well = self._done - self._failed
        there = f", {self._there} there before" if self._there else ""
        counts = f"{self._cached} from the cache{there}"
        text = f"{well} {self._unit}{'s' if well != 1 else ''} ({counts})"
        return f"{text}, {self._failed} failed" if self._failed else text


@contextlib.contextmanager
def run_progress(title: str, steps: int, unit: str = "capture") -> Iterator[ShownProgress]:
    """Yield a watcher for a run of `steps` cases and seeds; print the time it took at the end.

    A step that went well makes one `unit`.
    """
    watcher = ShownProgress(steps, unit)
    with _time_step(title, watcher.summary), watcher.bar:
        yield watcher


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

    def note_finished(self, step: Step) -> None:
        """Count a run that is done."""
        self._done += 1
        if not self._console.is_terminal:
            print(f"[{self._done}/{self._seeds}] seed {step.seed}", file=sys.stderr)

    def summary(self) -> str:
        """Return how many runs there are."""
        return f"{self._seeds} run{'s' if self._seeds != 1 else ''}"


@contextlib.contextmanager
def bench_progress(title: str, seeds: int) -> Iterator[ShownBenchProgress]:
    """Yield the progress of `seeds` live runs; print the time that they took at the end."""
    progress = ShownBenchProgress(seeds)
    status = progress.status if sys.stderr.isatty() else contextlib.nullcontext()
    with _time_step(title, progress.summary), status:
        yield progress


@contextlib.contextmanager
def _time_step(title: str, summary: Callable[[], str]) -> Iterator[None]:
    begin_s = time.monotonic()
    print(printable(title), file=sys.stderr)
    yield
    print(f"{summary()} in {time.monotonic() - begin_s:.1f} s", file=sys.stderr)
