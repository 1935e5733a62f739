"""A run folder for a live tracing: one case, whose tables the agent writes in place as they come.

The folder names its capture from the first moment, so that it can be read whatever becomes of the
tracer; the capture's own manifest says whether it is incomplete.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from jojlab.foundation.errors import MachineError
from jojlab.trace.checksums import hashes_of, write_checksums
from jojlab.trace.run_folder import CaptureEntry, RunFolder

CASE = "trace"
_SEED = 0  # nothing is random


def begin(folder: Path, subject: str, where: str, command: Sequence[str]) -> tuple[RunFolder, Path]:
    """Make a run of one case in `folder`; return it and the folder for its tables.

    `subject` is what is traced, `where` the device or directory. Raises UseError when something
    else is in `folder`, MachineError when it cannot be written.
    """
    run = RunFolder.create(
        folder,
        experiment={"name": CASE, "question": f"What was the disk sent by and beside {subject}?"},
        seeds=[_SEED],
        cases=[(CASE, {"workload": CASE, "command": " ".join(command), "traced": where})],
        fingerprint={},
    )
    capture = Path("captures") / CASE / f"seed-{_SEED}"
    entry = run.case(CASE)
    entry.captures.append(CaptureEntry(_SEED, capture.as_posix(), cached=False))
    entry.status = "ok"
    run.save()
    return run, folder / capture


def close(run: RunFolder) -> None:
    """Write the checksums of a run whose tracer has ended; take one away that has no table.

    Raises MachineError when they cannot be written.
    """
    capture = run.path / run.case(CASE).captures[0].folder
    if not capture.exists():
        shutil.rmtree(run.path)
        return
    try:
        write_checksums(capture, hashes_of(capture))
    except OSError as error:
        raise MachineError(f"{capture}: cannot write: {error.strerror}", "make room") from error
