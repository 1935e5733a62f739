"""Joins the events of block requests: gets events in order, gives one Request for each.

A request is what the driver was issued (D). Its bios are those queued (Q) and not yet issued whose
sectors it consists of, so that merges need no bookkeeping of their own; the first of them names
submitter and queue time. A device whose driver takes bios is issued none: there each bio is a
request. Whatever finds no partner is counted, never guessed at.

Where the block layer makes flushes (the kernel's block/blk-flush.c), they are issued and completed
as requests of their own, FN. What asked for them is completed once more when all its steps are
done, with no sectors and without the F: that is no event of the device.
"""

from __future__ import annotations

from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from jojlab.foundation.printable import plural
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
    "issued_unqueued": ("request", "{was} issued that the trace did not see queued"),
    "unfinished": ("request", "{was} not seen to complete"),
    "unissued": ("bio", "{was} queued but not seen to be issued"),
    "unknown_completions": ("completion", "{is} of requests that the trace did not see"),
    "out_of_order": ("line", "{is} out of time order"),
    "errors": ("request", "failed on the device"),
    "unknown_operations": ("event", "{is} of no known operation, and shown as other"),
}


def lack_sentence(name: str, number: int) -> str:
    """Return what a count of LACKS says is missing, as "1 request was not seen to complete"."""
    noun, verb = LACKS[name]
    words = {"is": "is", "was": "was"} if number == 1 else {"is": "are", "was": "were"}
    return f"{plural(number, noun)} {verb.format(**words)}"


# Counts that are merely told.
TOLD = (
    *("requeues", "splits", "stacked", "bios_as_requests", "shared_flushes", "unknown_letters"),
    *(name.replace(" ", "_") for name in COUNTED.values()),
)
# What only a device with requests has.
_OF_REQUESTS = frozenset({ISSUED, REQUEUED, "M", "F"})


class Survey:
    """A survey of a trace's devices, by all its events, before these are joined.

    A device whose bios go to another device of the trace is stacked: the other has the requests.
    """

    def __init__(self) -> None:
        self._with_requests: set[str] = set()
        self._completing: set[str] = set()
        self._remapped: set[str] = set()
        self._issuing_flushes: set[str] = set()

    def see(self, event: Event) -> None:
        """Take the next event of the trace."""
        if event.action in _OF_REQUESTS:
            self._with_requests.add(event.device)
            if event.action == ISSUED and not event.sectors:
                self._issuing_flushes.add(event.device)
        elif event.action == COMPLETED:
            self._completing.add(event.device)
        elif event.from_device:
            self._remapped.add(event.from_device)

    def takes_bios(self, device: str) -> bool:
        """Return whether its driver takes bios, so that each of them is a request."""
        return device in self._completing and device not in self._with_requests | self._remapped

    def is_stacked(self, device: str) -> bool:
        """Return whether another device of the trace has the requests of its bios."""
        return device in self._remapped and device not in self._with_requests

    def issues_flushes(self, device: str) -> bool:
        """Return whether its flushes are issued, and not only queued and completed."""
        return device in self._issuing_flushes


@dataclass(slots=True)
class Bio:
    """A bio, or what is left of it, from `sector` on."""

    event: Event
    sector: int
    sectors: int
    is_rest: bool = False


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
    """One device, and what is open on it."""

    def __init__(self, *, takes_bios: bool, is_stacked: bool, issues_flushes: bool) -> None:
        self.takes_bios = takes_bios
        self.is_stacked = is_stacked
        self.issues_flushes = issues_flushes
        self.bios: defaultdict[int, list[Bio]] = defaultdict(list)
        self.empty_bios: deque[Event] = deque()
        self.issued: defaultdict[int, list[Request]] = defaultdict(list)
        self.requeued: dict[tuple[int, int], Request] = {}
        self.flushes: deque[Request] = deque()
        self.completed: OrderedDict[int, Request] = OrderedDict()
        # Bios that need a flush before or after, which the block layer makes a request of its own.
        self.need_flush: deque[Event] = deque(maxlen=_COMPLETED_KEPT)
        self.flushed_bios = 0  # bios without blocks whose flush was issued, and that are not done


class Joiner:
    """Takes events one by one; `ready` gives the requests that are done, in issue order."""

    def __init__(self, survey: Survey) -> None:
        self.counts: Counter[str] = Counter()
        self._survey = survey
        self._disks: dict[str, _Disk] = {}
        self._open: deque[Request] = deque()
        self._bios = 0
        self._now_ns = 0
        self._steps = {
            QUEUED: self._note_queue,
            ISSUED: self._note_issue,
            COMPLETED: self._note_completion,
            REQUEUED: self._note_requeue,
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
        if event.flags.unknown:
            self.counts["unknown_letters"] += not event.flags.unknown_operation
            self.counts["unknown_operations"] += event.flags.unknown_operation
        disk = self._disk(event.device)
        if disk.is_stacked:
            self.counts["stacked"] += event.action == QUEUED
            return
        self._steps[event.action](disk, event)
        if self._bios > MOST_OPEN_BIOS:
            self._drop_bios(MOST_OPEN_BIOS // 2)

    def _disk(self, device: str) -> _Disk:
        if device not in self._disks:
            self._disks[device] = _Disk(
                takes_bios=self._survey.takes_bios(device),
                is_stacked=self._survey.is_stacked(device),
                issues_flushes=self._survey.issues_flushes(device),
            )
        return self._disks[device]

    def ready(self, *, at_end: bool = False) -> Iterator[Request]:
        """Yield the requests before which none is open; `at_end` gives all that are left."""
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

    def _note_queue(self, disk: _Disk, event: Event) -> None:
        if event.sectors:
            bio = Bio(event, event.sector, event.sectors)
            beside = disk.bios[event.sector]
            # The rest of a split bio may be queued again under its own sector.
            again = [b for b in beside if b.is_rest and b.sectors == event.sectors]
            if again:
                beside.remove(again[0])
                self._bios -= 1
            beside.append(bio)
            self._bios += 1
            if disk.takes_bios:
                self.counts["bios_as_requests"] += 1
                self._note_issue(disk, event)
            elif disk.issues_flushes and event.flags.preflush:
                disk.need_flush.append(event)
        elif disk.issues_flushes:
            disk.empty_bios.append(event)
            self._bios += 1
        else:
            self.counts["bios_as_requests"] += disk.takes_bios
            disk.flushes.append(self._open_flush(event, event.time_ns, event.time_ns))

    def _note_issue(self, disk: _Disk, event: Event) -> None:
        if not event.sectors:
            self._flush_issued(disk, event)
            return
        key = event.sector, event.sectors
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
        for bio in bios:
            if bio.event.flags.preflush and bio.event in disk.need_flush:
                disk.need_flush.remove(bio.event)  # the driver flushes before this write itself
        request = _request(event, bios)
        disk.issued[event.sector].append(request)
        self._open.append(request)

    def _flush_issued(self, disk: _Disk, event: Event) -> None:
        """Open a flush; a bio without blocks asks for it, or the block layer does for a write."""
        preflush = event.flags.preflush
        bio = next((bio for bio in disk.empty_bios if bio.flags.preflush == preflush), None)
        if bio is not None:
            disk.empty_bios.remove(bio)
            self._bios -= 1
            disk.flushed_bios += 1
            disk.flushes.append(self._open_flush(bio, bio.time_ns, event.time_ns))
            return
        flush = self._open_flush(event, event.time_ns, event.time_ns)
        if disk.need_flush and preflush:
            write = disk.need_flush.popleft()
            flush.pid, flush.comm = write.pid, write.comm
        disk.flushes.append(flush)

    def _note_completion(self, disk: _Disk, event: Event) -> None:
        if not event.sectors and disk.issues_flushes and _is_end_of_sequence(event):
            self._sequence_ended(disk, event)
            return
        self.counts["errors"] += bool(event.error)
        if not event.sectors:
            self._flush_completed(disk, event)
            return
        request = _issued_request(disk, event)
        if request is None:
            queued = _pop(disk.bios, event.sector)
            self._bios -= queued is not None
            self.counts["unissued" if queued else "unknown_completions"] += 1
            return
        sector = event.sector if not event.flags.append else request.sector + request.done_sectors
        _remove(disk.issued, sector, request)
        request.done_sectors += event.sectors
        if request.done_sectors < request.sectors:  # the rest completes under its own sector
            disk.issued[sector + event.sectors].append(request)
            return
        if not request.given_up:
            request.complete_ns = event.time_ns
            if event.flags.append:
                _place(request, event.sector)
        disk.completed[request.sector] = request
        disk.completed.move_to_end(request.sector)
        if len(disk.completed) > _COMPLETED_KEPT:
            disk.completed.popitem(last=False)
        if disk.issues_flushes and request.flags.fua and not event.flags.fua:
            # A flush after it stands for FUA.
            disk.need_flush.append(replace(event, pid=request.pid, comm=request.comm))

    def _flush_completed(self, disk: _Disk, event: Event) -> None:
        before = disk.completed.pop(event.sector, None) if event.sector else None
        if before and before.complete_ns is not None:
            # The flush after a write began when the write was done (blk_flush_complete_seq).
            flush = self._open_flush(event, before.complete_ns, before.complete_ns)
            flush.operation, flush.complete_ns = "flush", event.time_ns
            flush.pid, flush.comm = before.pid, before.comm
            return
        alike = (f for f in disk.flushes if f.preflush == event.flags.preflush)
        # Where flushes are only queued, their completion has lost the F.
        first = disk.flushes[0] if disk.flushes and not disk.issues_flushes else None
        done = next(alike, first)
        if done is None:
            self.counts["unknown_completions"] += 1
            return
        disk.flushes.remove(done)
        if not done.given_up:
            done.complete_ns = event.time_ns

    def _sequence_ended(self, disk: _Disk, event: Event) -> None:
        """Take the completion of what asked for flushes; some share one."""
        if event.sector:
            return
        if disk.flushed_bios:
            disk.flushed_bios -= 1
        elif disk.empty_bios:
            disk.empty_bios.popleft()
            self._bios -= 1
            self.counts["shared_flushes"] += 1

    def _note_requeue(self, disk: _Disk, event: Event) -> None:
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
                rest = Bio(bio.event, event.to_sector, bio.sectors - first, is_rest=True)
                bio.sectors = first
                disk.bios[event.to_sector].append(rest)
                self._bios += 1
                return
        if disk.takes_bios:
            self._split_request(disk, event)

    def _split_request(self, disk: _Disk, event: Event) -> None:
        """Make two requests of a bio that the driver has."""
        for request in disk.issued.get(event.sector, []):
            first = event.to_sector - request.sector
            if 0 < first < request.sectors and not request.done_sectors:
                left = request.sectors - first
                rest = replace(
                    request, sector=event.to_sector, sectors=left, issue_ns=event.time_ns
                )
                _place(rest, event.to_sector)
                request.sectors = first
                _place(request, request.sector)
                disk.issued[event.to_sector].append(rest)
                self._open.append(rest)
                return

    def _take_bios(self, disk: _Disk, event: Event) -> Iterator[Bio]:
        """Yield the open bios that the issued request consists of, in order of their sectors."""
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

    def _open_flush(self, event: Event, queue_ns: int, issue_ns: int) -> Request:
        flush = Request(
            event.device,
            "flush" if event.flags.preflush else "other",
            0,
            0,
            queue_ns,
            issue_ns,
            event.flags,
            event.pid,
            event.comm,
            int(event.action == QUEUED),
            event.flags.preflush,
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


def _is_end_of_sequence(event: Event) -> bool:
    """Return whether a completion without sectors is of a bio whose flushes are done."""
    return event.flags.operation not in ("flush", "other") and not event.flags.preflush


def _issued_request(disk: _Disk, event: Event) -> Request | None:
    """Return the request that a completion belongs to."""
    fits = (
        r for r in disk.issued.get(event.sector, []) if event.sectors <= r.sectors - r.done_sectors
    )
    request = next(fits, None)
    if request is None and event.flags.append:
        # It is complete at the sector that the device chose, behind the one it was issued with.
        places = [sector for sector in disk.issued if sector <= event.sector]
        nearest = (r for s in sorted(places, reverse=True) for r in disk.issued[s])
        return next((r for r in nearest if r.flags.append and r.sectors == event.sectors), None)
    return request


def _place(request: Request, sector: int) -> None:
    """Move a request of one owner there."""
    request.sector = sector
    request.runs = [(sector, request.sectors, *run[2:]) for run in request.runs[:1]]


def _request(event: Event, bios: list[Bio]) -> Request:
    first = min((bio.event for bio in bios), key=lambda e: e.time_ns, default=event)
    runs: list[tuple[int, int, str, str]] = []
    for sector, sectors, block_type, path in _cover_stretches(event, bios):
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


def _cover_stretches(event: Event, bios: list[Bio]) -> Iterator[tuple[int, int, str, str]]:
    """Yield the stretches of the bios, and of what lies between them, as the issue tells it."""
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
