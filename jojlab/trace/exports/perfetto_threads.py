"""What the threads did, as slices for the Perfetto export: transactions, and calls that waited.

The tables tell of a call when it began, and which requests served it; not when it returned. Its
slice ends when the last of them was complete, or where its thread's next call began. Slices of one
thread nest, as a track's must: one that would outlive the slice that it began in ends with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any


@dataclass
class Slice:
    """One stretch of a thread's time. `flows` are those of the requests that it leads to."""

    name: str
    category: str
    begin_ns: int
    end_ns: int
    flows: list[int] = field(default_factory=list)
    arguments: dict[str, Any] = field(default_factory=dict)


class Calls:
    """Gathers the calls of all threads from the requests that served them."""

    def __init__(self) -> None:
        self._calls: dict[int, dict[int, Slice]] = {}  # by thread and begin
        self.commands: dict[int, str] = {}

    def add(self, request: dict[str, Any], flow: int, file: str) -> bool:
        """Count a request to its call; False when it has none whose begin is known.

        `file` is the path of the file that the call is about; empty where it names none.
        """
        begin_ns, tid = request["asker_begin_ns"], request["asker_tid"]
        if begin_ns is None:
            return False
        of_thread = self._calls.setdefault(tid, {})
        call = of_thread.get(begin_ns)
        if call is None:
            name = f"{request['asker_call']} {file.rpartition('/')[2]}".rstrip()
            call = Slice(name, "call", begin_ns, begin_ns)
            call.arguments = {"pid": request["asker_pid"], "tid": tid, "file": file or None}
            of_thread[begin_ns] = call
            self.commands[tid] = request["asker_comm"]
        call.flows.append(flow)
        call.end_ns = max(call.end_ns, request["complete_ns"] or request["issue_ns"])
        return True

    def of(self, tid: int) -> list[Slice]:
        """Return the calls of a thread in their order; a thread is in one at a time."""
        calls = [call for _, call in sorted(self._calls.get(tid, {}).items())]
        for call, following in pairwise(calls):
            call.end_ns = min(call.end_ns, following.begin_ns)
        return calls


def transaction_slices(row: dict[str, Any], flows: list[int]) -> Iterator[Slice]:
    """Give a transaction, and its COMMIT where it has one."""
    name = f"{row['kind']} {row['transaction_id']}"
    told = {key: row[key] for key in ("phase", "databases", "sync_calls", "wal_frames")}
    yield Slice(name, "transaction", row["begin_ns"], row["return_ns"], flows, told)
    if row["commit_ns"] > row["begin_ns"]:
        yield Slice("COMMIT", "transaction", row["commit_ns"], row["return_ns"])


def nested(slices: Iterable[Slice]) -> Iterator[tuple[int, Slice, bool]]:
    """Give (time_ns, slice, whether it begins) in the order of time, each within the one around."""
    ends: list[tuple[int, Slice]] = []
    for one in sorted(slices, key=lambda one: (one.begin_ns, -one.end_ns)):
        while ends and ends[-1][0] <= one.begin_ns:
            yield (*ends.pop(), False)
        yield one.begin_ns, one, True
        ends.append((min(one.end_ns, ends[-1][0]) if ends else one.end_ns, one))
    while ends:
        yield (*ends.pop(), False)
