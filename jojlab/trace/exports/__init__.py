"""Exports one capture of a run into a new file, in the format of another tool: requests in issue
order, with their files.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import ModuleType

from jojlab.foundation.errors import UseError, whole_file
from jojlab.trace.capture import Capture
from jojlab.trace.exports import iolog, perfetto
from jojlab.trace.run_folder import RunFolder

FORMATS: dict[str, ModuleType] = {module.NAME: module for module in (perfetto, iolog)}


def chosen_capture(run: RunFolder, case_id: str = "", seed: int | None = None) -> Capture:
    """Return the capture that is meant, if there is no other; UseError names what there is."""
    finished = {case.case_id: case for case in run.cases if case.captures}
    if case_id:
        run.case(case_id)  # an unknown name is told with the known ones
    elif len(finished) == 1:
        case_id = next(iter(finished))
    if case_id not in finished:
        known = ", ".join(finished) or "none has finished"
        raise UseError(f"{run.path}: which case?", f"name one with --case: {known}")
    seeds = [capture.seed for capture in finished[case_id].captures]
    wanted = seeds[0] if seed is None else seed
    for entry, its_seed, capture in run.captures():
        if (entry.case_id, its_seed) == (case_id, wanted):
            return capture
    raise UseError(f"{run.path}: {case_id} has no seed {seed}", f"its seeds: {seeds}")


def export(capture: Capture, path: Path, format_name: str) -> tuple[int, Mapping[str, int]]:
    """Write `capture` to `path`, whole or not at all; return how many requests were written, and
    by operation those left out, as the format has none such.

    Raises UseError for a capture that has no table of requests: there is nothing to write.
    """
    if "requests" not in capture.tables:
        raise UseError(
            f"{capture.folder}: no table of requests: it was made without a tracer (joj bench)",
            "trace the workload (joj trace -- COMMAND), or run it in the lab (joj run, joj bill)",
        )
    with whole_file(path, "name another file with -o") as stream:
        exported: tuple[int, Mapping[str, int]] = FORMATS[format_name].write(capture, stream)
    return exported
