"""A process that checks segments for the server, with limited memory, one after the other.

Says {} when it is ready. Reads one JSON line for each, {"segment": PATH, "folder": PATH}, and
answers in one line: {"day", "rows"}, {"reason", "detail"} where it is refused, or {"errno",
"detail"} where it could not be checked, as on a full disk. Ends when its input does, as when the
server is killed. A segment that kills it is refused by the server.
"""

from __future__ import annotations

import json
import resource
import signal
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from jojlab.fleet.store.segment import MACHINE_ERRORS, TOO_LARGE, BadSegment, take_out
from jojlab.foundation.lazy import load, pa, pc, pq

# Beyond what libraries have mapped when the first segment comes. One of the limits of segment.py
# takes some 300 MB decoded; a page of Parquet may claim up to 2 GiB.
MEMORY_BYTES = 768 << 20
# Processor time for one segment, beyond which SIGPROF ends the worker; 16 MiB take some seconds.
CPU_SECONDS = 60


def main() -> None:
    """Answer until the input ends."""
    _load()
    _limit_memory()
    print("{}", flush=True)
    for line in sys.stdin:
        sys.stdout.write(json.dumps(_answer(json.loads(line))) + "\n")  # at once
        sys.stdout.flush()


def _answer(request: dict[str, Any]) -> dict[str, Any]:
    signal.setitimer(signal.ITIMER_PROF, CPU_SECONDS)
    try:
        return asdict(take_out(Path(request["segment"]), Path(request["folder"])))
    except BadSegment as refused:
        return {"reason": refused.reason, "detail": refused.detail}
    except MemoryError:
        return {"reason": TOO_LARGE, "detail": "it does not fit into the worker's memory"}
    except OSError as error:
        if error.errno not in MACHINE_ERRORS:
            raise
        return {"errno": error.errno, "detail": error.strerror}


def _load() -> None:
    load(pa, pc, pq)
    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)


def _limit_memory() -> None:
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + MEMORY_BYTES
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


if __name__ == "__main__":
    main()
