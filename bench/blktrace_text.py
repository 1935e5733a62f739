"""Makes a trace in the binary format of blktrace(8): a queue, an issue and a completion for each
request, as blkparse and btt read them.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

# struct blk_io_trace of include/uapi/linux/blktrace_api.h.
_EVENT = np.dtype(
    [
        ("magic", "<u4"), ("sequence", "<u4"), ("time", "<u8"), ("sector", "<u8"),
        ("bytes", "<u4"), ("action", "<u4"), ("pid", "<u4"), ("device", "<u4"),
        ("cpu", "<u4"), ("error", "<u2"), ("pdu_len", "<u2"),
    ]
)  # fmt: skip
_MAGIC = 0x65617407
_WRITE = 1 << 1
# The event's number, and the bit of its kind: BLK_TA_QUEUE, BLK_TA_ISSUE, BLK_TA_COMPLETE.
_ACTIONS = ((1, 1 << 4), (7, 1 << 6), (8, 1 << 7))
_DEVICE = 8 << 20  # 8:0


def write_blktrace(path: Path, requests: int, seed: int = 1) -> None:
    """Write the events of `requests` writes of 4 KiB to random sectors, 200 us after each other."""
    random = np.random.default_rng(seed)
    sectors = random.integers(0, 3_000_000, requests, dtype=np.uint64) * 8
    events = np.zeros((requests, len(_ACTIONS)), _EVENT)
    events["magic"] = _MAGIC
    events["bytes"] = 4096
    events["pid"] = 1
    events["device"] = _DEVICE
    for place, (number, kind) in enumerate(_ACTIONS):
        events["action"][:, place] = number | (kind | _WRITE) << 16
        begin_ns = np.arange(requests, dtype=np.uint64) * np.uint64(200_000)
        events["time"][:, place] = begin_ns + np.uint64(30_000 * place)
        events["sector"][:, place] = sectors
    flat = events.reshape(-1)
    flat["sequence"] = np.arange(1, len(flat) + 1)
    flat.tofile(path)
