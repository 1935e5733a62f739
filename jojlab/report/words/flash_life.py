"""Says in words what a commit wears out; computes nothing but the years at the stated load."""

from __future__ import annotations

import math
from collections.abc import Iterator

from jojlab.analysis.commit.bill import Bill
from jojlab.analysis.commit.flash_life import CYCLES, Charged, FlashLife, years
from jojlab.report.words import text

# What is stated where nobody states a load.
COMMITS_A_DAY = 10_000
_SPELLED = 4


def sentences(bill: Bill, commits_a_day: float = COMMITS_A_DAY) -> Iterator[str]:
    """Yield what was programmed and why, to whom it is charged, and how long the flash lasts."""
    life = bill.life
    if life is None or not life.programmed_bytes:
        return
    kinds = [
        f"{text.kib(bill.per_commit(size))} KiB {reason}"
        for reason, size in life.programmed.items()
        if size
    ]
    whole = bill.per_commit(life.programmed_bytes)
    sent = bill.per_commit(life.sent_bytes)
    yield (
        f"on the flash: {text.size(whole)} programmed for {text.size(sent)} that were sent: "
        f"{', '.join(kinds)}; {_erases(bill, life)}"
    )
    shares = [_share(bill, each) for each in life.charged[:_SPELLED]]
    if len(life.charged) > _SPELLED:
        shares.append(f"{len(life.charged) - _SPELLED} more")
    yield f"charged to: {', '.join(shares)}"
    lasts = years(whole, commits_a_day, life.flash_bytes)
    if not math.isinf(lasts):
        yield (
            f"life: {text.digits(lasts)} years at {commits_a_day:,.0f} commits a day, if the "
            f"{text.digits(life.flash_bytes / 1024**3)} GiB of the profile endure {CYCLES:,} "
            "erases and are worn evenly"
        )


def _erases(bill: Bill, life: FlashLife) -> str:
    if life.erases:
        return f"{text.digits(bill.per_commit(life.erases))} blocks erased"
    return "nothing was erased (device.preload_percent ages a device)"


def _share(bill: Bill, each: Charged) -> str:
    owner = ", ".join(filter(None, (each.block_type, each.file, each.cause)))
    return f"{text.kib(each.bytes / bill.transactions)} KiB to {owner}"
