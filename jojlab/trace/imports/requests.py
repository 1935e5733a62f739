"""Joins the events of block requests: gets events in order, gives one Request for each.

A request is what the driver was issued (D). Its bios are those queued (Q) and not yet issued whose
sectors it consists of, so that merges need no bookkeeping of their own; the first of them names
submitter and queue time. Whatever finds no partner is counted, never guessed at.
"""

from __future__ import annotations

from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Iterator
from dataclasses import dataclass, field

from jojlab.trace.imports.event import (
    COMPLETED,
    COUNTED,
    ISSUED,
    QUEUED,
    REQUEUED,
    SPLIT,
    Event,
    Flags,
)

# What is held at most; beyond it the oldest is given up, and counted. A device has thousands of
# requests at a time at the very most (blk-mq tags), a trace whose completions are cut off has more.
MOST_OPEN_REQUESTS = 50_000
MOST_OPEN_BIOS = 200_000
_COMPLETED_KEPT = 256  # writes whose flush after them may still complete

# Counts that say the trace lacks something, with what they mean.
LACKS = {
    "issued_unqueued": "requests were issued that the trace did not see queued",
    "unfinished": "requests were not seen to complete",
    "unissued": "bios were queued but not seen to be issued",
    "unknown_completions": "completions are of requests that the trace did not see",
    "out_of_order": "lines are out of time order",
    "errors": "requests failed on the device",
}
# Counts that are merely told.
TOLD = ("requeues", "splits", "stacked", *(name.replace(" ", "_") for name in COUNTED.values()))


@dataclass(slots=True)
class Bio:
    """A bio, or what is left of it, from `sector` on."""

    event: Event
    sector: int
    sectors: int
    by_split: bool = False


@dataclass(slots=True)
class Request:
    """One request. `runs` are its stretches of one owner: sector, sectors, block_type, path."""

    device: str
    operation: str
    sector: int
    sectors: int
    queue_ns: int
    issue_ns: int
    flags: Flags
    pid: int
    comm: str
    bio_count: int
    preflush: bool
    complete_ns: int | None = None
    done_sectors: int = 0
    given_up: bool = False
    runs: list[tuple[int, int, str, str]] = field(default_factory=list)


class _Disk:
    """What is open on one device."""

    def __init__(self) -> None:
        self.bios: defaultdict[int, list[Bio]] = defaultdict(list)
        self.empty_bios: deque[Event] = deque()
        self.issued: defaultdict[int, list[Request]] = defaultdict(list)
        self.requeued: dict[tuple[int, int], Request] = {}
        self.flushes: deque[Request] = deque()
        self.completed: OrderedDict[int, Request] = OrderedDict()


class Joiner:
    """Takes events one by one; `ready` gives the requests that are done, in issue order."""

    def __init__(self, *, flushes_are_issued: bool) -> None:
        self.counts: Counter[str] = Counter()
        self._flushes_are_issued = flushes_are_issued
        self._disks: defaultdict[str, _Disk] = defaultdict(_Disk)
        self._open: deque[Request] = deque()
        self._bios = 0
        self._now_ns = 0
        self._steps = {
            QUEUED: self._queued,
            ISSUED: self._issued,
            COMPLETED: self._completed,
            REQUEUED: self._requeued,
            SPLIT: self._split,
        }

    def add(self, event: Event) -> None:
        """Take the next event of the trace."""
        if event.time_ns < self._now_ns:
            self.counts["out_of_order"] += 1
        self._now_ns = max(self._now_ns, event.time_ns)
        if event.action in COUNTED:
            self.counts[COUNTED[event.action].replace(" ", "_")] += 1
            return
        self._steps[event.action](self._disks[event.device], event)
        if self._bios > MOST_OPEN_BIOS:
            self._drop_bios(MOST_OPEN_BIOS // 2)

    def ready(self, *, at_end: bool = False) -> Iterator[Request]:
        """Give the requests before which none is open; `at_end` gives all that are left."""
        while self._open:
            request = self._open[0]
            if request.complete_ns is None:
                if not at_end and len(self._open) <= MOST_OPEN_REQUESTS:
                    return
                self.counts["unfinished"] += 1
                request.given_up = True
            yield self._open.popleft()
        if at_end:
            self._drop_bios(0)

    def _queued(self, disk: _Disk, event: Event) -> None:
        if event.sectors:
            bio = Bio(event, event.sector, event.sectors)
            beside = disk.bios[event.sector]
            # The rest of a split bio may be queued again under its own sector.
            again = [b for b in beside if b.by_split and b.sectors == event.sectors]
            if again:
                beside.remove(again[0])
                self._bios -= 1
            beside.append(bio)
            self._bios += 1
        elif self._flushes_are_issued:
            disk.empty_bios.append(event)
            self._bios += 1
        else:
            disk.flushes.append(self._open_flush(event, event.time_ns, event.time_ns))

    def _issued(self, disk: _Disk, event: Event) -> None:
        key = event.sector, event.sectors
        if not event.sectors:
            self._bios -= bool(disk.empty_bios)
            asked = disk.empty_bios.popleft() if disk.empty_bios else event
            disk.flushes.append(self._open_flush(asked, asked.time_ns, event.time_ns))
            return
        known = disk.requeued.pop(key, None)
        bios = [] if known else list(self._take_bios(disk, event))
        if not known and not bios:
            # Issued twice without a line between: the driver gave it back.
            known = next((r for r in disk.issued[event.sector] if r.sectors == event.sectors), None)
            if known:
                disk.issued[event.sector].remove(known)
                self.counts["requeues"] += 1
        if known:
            known.issue_ns, known.done_sectors = event.time_ns, 0
            disk.issued[event.sector].append(known)
            return
        if not bios:
            self.counts["issued_unqueued"] += 1
        request = _request(event, bios)
        disk.issued[event.sector].append(request)
        self._open.append(request)

    def _completed(self, disk: _Disk, event: Event) -> None:
        self.counts["errors"] += bool(event.error)
        if not event.sectors:
            self._flush_completed(disk, event)
            return
        requests = disk.issued.get(event.sector, [])
        request = next((r for r in requests if event.sectors <= r.sectors - r.done_sectors), None)
        if request is None:
            stacked = _pop(disk.bios, event.sector)
            self._bios -= stacked is not None
            self.counts["stacked" if stacked else "unknown_completions"] += 1
            return
        _remove(disk.issued, event.sector, request)
        request.done_sectors += event.sectors
        if request.done_sectors < request.sectors:  # the rest completes under its own sector
            disk.issued[event.sector + event.sectors].append(request)
            return
        if not request.given_up:
            request.complete_ns = event.time_ns
        disk.completed[request.sector] = request
        disk.completed.move_to_end(request.sector)
        if len(disk.completed) > _COMPLETED_KEPT:
            disk.completed.popitem(last=False)

    def _flush_completed(self, disk: _Disk, event: Event) -> None:
        before = disk.completed.pop(event.sector, None) if event.sector else None
        if before and before.complete_ns is not None:
            # The flush after a write began when the write was done (blk_flush_complete_seq).
            flush = self._open_flush(event, before.complete_ns, before.complete_ns)
            flush.operation, flush.complete_ns = "flush", event.time_ns
            flush.pid, flush.comm = before.pid, before.comm
        elif disk.flushes:
            flush = disk.flushes.popleft()
            if not flush.given_up:
                flush.complete_ns = event.time_ns
        else:
            self.counts["unknown_completions"] += 1

    def _requeued(self, disk: _Disk, event: Event) -> None:
        requests = disk.issued.get(event.sector, [])
        request = next((r for r in requests if r.sectors == event.sectors), None)
        if request:
            _remove(disk.issued, event.sector, request)
            disk.requeued[event.sector, event.sectors] = request
        self.counts["requeues"] += 1

    def _split(self, disk: _Disk, event: Event) -> None:
        self.counts["splits"] += 1
        for bio in disk.bios.get(event.sector, []):
            first = event.to_sector - bio.sector
            if 0 < first < bio.sectors:
                rest = Bio(bio.event, event.to_sector, bio.sectors - first, by_split=True)
                bio.sectors = first
                disk.bios[event.to_sector].append(rest)
                self._bios += 1
                return

    def _take_bios(self, disk: _Disk, event: Event) -> Iterator[Bio]:
        """Give the open bios that the issued request consists of, in the order of their sectors."""
        sector, end = event.sector, event.sector + event.sectors
        while sector < end and self._bios:
            bio = _pop(disk.bios, sector)
            if bio is None:
                later = [start for start in disk.bios if sector < start < end]
                sector = min(later, default=end)
                continue
            self._bios -= 1
            if sector + bio.sectors > end:  # cut without a line that says so
                left = Bio(bio.event, end, sector + bio.sectors - end)
                bio.sectors = end - sector
                disk.bios[end].append(left)
                self._bios += 1
            sector += bio.sectors
            yield bio

    def _open_flush(self, asked: Event, queue_ns: int, issue_ns: int) -> Request:
        flush = Request(
            asked.device,
            "flush" if asked.flags.preflush else "other",
            0,
            0,
            queue_ns,
            issue_ns,
            asked.flags,
            asked.pid,
            asked.comm,
            int(asked.action == QUEUED),
            asked.flags.preflush,
        )
        self._open.append(flush)
        place = len(self._open) - 1
        while place and self._open[place - 1].issue_ns > issue_ns:
            place -= 1  # one after a write began before it was seen
        self._open.insert(place, self._open.pop())
        return flush

    def _drop_bios(self, keep: int) -> None:
        """Give up the oldest open bios until `keep` are left."""
        times = sorted(
            [b.event.time_ns for d in self._disks.values() for bs in d.bios.values() for b in bs]
            + [e.time_ns for d in self._disks.values() for e in d.empty_bios]
        )
        since_ns = times[-keep] if keep and len(times) > keep else self._now_ns + 1
        for disk in self._disks.values():
            for sector, bios in list(disk.bios.items()):
                disk.bios[sector] = [b for b in bios if b.event.time_ns >= since_ns]
                if not disk.bios[sector]:
                    del disk.bios[sector]
            disk.empty_bios = deque(e for e in disk.empty_bios if e.time_ns >= since_ns)
        left = sum(
            sum(map(len, disk.bios.values())) + len(disk.empty_bios)
            for disk in self._disks.values()
        )
        self.counts["unissued"] += self._bios - left
        self._bios = left


def _request(event: Event, bios: list[Bio]) -> Request:
    first = min((bio.event for bio in bios), key=lambda e: e.time_ns, default=event)
    runs: list[tuple[int, int, str, str]] = []
    for sector, sectors, block_type, path in _covered(event, bios):
        if runs and (block_type, path) == runs[-1][2:] and sum(runs[-1][:2]) == sector:
            runs[-1] = (runs[-1][0], runs[-1][1] + sectors, block_type, path)
        else:
            runs.append((sector, sectors, block_type, path))
    # A write's A at issue is no read-ahead in old kernels: what the bios say counts.
    flags = first.flags
    return Request(
        event.device,
        event.flags.operation if event.flags.operation != "flush" else "write",
        event.sector,
        event.sectors,
        min(first.time_ns, event.time_ns),
        event.time_ns,
        flags,
        first.pid,
        first.comm,
        len(bios),
        any(bio.event.flags.preflush for bio in bios) or (not bios and flags.preflush),
        runs=runs,
    )


def _covered(event: Event, bios: list[Bio]) -> Iterator[tuple[int, int, str, str]]:
    """Give the stretches of the bios, and of what lies between them, as the issue tells it."""
    sector, end = event.sector, event.sector + event.sectors
    for bio in bios:
        if bio.sector > sector:
            yield sector, bio.sector - sector, event.block_type, event.path
        yield bio.sector, bio.sectors, bio.event.block_type, bio.event.path
        sector = bio.sector + bio.sectors
    if sector < end:
        yield sector, end - sector, event.block_type, event.path


def _pop(bios: dict[int, list[Bio]], sector: int) -> Bio | None:
    waiting = bios.get(sector)
    if not waiting:
        return None
    bio = waiting.pop(0)
    if not waiting:
        del bios[sector]
    return bio


def _remove(issued: dict[int, list[Request]], sector: int, request: Request) -> None:
    issued[sector].remove(request)
    if not issued[sector]:
        del issued[sector]
