"""One typical commit of every case: as a story in sentences, and request by request."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from rich.console import Console
from rich.markup import escape

from jojlab.analysis.commit.story import Call, CommitTrace, OwnerBytes, StoryEvent, TracedRun, story
from jojlab.analysis.run.answer import TimeShares, answer, time_shares
from jojlab.analysis.run.summary import CaseSummary, RunSummary
from jojlab.report import case_charts
from jojlab.report.shared import text, vega
from jojlab.report.shared.template import Cell, NotedCell, Section, Specs
from jojlab.report.shared.vega import COLOURS, Datasets, Rows

# The changes of a file (requests.reason), as they are told after its name.
CHANGES = {
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
_SAME_CALL_NS = 100_000
_HOMES = 4  # of what the journal holds copies of: so many are spelled out


@dataclass(frozen=True)
class CallStory:
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
        f"Of its time {text.percent(shares.flushing)} is flushing, {text.percent(shares.moving)} "
        f"moving data, {text.percent(shares.elsewhere)} neither."
    )


def story_unit(case: CaseSummary, trace: CommitTrace) -> str:
    """Return what the transaction is that is told of a case."""
    return trace.phase if trace.is_checkpoint else text.transaction_name([case]).lower()


def call_stories(
    calls: Iterable[Call], filesystem: str, unit: str = "commit"
) -> Iterator[CallStory]:
    """Yield the calls in words, of a commit, a sync, an operation or a checkpoint; `filesystem` may
    be empty.
    """
    filesystem = filesystem or "The filesystem"
    begin = "BEGIN" if unit == "commit" else "its begin"
    for call in calls:
        sentences = [event_sentence(event, call, filesystem, unit) for event in call.events]
        yield CallStory(_heading(call, begin), tuple(sentences))


def _heading(call: Call, begin: str) -> str:
    until = (
        "" if call.end_ns is None else f"; its last request ends at {text.duration(call.end_ns)}"
    )
    if call.begin_ns is None:
        first = call.events[0].begin_ns
        return f"At {text.duration(first)} after {begin}, {call.cause}: nobody waits{until}"
    # Two programs of the kernel time a call that is a transaction: one may be a little earlier.
    if -_SAME_CALL_NS < call.begin_ns < 0:
        return f"At {begin}, {call.cause}{until}"
    return f"At {text.duration(call.begin_ns)} after {begin}, {call.cause}{until}"


def event_sentence(event: StoryEvent, call: Call, filesystem: str, unit: str = "commit") -> str:
    """Return what one event was."""
    took = "" if event.took_ns is None else f" ({text.duration(event.took_ns)})"
    if event.operation == "flush":
        return f"{_flush(event, call, unit)}{took}."
    owners = _join_words([_moved_owner(moved) for moved in event.moved])
    with_fua = ", durable when it completes (FUA)" if event.fua else ""
    if event.subtypes == ("commit",):
        size = text.size(sum(each.bytes for each in event.moved))
        return f"{filesystem} writes the commit block, {size}{with_fua}{took}."
    if event.reason:
        changes = "; ".join(map(_change, event.reason.split("; ")))
        # An fsync of F2FS writes a file's node alone where it can, without a checkpoint
        # (f2fs_do_sync_file() of fs/f2fs/file.c).
        because = f"{filesystem} must {_DOES.get(event.subtypes, 'commit')}, because {changes}"
        others = f", for {event.calls} calls at once" if event.calls > 1 else ""
        kinds = f"{_kinds_of_blocks(event)}{with_fua}{others}"
        return f"{because}: it writes {owners}{kinds}{took}."
    verb = {"write": "written", "read": "read"}.get(event.operation, event.operation)
    count = f" in {event.requests} requests" if event.requests > 1 else ""
    return f"{owners} is {verb}{count}{_kinds_of_blocks(event)}{with_fua}{took}."


def _flush(event: StoryEvent, call: Call, unit: str) -> str:
    waited = _join_words([_moved_owner(moved) for moved in event.durable])
    if event.before:
        block = "commit block" if event.before == "commit" else event.before
        why = f"before the {block} may be written"
    else:
        name = call.cause.split(" of ")[0]
        last = call.events[-1] is event and call.begin_ns is not None
        why = f"before {name} may return" if last else "before it goes on"
    if not waited:
        return f"The device flushes its cache {why}: of this {unit}, nothing new is in it"
    return f"The device flushes its cache {why}: {waited} must be durable"


def _change(part: str) -> str:
    file, colon, words = part.partition(": ")
    if not colon:
        return "of a change that was not seen" if part == "unknown" else part
    names = [word.strip() for word in words.split(",")]
    return f"{file} {_join_words([CHANGES.get(name, name) for name in names])}"


def without_requests(trace: CommitTrace | None) -> str:
    """Return why there is nothing to tell of a case that has requests."""
    if trace is None:
        return "it has no transaction"
    return (
        f"its typical transaction (number {trace.transaction_id} of seed {trace.seed}, "
        f"{text.duration(trace.latency_ns)}) has no request: those of the case belong to other "
        "transactions, or to none"
    )


def _kinds_of_blocks(event: StoryEvent) -> str:
    """Return what kinds of blocks the filesystem wrote, and what its journal copied."""
    kinds = ", ".join(event.subtypes)
    shown = ", ".join(event.homes[:_HOMES])
    more = len(event.homes) - _HOMES
    copied = f"; copies of {shown}{f' and {more} more' if more > 0 else ''}" if shown else ""
    return f" ({kinds}{copied})" if kinds else ""


def _moved_owner(moved: OwnerBytes) -> str:
    name = re.sub("^/", "", moved.file) if moved.file else moved.block_type
    return f"{text.size(moved.bytes)} of {name}"


def _join_words(words: Sequence[str]) -> str:
    """Return 'a', 'a and b' or 'a, b and c'."""
    return " and ".join(filter(None, (", ".join(words[:-1]), *words[-1:])))


def print_story(console: Console, case: CaseSummary) -> None:
    """Print the calls of a case's typical commit, or of its checkpoint, in sentences."""
    assert case.trace
    console.print(f"[bold]{escape(opening(case))}[/bold]")
    calls = call_stories(story(case.trace), case.filesystem, story_unit(case, case.trace))
    for number, call in enumerate(calls, 1):
        console.print(f"{number}. {escape(call.heading)}")
        for sentence in call.sentences:
            console.print(f"   - {escape(sentence)}")
    console.print(escape(closing(time_shares(case.trace))))


COLUMNS = ("", "operation", "block type", "file", "cause", "KiB", "sector", "after BEGIN", "took")


def request_rows(trace: CommitTrace) -> list[list[Cell]]:
    """Return one row for each page run or flush, in the order of issue; stretches are added up.

    Neighbouring page runs of one request and owner stand in one row.
    """
    rows: list[list[Cell]] = []
    numbers: dict[int, str] = {}
    for request_id, of_request in groupby(trace.runs, lambda run: run.request_id):
        number = numbers.setdefault(request_id, str(len(numbers) + 1))
        owners = groupby(of_request, lambda run: (run.block_type, run.block_subtype, run.file))
        for place, (_, runs) in enumerate(owners):
            rows.append(["" if place else number, *_cells(list(runs))])
    return rows


def _cells(runs: list[TracedRun]) -> list[Cell]:
    first = runs[0]
    flush = first.operation == "flush"
    marks = [first.operation, "preflush" * first.preflush, "FUA" * first.fua]
    several = f"{len(runs)} \u00d7 " if len(runs) > 1 and first.block_subtype else ""
    took = (
        "\u2013" if first.complete_ns is None else text.duration(first.complete_ns - first.issue_ns)
    )
    return [
        ", ".join(mark for mark in marks if mark) if not flush else "flush",
        "" if flush else NotedCell(first.block_type, several + first.block_subtype),
        first.file,
        first.cause,
        "" if flush else text.kib(sum(run.length_bytes for run in runs)),
        "" if first.sector is None else f"{first.sector:,}",
        text.duration(first.issue_ns),
        took,
    ]


Spec = dict[str, Any]

# The part of a commit's time after which labels stand before their bars, so that none is cut.
_LATE = 0.6


def commit_chart(rows: Rows, flushes: Rows, latency_ms: float) -> Spec:
    """Return the chart.

    `rows` have track, class, begin_ms, end_ms, sector, kib, text, cause; `flushes` begin_ms,
    end_ms, cause.
    """
    data: Datasets = {}
    tracks = list(dict.fromkeys(row["track"] for row in rows))
    drawn = []
    for place, track in enumerate(tracks):
        inside = [row for row in rows if row["track"] == track]
        x = _time(latency_ms, place == len(tracks) - 1)
        layers = _flush_layers(data, flushes, x, place == 0) if flushes else []
        layers += _track_layers(data, inside, x, track, latency_ms * _LATE)
        height = min(150, 26 + 16 * len({row["sector"] for row in inside}))
        drawn.append({"layer": layers, "height": height, "width": vega.WIDTH})
    return vega.finish({"vconcat": drawn, "spacing": 6}, data)


def _time(latency_ms: float, last: bool) -> Spec:
    """Return the axis that all tracks share; the last shows its labels."""
    return vega.quantity(
        "begin_ms",
        "milliseconds since BEGIN" if last else None,
        axis={"labelOverlap": True, "labels": last, "tickCount": 8, "ticks": last},
        scale={"domain": [0, latency_ms], "nice": False},
    )


def _track_layers(data: Datasets, rows: Rows, x: Spec, track: str, late_ms: float) -> list[Spec]:
    axis = {
        "format": ",d", "minExtent": 180, "tickCount": 2, "titleAlign": "left",
        "titleAnchor": "start", "titleAngle": 0, "titleBaseline": "top", "titleX": -178,
        "titleY": 0,
    }  # fmt: skip
    scale = {"nice": False, "padding": 9, "zero": False}
    y = vega.quantity("sector", track, axis=axis, scale=scale)
    source = vega.named_data(data, rows).to_dict()
    bars = {
        "data": source,
        "mark": {
            "type": "rule",
            "color": COLOURS[rows[0]["class"]],
            "strokeCap": "butt",
            "strokeWidth": 5,
        },
        "encoding": {
            "tooltip": vega.tooltip(
                "track", "text", "sector", "kib", "begin_ms", "end_ms", "cause"
            ),
            "x": x,
            "x2": {"field": "end_ms"},
            "y": y,
        },
    }
    return [bars, _labels(source, y, "end_ms", late_ms), _labels(source, y, "begin_ms", late_ms)]


def _labels(source: Spec, y: Spec, side: str, late_ms: float) -> Spec:
    """Return what stands after a bar (`side` end_ms), or before it late in the commit."""
    late = side == "begin_ms"
    align = {"align": "right", "dx": -4} if late else {"align": "left", "dx": 4}
    return {
        "data": source,
        "transform": [{"filter": f"datum.end_ms {'>' if late else '<='} {late_ms}"}],
        "mark": {"type": "text", "baseline": "middle", "fontSize": 10, **align},
        "encoding": {
            "text": {"field": "text", "type": "nominal"},
            "x": {"field": side, "type": "quantitative"},
            "y": y,
        },
    }


def _flush_layers(data: Datasets, flushes: Rows, x: Spec, label: bool) -> list[Spec]:
    source = vega.named_data(data, flushes).to_dict()
    bands = {
        "data": source,
        "mark": {"type": "rect", "color": COLOURS["flush"], "opacity": 0.3},
        "encoding": {
            "tooltip": vega.tooltip("cause", "begin_ms", "end_ms"),
            "x": x,
            "x2": {"field": "end_ms"},
        },
    }
    text = {
        "data": source,
        "mark": {"type": "text", "align": "left", "baseline": "bottom", "dx": 1, "fontSize": 10},
        "encoding": {"text": {"value": "flush"}, "x": x, "y": {"value": -2}},
    }
    return [bands, text] if label else [bands]


def commits_section(summary: RunSummary, run: str, specs: Specs) -> Section:
    """Return the requests of one typical commit of every case, or of its checkpoint."""
    found, untold = [], []
    answered = answer(summary)
    cheapest = answered.cheaper[0].case.case_id if answered and answered.cheaper else ""
    first = [case for case in summary.measured_cases if case.case_id == cheapest]
    others = [case for case in summary.measured_cases if case.case_id != cheapest]
    # The first case, beside it the cheapest that does the same work, then all others.
    for place, case in enumerate([*others[:1], *first, *others[1:]]):
        if not case.trace or not case.trace.runs:
            if case.figures.median.get("requests_per_commit"):
                untold.append(f"{case.label}: {without_requests(case.trace)}")
            continue
        name = f"commit-chart-{place}"
        runs, flushes = case_charts.commit_rows(case.trace)
        specs[name] = commit_chart(runs, flushes, case.trace.latency_ns / 1e6)
        which = (
            f"case_id = '{case.case_id}' AND seed = {case.trace.seed} "
            f"AND transaction_id = {case.trace.transaction_id}"
        )
        found.append(
            {
                "case": case.case_id,
                "label": case.label,
                "soft": f"{case_charts.drawn_commit(case)}, {text.duration(case.trace.latency_ns)}",
                "chart": name,
                "rows": request_rows(case.trace),
                "story": tuple(
                    call_stories(story(case.trace), case.filesystem, story_unit(case, case.trace))
                ),
                "command": f'joj query {run} "SELECT * FROM requests JOIN page_runs USING '
                f'(case_id, seed, request_id) WHERE {which} ORDER BY issue_ns"',
                "is_open": place <= len(first),
            }
        )
    return Section.render("commit", "commits", commits=found, untold=untold, columns=COLUMNS)
