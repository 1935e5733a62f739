"""Tells a typical commit in sentences: which call wrote what, why the filesystem committed, and
what each flush made durable. Gets jojlab/analysis/commit/story.py; computes nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from jojlab.analysis.commit.story import Call, Moved, StoryEvent
from jojlab.analysis.commit.trace import CommitTrace
from jojlab.analysis.run.answer import TimeShares
from jojlab.analysis.run.summary import CaseSummary
from jojlab.report.words import text

# The changes of a file (requests.reason), as they are told after its name.
_CHANGES = {
    "created": "was created",
    "grew": "grew",
    "shrank": "shrank",
    "allocated": "was given blocks",
    "links": "has another number of links",
    "mode": "has another mode",
    "times": "has new times",
    "unlinked": "was unlinked",
    "renamed": "was renamed",
    "linked": "got a name more",
    "replaced": "was replaced",
}
# What F2FS does by the kinds of blocks that it writes alone.
_DOES: Mapping[tuple[str, ...], str] = {
    ("node",): "write the node of what was changed",
    ("checkpoint",): "write a checkpoint",
}
_HOMES = 4  # of what the journal holds copies of: so many are spelled out


@dataclass(frozen=True)
class ToldCall:
    """A call, as a heading and the sentences on what was done for it."""

    heading: str
    sentences: tuple[str, ...]


def opening(case: CaseSummary) -> str:
    """Return which commit it is, and what it costs."""
    trace = case.trace
    assert trace
    requests = {run.request_id: run.operation for run in trace.runs}
    flushes = sum(operation == "flush" for operation in requests.values())
    size = sum(run.length_bytes for run in trace.runs)
    first, which = "Transaction", "the typical one"
    if trace.is_checkpoint:
        first = "The typical commit sends nothing while it runs. Transaction"
        which = "the typical checkpoint"
    return (
        f"{first} {trace.transaction_id} of seed {trace.seed}, {which} of "
        f"{case.label}: {text.duration(trace.latency_ns)}, "
        f"{text.count(len(requests), 'request')} ({text.count(flushes, 'flush', 'flushes')}), "
        f"{text.size(size)}."
    )


def closing(shares: TimeShares | None) -> str:
    """Return where the time went; empty where that is not known."""
    if shares is None:
        return ""
    return (
        f"Of its time the device flushed for {text.percent(shares.flushing)} and moved data for "
        f"{text.percent(shares.moving)}; for {text.percent(shares.elsewhere)} it had nothing to do."
    )


def told(calls: Iterable[Call], filesystem: str, what: str = "commit") -> Iterator[ToldCall]:
    """Yield the calls in words; `filesystem` is empty where its name is not known. `what` is commit
    or checkpoint.
    """
    filesystem = filesystem or "the filesystem"
    begin = "BEGIN" if what == "commit" else "its begin"
    for call in calls:
        sentences = [sentence(event, call, filesystem, what) for event in call.events]
        yield ToldCall(_heading(call, begin), tuple(sentences))


def _heading(call: Call, begin: str) -> str:
    until = (
        "" if call.end_ns is None else f"; its last request ends at {text.duration(call.end_ns)}"
    )
    if call.begin_ns is None:
        first = call.events[0].begin_ns
        return f"At {text.duration(first)} after {begin}, {call.cause}: nobody waits{until}"
    return f"At {text.duration(call.begin_ns)} after {begin}, {call.cause}{until}"


def sentence(event: StoryEvent, call: Call, filesystem: str, what: str = "commit") -> str:
    """Return what one event was."""
    took = "" if event.took_ns is None else f" ({text.duration(event.took_ns)})"
    if event.operation == "flush":
        return f"{_flush(event, call, what)}{took}."
    owners = _listed([_owner(moved) for moved in event.moved])
    with_fua = ", durable when it completes (FUA)" if event.fua else ""
    if event.subtypes == ("commit",):
        return f"{filesystem} writes the commit block, {_size(event.moved)}{with_fua}{took}."
    if event.reason:
        because = f"{filesystem} must {_does(event)}, because {_because(event.reason)}"
        return f"{because}: it writes {owners}{_of(event)}{with_fua}{_others(event)}{took}."
    verb = {"write": "written", "read": "read"}.get(event.operation, event.operation)
    count = f" in {event.requests} requests" if event.requests > 1 else ""
    return f"{owners} is {verb}{count}{_of(event)}{with_fua}{took}."


def _does(event: StoryEvent) -> str:
    """Return what a filesystem does that has a reason to write: an fsync of F2FS writes a file's
    node alone where it can, without a checkpoint (f2fs_do_sync_file() of fs/f2fs/file.c).
    """
    return _DOES.get(event.subtypes, "commit")


def _flush(event: StoryEvent, call: Call, what: str) -> str:
    waited = _listed([_owner(moved) for moved in event.durable])
    if event.before:
        block = "commit block" if event.before == "commit" else event.before
        why = f"before the {block} may be written"
    else:
        name = call.cause.split(" of ")[0]
        last = call.events[-1] is event and call.begin_ns is not None
        why = f"before {name} may return" if last else "before it goes on"
    if not waited:
        return f"The device flushes its cache {why}: of this {what}, nothing new is in it"
    return f"The device flushes its cache {why}: {waited} must be durable"


def _because(reason: str) -> str:
    """Return 'a.db: grew, times; b: unlinked' as a clause."""
    return "; ".join(_change(part) for part in reason.split("; "))


def _change(part: str) -> str:
    file, colon, words = part.partition(": ")
    if not colon:
        return "of a change that was not seen" if part == "unknown" else part
    names = [word.strip() for word in words.split(",")]
    return f"{file} {_listed([_CHANGES.get(name, name) for name in names])}"


def without_requests(trace: CommitTrace | None) -> str:
    """Why there is nothing to tell of a case that has requests."""
    if trace is None:
        return "it has no transaction"
    return (
        f"its typical transaction (number {trace.transaction_id} of seed {trace.seed}, "
        f"{text.duration(trace.latency_ns)}) has no request: those of the case belong to other "
        "transactions, or to none"
    )


def _of(event: StoryEvent) -> str:
    """Return what kinds of blocks the filesystem wrote, and what its journal copied."""
    kinds = ", ".join(event.subtypes)
    shown = ", ".join(event.homes[:_HOMES])
    more = len(event.homes) - _HOMES
    copied = f"; copies of {shown}{f' and {more} more' if more > 0 else ''}" if shown else ""
    return f" ({kinds}{copied})" if kinds else ""


def _others(event: StoryEvent) -> str:
    return f", for {event.calls} calls at once" if event.calls > 1 else ""


def _owner(moved: Moved) -> str:
    name = re.sub("^/", "", moved.file) if moved.file else moved.block_type
    return f"{text.size(moved.bytes)} of {name}"


def _size(moved: Sequence[Moved]) -> str:
    return text.size(sum(each.bytes for each in moved))


def _listed(words: Sequence[str]) -> str:
    """Return 'a', 'a and b' or 'a, b and c'."""
    return " and ".join(filter(None, (", ".join(words[:-1]), *words[-1:])))
