"""Runs one job in a guest of this machine. It knows neither the cache of results nor other jobs:
what it returns is what the guest handed out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import msgspec

from jojlab.foundation.cache import Cache
from jojlab.foundation.errors import UseError
from jojlab.guest.errors import GuestError
from jojlab.guest.machine import Machine
from jojlab.guest.virtual_clock import run_by_virtual_clock
from jojlab.guest.wall_clock import run_by_wall_clock
from jojlab.lab.job import Job, Kind
from jojlab.lab.memory_run import fold
from jojlab.lab.power_cuts import check_handed_disks

_OUTCOME = "outcome.json"


class _AgentOutcome(msgspec.Struct):
    """What the agent writes there (agent/src/commands/init.rs)."""

    status: Literal["ok", "error"]
    kind: Literal["use", "machine"] = "machine"
    message: str = ""


def work(cache: Cache, job: Job, timeout_s: float, tell: Callable[[str], None]) -> dict[str, bytes]:
    """Return the files that the guest of a job hands out; `cache` has or gets its snapshot.

    `timeout_s` is of Options; `tell` hears "snapshot" and "run". May be called by several threads
    and processes.
    Raises UseError when the agent finds the record wrong, or no guest is large enough; GuestError
    when the guest hangs, dies or cannot do it; MachineError when this machine lacks something.
    """
    given = job.guest_input()
    if isinstance(job.machine, Machine):
        files = run_by_virtual_clock(
            cache, job.image, job.machine, given, timeout_s=timeout_s, tell=tell, core=job.core,
            watched=job.watched,
        )  # fmt: skip
    else:
        files = run_by_wall_clock(
            cache, job.image, job.machine, given, timeout_s=timeout_s, tell=tell
        )
    _check(files.pop(_OUTCOME, None))
    if job.kind.answer not in files:
        raise GuestError(f"the guest handed out no {job.kind.answer}")
    if job.core:
        fold(files)
    if job.kind is Kind.POWER_CUTS:
        check_handed_disks(cache, job.image, files)
    return files


def _check(raw: bytes | None) -> None:
    """Raise what the agent reports; GuestError when it reports nothing that can be read."""
    try:
        said = msgspec.json.decode(raw or b"", type=_AgentOutcome)
    except (ValueError, RecursionError) as error:
        raise GuestError(f"the guest's {_OUTCOME} is missing or damaged: {error}") from error
    if said.status == "ok":
        return
    if said.kind == "use":
        raise UseError(said.message)
    raise GuestError(f"the case failed in the guest: {said.message}", final=True)
