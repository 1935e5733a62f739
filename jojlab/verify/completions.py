"""Where the completions of a loop device are handled. Sets its queue's rq_affinity for a while.

A block device's requests are complete on the CPU that sent them: another asks it by an interrupt,
which comes within whatever runs there (block/blk-mq.c, blk_mq_complete_request_remote()). A kernel
may refuse to run BPF programs within some process (docs/live-tracing.md), and what completes there
is seen by no tracer. With an affinity of 0 the loop device's own worker handles them.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

#: Documentation/ABI/stable/sysfs-block of the kernel: on the CPU that happens to get them.
_WHEREVER = "0"


@contextlib.contextmanager
def by_the_worker(device: str) -> Iterator[None]:
    """Have the loop device `device` (a path) complete requests in its worker, until the end."""
    setting = Path("/sys/block", Path(device).name, "queue/rq_affinity")
    before = setting.read_text()
    setting.write_text(_WHEREVER)
    try:
        yield
    finally:
        # A device that has gone takes its settings with it.
        with contextlib.suppress(OSError):
            setting.write_text(before)
