"""What a command says that a signal ended before its run was whole."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from jojlab.foundation.errors import JojError, Signalled, signal_of

if TYPE_CHECKING:
    from jojlab.experiment.plan import Plan
    from jojlab.lab.lab import Lab


def interrupted(
    error: KeyboardInterrupt, folder: Path, out: Path | None, lab: Lab, planned: Plan
) -> Signalled:
    """Return the error that says what is kept of the run in `folder`, and how it goes on.

    `out` is the folder that the user named. Without one, the next run has another folder, and what
    is finished has to come from the cache.
    """
    from jojlab.experiment.devices import by_wall_clock
    from jojlab.trace.run_folder import RunFolder

    try:
        is_any_finished = any(case.captures for case in RunFolder.open(folder).cases)
    except JojError:
        is_any_finished = False
    if not is_any_finished:
        return Signalled(signal_of(error), "nothing was finished yet")
    is_cached = lab.options.use_cache and not by_wall_clock(planned.experiment.cases)
    way = "" if out or is_cached else f" with --out {folder}"
    return Signalled(
        signal_of(error),
        f"what was finished is kept: joj show {folder}",
        f"the same command{way} goes on from there",
    )
