"""Says in words why a filesystem had to commit; computes nothing.

56 KiB of fs-journal: 28 KiB forced by fsync of a.db-journal (created, grew), ...
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby, islice

from jojlab.analysis.commit.bill import Bill
from jojlab.report.words import text

# Reasons that are spelled out for one block type; the others are counted.
_SPELLED = 8


def sentences(bill: Bill, part: str) -> Iterator[str]:
    """Yield one sentence for each block type that has reasons."""
    shares = [share for share in bill.reasons if share.part == part]
    for block_type, group in groupby(shares, lambda share: share.block_type):
        ours = list(group)
        spelled = [
            f"{text.kib(bill.per_commit(share.bytes))} KiB {_forced(share.cause)} ({share.changes})"
            for share in islice(ours, _SPELLED)
        ]
        if len(ours) > _SPELLED:
            spelled.append(f"{len(ours) - _SPELLED} more reasons")
        whole = sum(row.bytes for row in bill.part(part) if row.block_type == block_type)
        yield f"{text.kib(bill.per_commit(whole))} KiB of {block_type}: {', '.join(spelled)}"


def journal_sentences(bill: Bill, part: str) -> Iterator[str]:
    """Yield what the journal's copies are of, and whom shared requests served."""
    homes = [share for share in bill.homes if share.part == part]
    if homes:
        spelled = [
            f"{text.kib(bill.per_commit(share.bytes))} KiB of {share.home}"
            for share in homes[:_SPELLED]
        ]
        if len(homes) > _SPELLED:
            spelled.append(f"{len(homes) - _SPELLED} more places")
        yield f"copies in the journal: {', '.join(spelled)}"
    askers = [share for share in bill.askers if share.part == part]
    for share in askers[:_SPELLED]:
        size = text.kib(bill.per_commit(share.bytes))
        yield f"{size} KiB of {share.block_type} served several calls at once: {share.askers}"
    if len(askers) > _SPELLED:
        yield f"{len(askers) - _SPELLED} more groups of calls were served at once"


def _forced(cause: str) -> str:
    """A call forces a commit; writeback merely makes one."""
    return f"forced by {cause}" if " of " in cause else cause
