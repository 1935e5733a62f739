"""The option --memory-model: runs each case again with the model of a core's caches and TLBs, and
shows what it adds, beside the figures of the run.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from jojlab.foundation.errors import Signalled, signal_of
from jojlab.foundation.printable import json_text

if TYPE_CHECKING:
    from jojlab.campaign.images import Images
    from jojlab.experiment.plan import Plan
    from jojlab.lab.lab import Lab


def show_memory_model(
    name: str, planned: Plan, images: Images, lab: Lab, folder: Path, *, silent: bool = False
) -> None:
    """Run the model on every case, keep what it counted in the run folder, and print it.

    The report is written again, as it has a section on it. With `silent` nothing is printed but on
    stderr. Raises UseError for an unknown core, and what a job fails by.
    """
    from jojlab.analysis.run.summary import summarise
    from jojlab.campaign.jobs import jobs_of
    from jojlab.campaign.memory_model import core_named, model_json, model_run
    from jojlab.report.memory_model import print_memory_models
    from jojlab.report.page import write_report
    from jojlab.report.shared.console import terminal
    from jojlab.trace.kept import Kept
    from jojlab.trace.run_folder import RunFolder

    core = core_named(name)
    jobs = jobs_of(planned, images, lab.cache)
    try:
        found = model_run(jobs, lab, core, lambda line: click.echo(line, err=True))
    except KeyboardInterrupt as error:
        raise Signalled(
            signal_of(error), f"the run is whole, without the memory model: joj show {folder}"
        ) from None
    path = folder / f"memory-model-{core.name}.json"
    path.write_text(json_text(model_json(core, found)))
    click.echo(f"memory model  {path}", err=True)
    summary = summarise(RunFolder.open(folder), with_traffic=True, kept=Kept(lab.cache.analyses))
    write_report(folder / "report.html", summary, str(folder))
    if not silent:
        print_memory_models(terminal(), summary)
