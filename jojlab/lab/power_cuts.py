"""Jobs that cut the power of a case: it runs once on a modelled device that records every write,
and is cut at many moments of that run (agent/src/lab/power_cut).
"""

from __future__ import annotations

import json
from dataclasses import replace

from jojlab.guest.machine import Machine
from jojlab.lab.job import Job, Kind, record_of, virtual

# Of so much the smallest guest holds a record of.
_ORDINARY_BYTES = 200 << 20


def power_cuts(case: Job, cuts: int, contents_bytes: int) -> Job:
    """Return the job that cuts the power of `case`, a job of a modelled device, so often.

    `contents_bytes` is what its disks are expected to hold in the end.
    """
    assert isinstance(case.machine, Machine)
    of = json.loads(case.record)
    del of["job"]
    # What there was before, all that was written since, and what a cut leaves.
    held_bytes = 3 * contents_bytes if contents_bytes > _ORDINARY_BYTES else 0
    return replace(
        case,
        kind=Kind.POWER_CUTS,
        record=record_of(Kind.POWER_CUTS, {"cuts": cuts, "of": of}),
        machine=virtual(case.machine.icount_shift, held_bytes),
    )
