"""Power cuts of a case in a guest: the case runs once on a modelled device that records every
write, and is cut at many moments of that run (agent/src/lab/power_cut).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from jojlab.foundation.cache import Cache
from jojlab.guest.errors import GuestError
from jojlab.guest.image.build import Image
from jojlab.guest.runner import run_case

_FOUND = "power_cuts.json"
# Of so much the smallest guest holds a record of.
_ORDINARY_BYTES = 200 << 20


def cut_in_guest(
    cache: Cache,
    image: Image,
    case_json: bytes,
    cuts: int,
    icount_shift: int,
    *,
    contents_bytes: int = 0,
    timeout_s: float,
    use_cached: bool,
    on_progress: Callable[[str], None],
) -> tuple[dict[str, Any], bool]:
    """Run a case and cut its power so often; return what was found, and whether it was cached.

    `case_json` and the options are those of run_case, and so are the errors.
    """
    case = json.loads(case_json)
    del case["job"]
    record = json.dumps({"job": "power-cuts", "cuts": cuts, "of": case}).encode()
    with cache.work_dir() as work:
        folder = work / "power-cuts"
        outcome = run_case(
            cache,
            image,
            record,
            icount_shift,
            folder,
            # What there was before, all that was written since, and what a cut leaves.
            contents_bytes=3 * contents_bytes if contents_bytes > _ORDINARY_BYTES else 0,
            timeout_s=timeout_s,
            use_cached=use_cached,
            on_progress=on_progress,
        )
        path = folder / _FOUND
        if not path.is_file():
            raise GuestError(f"the guest handed out no {_FOUND}")
        found: dict[str, Any] = json.loads(path.read_bytes())
        return found, outcome.from_cache
