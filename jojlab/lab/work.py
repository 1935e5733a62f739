"""Runs one job in a guest of this machine. It knows neither the cache of results nor other jobs:
what it returns is what the guest handed out.
"""

from __future__ import annotations

import json
from collections.abc import Callable

from jojlab.foundation.cache import Cache
from jojlab.foundation.errors import UseError
from jojlab.guest.errors import GuestError
from jojlab.guest.machine import Machine
from jojlab.guest.virtual_clock import run_by_virtual_clock
from jojlab.guest.wall_clock import run_by_wall_clock
from jojlab.lab.job import Job

_OUTCOME = "outcome.json"


def work(cache: Cache, job: Job, timeout_s: float, tell: Callable[[str], None]) -> dict[str, bytes]:
    """Return the files that the guest of a job hands out; `cache` has or gets its snapshot.

    `timeout_s` is of Options; `tell` hears "snapshot" and "run". May be called by several threads
    and processes.
    Raises UseError when the agent finds the record wrong, or no guest is large enough; GuestError
    when the guest hangs, dies or cannot do it; MachineError when this machine lacks something.
    """
    given = job.given()
    if isinstance(job.machine, Machine):
        files = run_by_virtual_clock(
            cache, job.image, job.machine, given, timeout_s=timeout_s, tell=tell
        )
    else:
        files = run_by_wall_clock(
            cache, job.image, job.machine, given, timeout_s=timeout_s, tell=tell
        )
    _check(files.pop(_OUTCOME, None))
    if job.kind.answer not in files:
        raise GuestError(f"the guest handed out no {job.kind.answer}")
    return files


def _check(raw: bytes | None) -> None:
    """Raise what the agent reports; GuestError when it reports nothing that can be read."""
    try:
        outcome = json.loads(raw or b"")
        status, kind = outcome["status"], outcome.get("kind")
        message = str(outcome.get("message", ""))
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise GuestError(f"the guest's {_OUTCOME} is missing or damaged") from error
    if status == "ok":
        return
    if kind == "use":
        raise UseError(message)
    raise GuestError(f"the case failed in the guest: {message}", final=True)
