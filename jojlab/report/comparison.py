"""Two cases of a run beside each other on its page, and what differs between two runs."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from rich.console import Console
from rich.markup import escape

from jojlab.analysis.run.compare import Comparison, FigureChange, Move, parts
from jojlab.analysis.run.summary import CaseSummary, RunSummary
from jojlab.model.figures import Number
from jojlab.report import durability
from jojlab.report.case_charts import chart_label
from jojlab.report.overview import overview_columns
from jojlab.report.shared import text
from jojlab.report.shared.console import left, new_table, print_some, right
from jojlab.report.shared.short_answer import (
    RankedLine,
    count,
    duration,
    fit_lines,
    number,
    percent,
    print_answer,
    sentence,
    size,
)
from jojlab.report.shared.template import Section

_ALL = "joj diff --json"
_SHORT_CHANGE = 0.01
_HASH = re.compile(r"[0-9a-f]{64}")


# What is asked of two runs first, and how a value of it is written.
_HEADLINES: Sequence[tuple[str, str, Callable[[Number], str]]] = (
    ("latency_ns_p50", "One commit takes", duration),
    ("bytes_per_commit", "It sends", size),
    ("flushes_per_commit", "Its flushes are", number),
)


def comparison_lines(comparison: Comparison) -> tuple[str, ...]:
    """Return the short answer: how much changed, most of all what a commit costs, and by what."""
    if comparison.is_empty:
        return ("Nothing to compare: no case of either run has figures.",)
    changes = comparison.changes
    if comparison.is_same and not comparison.is_incomplete:
        return (f"All {comparison.equal_figures:,} figures of both runs are equal.",)
    whole = len(changes) + comparison.equal_figures
    spread = sum(change.is_within_spread for change in changes)
    lines: list[RankedLine] = [
        (0, "Not comparable: the clocks differ." if comparison.clocks else ""),
        (
            0,
            sentence(
                (
                    f"{len(changes):,} of {whole:,} figures changed",
                    f"{spread:,} of them within the seeds' spread" if spread else "",
                ),
                between=", ",
            ),
        ),
        *((1, _largest_change(changes, *headline)) for headline in _HEADLINES),
        (2, _usual_movers(changes)),
        (0, _cut_changes(comparison)),
    ]
    sides = (("first", comparison.old), ("second", comparison.new))
    apart = [f"{len(side.cases):,} in the {which} run" for which, side in sides if side.cases]
    lines.append((2, sentence(apart, "Cases of one run alone: ", ", ")))
    lacking = [which for which, side in sides if side.lacking]
    return fit_lines(lines, f"Incomplete: the {' and the '.join(lacking)} run." if lacking else "")


def _largest_change(
    changes: Sequence[FigureChange], figure: str, begin: str, written: Callable[[Number], str]
) -> str:
    """Say how one figure changed, in the case where it did most; empty where it did in none."""
    found = [change for change in changes if change.figure == figure]
    if not found:
        return ""
    most = max(found, key=lambda each: abs(each.change) if each.change is not None else math.inf)
    words = f"{begin} {written(most.new)}, before {written(most.old)}"
    words += f" ({_change_in_short(most.change)})"
    if len(found) > 1:
        words += f" in {most.label}; in {count(len(found) - 1, 'other case')} less changed"
    return f"{words}."


def _change_in_short(share: float | None) -> str:
    # What would be 0 in three digits keeps its own.
    if share is None or abs(share) < _SHORT_CHANGE:
        return text.change(share)
    return f"{'-' if share < 0 else '+'}{percent(abs(share))}"


def _usual_movers(changes: Sequence[FigureChange]) -> str:
    movers = Counter(" or ".join(step.parts) for change in changes for step in change.steps)
    if not movers:
        return ""
    part, _ = movers.most_common(1)[0]
    others = sum(movers.values()) - movers[part]
    if not part:
        more = f"; {others:,} changes by others" if others else ""
        return f"What moved them, the runs do not tell{more}."
    return f"{part} moved {f'{movers[part]:,}; others moved {others:,}' if others else 'them'}."


def _cut_changes(comparison: Comparison) -> str:
    differing = [each for each in comparison.durability_changes if each.differs]
    if not differing:
        return ""
    first, *others = differing
    words = " → ".join(durability.outcome_counts(each) for each in (first.old, first.new))
    more = f", and {count(len(others), 'other case')}" if others else ""
    return f"Power cuts of {first.label}: {words}{more}."


def print_comparison(console: Console, comparison: Comparison) -> None:
    """Print the figures that changed, and the differences in how the runs were made.

    Runs with different clocks differ in nearly everything: only --json has their fingerprints.
    """
    print_answer(console, comparison_lines(comparison))
    if comparison.clocks:
        words = " and ".join(text.clocks(clocks) for clocks in comparison.clocks)
        console.print(f"[bold yellow]not comparable[/bold yellow]: {escape(words)}")
    if not comparison.clocks:
        _print_parts(console, comparison)
    settings = [
        f"{escape(case_id)}: {name}: {escape(_change_words(old, new))}"
        for case_id, fields in comparison.settings.items()
        for name, (old, new) in fields.items()
    ]
    print_some(console, "[cyan]setting[/cyan]", settings, _ALL)
    contents = [
        f"{escape(case_id)}: {', '.join(names)}" for case_id, names in comparison.contents.items()
    ]
    print_some(console, "[cyan]other contents[/cyan]", contents, _ALL)
    for which, side in (("first", comparison.old), ("second", comparison.new)):
        only = f"[yellow]only in the {which} run[/yellow]:"
        print_some(console, only, [escape(case_id) for case_id in side.cases], _ALL)
        cases_by_figures: dict[tuple[str, ...], list[str]] = {}  # mostly all have the same
        for case_id, figures in side.figures.items():
            cases_by_figures.setdefault(figures, []).append(case_id)
        for names, cases in cases_by_figures.items():
            console.print(
                f"[yellow]figures only in the {which} run[/yellow]: {', '.join(names)} "
                f"[dim]({escape(', '.join(cases))})[/dim]"
            )
        lacking = [f"{escape(case_id)}: {escape(why)}" for case_id, why in side.lacking.items()]
        print_some(console, f"[bold red]incomplete in the {which} run[/bold red]", lacking, _ALL)
    seeds = [
        f"{escape(case_id)}: {' → '.join(', '.join(map(str, own)) for own in both)}"
        for case_id, both in comparison.seeds.items()
    ]
    print_some(console, "[cyan]seeds[/cyan]", seeds, _ALL)
    if comparison.changes:
        table = new_table(
            *left("case", "figure"), *right("old", "new", "change"), *left("", "moved by")
        )
        for change in comparison.changes:
            table.add_row(
                escape(change.label),
                change.figure,
                text.figure(change.figure, change.old),
                text.figure(change.figure, change.new),
                text.change(change.change),
                "[dim]within the seeds' spread[/dim]" if change.is_within_spread else "",
                escape(_move_words(change.steps)),
            )
        console.print(table)
    for found in comparison.durability_changes:
        style = "bold yellow" if found.differs else "dim"
        words = " → ".join(durability.outcome_counts(each) for each in (found.old, found.new))
        console.print(f"[{style}]power cuts[/{style}] {escape(f'{found.label}: {words}')}")
    if comparison.is_empty:
        console.print("for imported traces, use joj show RUN --characterise")


def _print_parts(console: Console, comparison: Comparison) -> None:
    """Print a line for each part that differs: versions in full; hashes say no more than that."""
    for part, names in parts(comparison.fingerprint).items():
        ends = {name: comparison.fingerprint[name] for name in names}
        lines = [
            _change_words(*both) if name == part else f"{_last(name)} {_change_words(*both)}"
            for name, both in ends.items()
            if not any(_HASH.fullmatch(str(end)) for end in both)
        ]
        if hashes := len(ends) - len(lines):
            lines.append(f"{hashes} hash{'es' if hashes > 1 else ''} ({_ALL})")
        console.print(f"[cyan]{escape(part)}[/cyan]: {escape('; '.join(lines))}")


def _last(name: str) -> str:
    """Return what a part of a fingerprint is of: a package, a file, or what it tells."""
    return re.sub(r"^(mkfs_package_versions|modules_sha256|tools_sha256)\.", "", name)


def _move_words(steps: Sequence[Move]) -> str:
    """Say of each step that moved a figure by how much, and by which parts or one of which."""
    words = []
    for step in steps:
        share = (step.new - step.old) / step.old if step.old else None
        by = " or ".join(step.parts) or "nothing that the runs tell"
        words.append(by if len(steps) == 1 else f"{text.change(share)} by {by}")
    return "; ".join(words)


def _change_words(old: object, new: object) -> str:
    return " → ".join("absent" if value is None else str(value) for value in (old, new))


_PARTS = {"commit": "One commit", **text.LATER_PARTS}


def compare_section(summary: RunSummary) -> Section | None:
    """Return the section, or None where there are no two cases with figures."""
    if summary.is_composed or len(summary.measured_cases) < 2:
        return None
    cases = [(case.case_id, case.label) for case in summary.measured_cases]
    return Section.render("compare", "comparison", cases=cases)


def case_data(summary: RunSummary) -> dict[str, Any]:
    """Return what the page's script knows of the cases.

    `figures` are the rows of the comparison, name and title; `parts` those of bills. Of each case:
    its id, its names in charts, what it risks, its figures (number and text), and its bill (part,
    what, file, cause, requests and bytes of one commit).
    """
    if summary.is_composed:
        return {"figures": [], "parts": [], "cases": []}
    columns = overview_columns(summary)
    titles = _titles(columns)
    return {
        "figures": [[figure, title] for (_, figure), title in zip(columns, titles, strict=True)],
        "parts": list(_PARTS.items()),
        "cases": [
            {
                "id": case.case_id,
                "label": case.label,
                "names": sorted({case.label, chart_label(summary, case)}),
                "risk": durability.risk(case),
                "durability": durability.outcome_words(case),
                "figures": {
                    figure: [value, text.figure(figure, value)]
                    for _, figure in columns
                    if (value := case.figures.median.get(figure)) is not None
                },
                "bill": _bill(case),
            }
            for case in summary.cases
        ],
    }


def _titles(columns: list[tuple[str, str]]) -> list[str]:
    """Return the titles of figures as they stand alone: a second p99 is that of the first word."""
    found: list[str] = []
    group = ""
    for title, _ in columns:
        if title.endswith(" p50"):
            group = title.removesuffix(" p50")
        found.append(f"{group} {title}" if title in ("p99", "max") else title)
    return found


def _bill(case: CaseSummary) -> list[list[Any]]:
    if case.bill is None:
        return []
    bill = case.bill
    return [
        [
            row.part,
            row.block_type
            if row.operation in ("write", "flush")
            else f"{row.block_type} ({row.operation})",
            row.file if row.file or row.file_kind == "none" else row.file_kind,
            row.cause,
            round(bill.per_commit(row.requests), 6),
            round(bill.per_commit(row.bytes), 3),
        ]
        for row in bill.rows
    ]
