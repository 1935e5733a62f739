"""Charts of one bar or line for each case (throughput, latency, bills, kinds of I/O), and the rows
that they take. Gets finished figures, returns Vega-Lite; only units change.

The small multiples, time and bytes of one commit by the fields that vary, are elements of the page,
not a drawing: they fit any width, and are dark or printed with it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from jojlab.analysis.commit.bill import CLASSES, caused_shares, class_of
from jojlab.analysis.commit.story import CommitTrace, TracedRun
from jojlab.analysis.run.summary import CaseSummary, RunSummary
from jojlab.foundation.lazy import alt
from jojlab.model.figures import PERCENTILES
from jojlab.report import durability
from jojlab.report.shared import text, vega
from jojlab.report.shared.template import Section
from jojlab.report.shared.vega import COLOURS, Datasets, Rows

Row = dict[str, Any]

PERCENTILE_NAMES = {"p50": "p50", "p90": "p90", "p99": "p99", "p999": "p99.9", "max": "max"}
assert list(PERCENTILE_NAMES) == list(PERCENTILES)  # both are shown in one order


def throughput_rows(summary: RunSummary) -> list[Row]:
    """Return one row per measured case, and one that says why there is none for every other."""
    return absent_rows(summary) + [
        {
            "case": chart_label(summary, case),
            "risk": durability.risk(case),
            "durability": durability.outcome_words(case),
            "tps": case.figures.median["throughput_tps"],
            "low": case.figures.spread["throughput_tps"][0],
            "high": case.figures.spread["throughput_tps"][1],
            "with checkpoints": case.figures.median["throughput_with_checkpoints_tps"],
        }
        for case in summary.measured_cases
    ]


def absent_rows(summary: RunSummary) -> list[Row]:
    """Return one row per case without figures: what became of it, and why."""
    return [
        {"case": chart_label(summary, case), "absent": case.status, "reason": case.reason}
        for case in summary.cases
        if not case.figures.seeds
    ]


def chart_labels(summary: RunSummary) -> list[str]:
    """Return the names of all cases in the experiment's order."""
    return [chart_label(summary, case) for case in summary.cases]


def chart_label(summary: RunSummary, case: CaseSummary) -> str:
    """Return the name of a case, and with it how many seeds it has where it lacks some."""
    partial = summary.partial(case)
    return f"{case.label} ({partial})" if partial else case.label


def latency_rows(summary: RunSummary) -> list[Row]:
    """Return one row per measured case and percentile, and those of absent_rows."""
    return absent_rows(summary) + [
        {
            "case": chart_label(summary, case),
            "risk": durability.risk(case),
            "durability": durability.outcome_words(case),
            "percentile": shown,
            "ms": case.figures.median[f"latency_ns_{name}"] / 1e6,
        }
        for case in summary.measured_cases
        for name, shown in PERCENTILE_NAMES.items()
    ]


def histogram_rows(summary: RunSummary) -> list[Row]:
    """Return the bins of every case that are not empty, and after them its percentiles.

    The greatest comes first, so that what is drawn last, over the others, is the median.
    """
    rows: list[Row] = []
    for case in summary.measured_cases:
        whole = sum(found.count for found in case.latencies)
        rows += [
            {
                "case": chart_label(summary, case),
                "risk": durability.risk(case),
                "begin_ms": found.begin_ns / 1e6,
                "end_ms": found.end_ns / 1e6,
                "share": found.count / whole,
                "count": found.count,
            }
            for found in case.latencies
            if found.count
        ]
        for name, shown in reversed(PERCENTILE_NAMES.items()):
            low, high = case.figures.spread[f"latency_ns_{name}"]
            median = case.figures.median[f"latency_ns_{name}"]
            ms = {"ms": median / 1e6, "low": low / 1e6, "high": high / 1e6}
            rows.append({"case": chart_label(summary, case), "percentile": shown, **ms})
    return rows


def commit_rows(trace: CommitTrace) -> tuple[list[Row], list[Row]]:
    """Return the stretches of one commit, track by track, and its flushes.

    A stretch is what one request has in one track: its page runs there, drawn as one bar.
    """
    stretches: dict[tuple[int, str], list[TracedRun]] = {}
    for run in trace.runs:
        if run.operation != "flush":
            stretches.setdefault((run.request_id, _track_name(run)), []).append(run)
    rows = [_stretch_row(track, runs) for (_, track), runs in stretches.items()]
    rows.sort(key=lambda row: (CLASSES.index(row["class"]), row["track"]))
    flushes = [_times(run) | {"cause": run.cause} for run in trace.runs if run.operation == "flush"]
    return rows, flushes


def drawn_commit(case: CaseSummary) -> str:
    """Say which commit of a case is drawn, or which checkpoint."""
    assert case.trace
    if case.trace.is_checkpoint:
        return f"the checkpoint {case.trace.transaction_id} of seed {case.trace.seed}"
    return f"transaction {case.trace.transaction_id} of seed {case.trace.seed}"


def _track_name(run: TracedRun) -> str:
    """Return the file for data, the class for what has no file of its own."""
    file = run.file.rsplit("/", 1)[-1]
    return file if run.block_type == "data" and file else class_of(run.block_type, run.file_kind)


def _stretch_row(track: str, runs: list[TracedRun]) -> Row:
    first = runs[0]
    kib = sum(run.length_bytes for run in runs) / 1024
    kinds = Counter(run.block_subtype for run in runs if run.block_subtype)
    marks = [", ".join(f"{n} × {kind}" if n > 1 else kind for kind, n in kinds.items())]
    marks += [first.operation] * (first.operation != "write")
    marks += ["preflush"] * first.preflush + ["FUA"] * first.fua
    return _times(first) | {
        "track": track,
        "class": class_of(first.block_type, first.file_kind),
        "sector": first.sector,
        "kib": kib,
        "text": " ".join([f"{kib:g} KiB", *filter(None, marks)]),
        "cause": first.cause,
    }


def _times(run: TracedRun) -> Row:
    # A request whose completion was not seen is drawn as a point at its issue.
    end_ns = run.issue_ns if run.complete_ns is None else run.complete_ns
    return {"begin_ms": run.issue_ns / 1e6, "end_ms": end_ns / 1e6}


_BAR = 22  # pixels a case takes
_MANY = 20  # cases whose axis stands above them
TICK = "#1c2024"


def throughput_chart(rows: Rows, cases: list[str], axis_title: str) -> dict[str, Any]:
    """Return bars of `tps` by `case`, with the range over the seeds (`low`, `high`).

    `cases` are all, in their order. A black tick is the rate with checkpoints.
    """
    data: Datasets = {}
    drawn = [row for row in rows if "tps" in row]
    axis = vega.bar_axis(
        value for row in drawn for value in (row["tps"], row["with checkpoints"], row["high"])
    )
    y = _cases(cases)
    base = alt.Chart(vega.named_data(data, drawn)).encode(y=y)
    title = axis_title + axis.suffix
    scale = alt.Scale(**axis.scale)
    bars = base.encode(
        x=alt.X("tps:Q", title=title, scale=scale, axis=_values(cases)),
        x2=alt.X2Datum(axis.base),
        tooltip=vega.tooltip(
            "case", "tps", "low", "high", "with checkpoints", "risk", "durability"
        ),
    )
    band = {"height": {"band": 0.62}}
    whole = [bars.mark_bar(color=vega.COLOURS["database"], **band), vega.hatch(bars, **band)]
    ends = base.mark_rule(strokeWidth=2, color="#E69F00").encode(
        x=alt.X("low:Q", scale=scale), x2="high:Q"
    )
    slower = base.transform_filter("datum['with checkpoints'] < datum.tps")
    ticks = slower.mark_tick(thickness=2, size=16, color=TICK).encode(
        x=alt.X("with checkpoints:Q", scale=scale)
    )
    return _finish(alt.layer(*whole, ends, ticks, *_absent(data, rows, y)), len(cases), data)


def latency_chart(rows: Rows, cases: list[str], axis: str) -> dict[str, Any]:
    """Return percentiles (`percentile`, `ms`) by `case` on a log axis, joined by a line.

    The line of a case that puts something at risk is dashed.
    """
    drawn = [row for row in rows if "ms" in row]
    names = list(dict.fromkeys(row["percentile"] for row in drawn))
    data: Datasets = {}
    y = _cases(cases)
    # Where points fall together, the lowest percentile is drawn last and the one in sight.
    base = alt.Chart(vega.named_data(data, drawn[::-1])).encode(y=y)
    x = alt.X("ms:Q", title=axis, scale=alt.Scale(type="log", nice=True), axis=_values(cases))
    lines = [
        base.transform_filter(which)
        .mark_line(strokeWidth=1.5, color="#8C8C8C", **dash)
        .encode(x=x, detail="case:N")
        for which, dash in (("!datum.risk", {}), ("datum.risk", {"strokeDash": [4, 4]}))
    ]
    points = base.mark_point(filled=True, size=75, opacity=1).encode(
        x=x,
        color=alt.Color(
            "percentile:N",
            sort=names,
            scale=alt.Scale(domain=names, range=list(vega.PERCENTILE_COLOURS)),
            legend=vega.legend(""),
        ),
        shape=alt.Shape(
            "percentile:N",
            sort=names,
            scale=alt.Scale(
                domain=names, range=["circle", "square", "triangle-up", "diamond", "cross"]
            ),
            legend=vega.legend(""),
        ),
        tooltip=vega.tooltip("case", "percentile", "ms", "risk", "durability"),
    )
    return _finish(alt.layer(*lines, points, *_absent(data, rows, y)), len(cases), data)


def shares_chart(rows: Rows) -> dict[str, Any]:
    """Return bars of parts of a whole by `case` and `value`, beside each other for each `by`.

    `amount` is what the parts are of, `order` the order in which they stand.
    """
    values = [row["value"] for row in sorted(rows, key=lambda row: row["order"])]
    values = list(dict.fromkeys(values))
    cases = list(dict.fromkeys(row["case"] for row in rows))
    data: Datasets = {}
    bars = (
        alt.Chart(vega.named_data(data, rows))
        .mark_bar(height={"band": 0.62}, stroke="white", strokeWidth=0.6)
        .encode(
            y=_cases(cases),
            x=alt.X("amount:Q", title=None, stack="normalize", axis=alt.Axis(format="%")),
            color=alt.Color(
                "value:N",
                sort=values,
                scale=alt.Scale(domain=values, range=_part_colours(values)),
                legend=vega.legend(""),
            ),
            order=alt.Order("order:Q"),
            tooltip=vega.tooltip("case", "value", "amount", "by"),
        )
        .properties(width=vega.WIDTH // 2 - 20, height=max(30, _BAR * len(cases)))
    )
    bare = bars.encode(y=alt.Y("case:N", sort=cases, title=None, axis=None))
    halves = [
        half.transform_filter(f"datum.by === '{by}'").properties(title=f"by {by}")
        for half, by in zip((bars, bare), dict.fromkeys(row["by"] for row in rows), strict=False)
    ]
    return vega.configure(alt.hconcat(*halves, spacing=16), data)


def _part_colours(values: Sequence[str]) -> list[str]:
    """Colours of the bill where the words are its own, and others that can be told apart."""
    known = {
        **vega.KIND_COLOURS,
        "data": vega.COLOURS["database"],
        "no file": vega.COLOURS["flush"],
    }
    rest = [
        "#0072B2", "#56B4E9", "#009E73", "#B8A30F", "#E69F00", "#D55E00", "#CC79A7", "#6A3D9A",
        "#333333", "#999999", "#17455C", "#7A5230",
    ]  # fmt: skip
    free = [colour for colour in rest if colour not in {known.get(value) for value in values}]
    return [known.get(value) or free.pop(0) if free or value in known else "#8C8C8C"
            for value in values]  # fmt: skip


def _values(cases: list[str]) -> alt.Axis:
    """Return the axis of the values; of many cases above them, where a reader begins."""
    side: Any = "top" if len(cases) > _MANY else "bottom"
    return alt.Axis(tickCount=8, format=",~r", orient=side)


def _absent(data: Datasets, rows: Rows, y: alt.Y) -> list[alt.Chart]:
    """Return what stands in place of a bar that is not there: a word, and why."""
    found = [row for row in rows if "absent" in row]
    if not found:
        return []
    words = alt.Chart(vega.named_data(data, found)).mark_text(
        align="left", dx=4, fontStyle="italic", color=vega.ABSENT_COLOUR
    )
    return [
        words.encode(
            y=y, x=alt.XValue(0), text="absent:N", tooltip=vega.tooltip("case", "absent", "reason")
        )
    ]


def _cases(names: list[str]) -> alt.Y:
    """Return the cases down the side, in their order, which Vega would change, all of them."""
    return alt.Y(
        "case:N",
        sort=names,
        scale=alt.Scale(domain=names),
        title=None,
        axis=alt.Axis(labelLimit=260, ticks=False, domain=False),
    )


def _finish(chart: Any, cases: int, data: Datasets) -> dict[str, Any]:
    return vega.configure(chart.properties(width=vega.WIDTH, height=max(70, _BAR * cases)), data)


# Fields whose values are the rows of a panel; those before them make the panels.
_INNER = 2
_DIGITS = 3


def multiples_section(summary: RunSummary) -> Section | None:
    """Return the chart, or None where fewer than two cases have a p50 and bytes."""
    cases = [c for c in summary.measured_cases if c.figures.median.get("latency_ns_p50") and c.bill]
    if len(cases) < 2 or len(summary.parts) != 1:
        return None
    [part] = summary.parts
    names = part.named_by
    outer = max(0, len(names) - _INNER)
    most_ns = max(case.figures.median["latency_ns_p50"] for case in cases)
    most_bytes = max(case.figures.median["bytes_per_commit"] for case in cases) or 1
    panels: dict[str, list[dict[str, Any]]] = {}
    for case in cases:
        values = part.values(case.case_id, case.case) or (case.label,)
        row = _multiples_row(case, most_ns, most_bytes) | {"label": " · ".join(values[outer:])}
        panels.setdefault(" · ".join(values[:outer]), []).append(row)
    seen = {share["name"] for rows in panels.values() for row in rows for share in row["parts"]}
    return Section.render(
        "multiples",
        "multiples",
        panels=panels.items(),
        axes=(" · ".join(names[:outer]), " · ".join(names[outer:]) or "case"),
        key=[(name, COLOURS[name]) for name in CLASSES if name in seen],
        what=text.transaction_name(cases),
        is_risky=any(durability.risk(case) for case in cases),
    )


def _multiples_row(case: CaseSummary, most_ns: float, most_bytes: float) -> dict[str, Any]:
    median = case.figures.median
    assert case.bill
    return {
        "case": case.case_id,
        "risk": durability.risk(case),
        "time": text.duration(median["latency_ns_p50"], _DIGITS),
        "time_width": f"{median['latency_ns_p50'] / most_ns * 100:.2f}%",
        "size": text.size(median["bytes_per_commit"], _DIGITS),
        "parts": [
            {
                "name": share.name,
                "colour": COLOURS[share.name],
                "width": f"{share.bytes / most_bytes * 100:.2f}%",
                "size": text.size(share.bytes, _DIGITS),
            }
            for share in sorted(
                caused_shares(case.bill), key=lambda share: CLASSES.index(share.name)
            )
            if share.bytes
        ],
    }
