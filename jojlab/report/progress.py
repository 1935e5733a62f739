"""Progress of a long run on stderr: a bar where there is a terminal, a line a case elsewhere."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from jojlab.experiment.execute import Step


@contextlib.contextmanager
def shown(title: str, steps: int) -> Iterator[Callable[[Step], None]]:
    """Give a function to call with every finished step of `steps`."""
    console = Console(stderr=True, highlight=False)
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=console,
        disable=not sys.stderr.isatty(),
    )
    begin_s = time.monotonic()
    done = cached = 0
    print(title, file=sys.stderr)
    with bar:
        task = bar.add_task("cases", total=steps)

        def progress(step: Step) -> None:
            nonlocal done, cached
            done += 1
            cached += step.cached
            bar.advance(task)
            if step.failure:
                console.print(
                    f"failed: {step.case_id}, seed {step.seed}: {step.failure}", markup=False
                )
            elif not step.cached and bar.disable:
                print(f"[{done}/{steps}] {step.case_id}, seed {step.seed}", file=sys.stderr)

        yield progress
    elapsed_s = time.monotonic() - begin_s
    print(f"{done} captures ({cached} from the cache) in {elapsed_s:.1f} s", file=sys.stderr)
