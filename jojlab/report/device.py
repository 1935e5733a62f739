"""Prints a device profile, and how much its numbers move the figures; writes that as a page."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from jojlab.campaign.device_studies import Effect, Sensitivity
from jojlab.device.profile import INTERFACES, Origin, Profile, TriedNumber
from jojlab.foundation.errors import writable
from jojlab.foundation.lazy import alt, vl_convert
from jojlab.report.shared import vega
from jojlab.report.shared.console import left, new_table, right, terminal
from jojlab.report.shared.vega import Datasets

# Characters that two columns of the longest names and values take.
_TWO_COLUMNS = 90


def print_device(
    console: Console, profile: Profile, figures: Mapping[str, int], *, sources: bool
) -> None:
    """Print parameters in two columns, or one per line with its source; then the figures."""
    console.print(f"[bold]{escape(profile.name)}[/bold]  {escape(profile.title)}")
    console.print(_source_table(profile) if sources else _parameter_columns(profile, console.width))
    numbers = right("model", "stated", "off by")
    table = new_table(*left("figure"), *numbers, *left("meaning; source of the stated figure"))
    stated = {row.figure: row for row in profile.stated}
    for name, meaning in INTERFACES[profile.interface].figures.items():
        if row := stated.get(name):
            off = f"{figures[name] / row.value - 1:+.1%}"
            note = f"{meaning}; {row.source}"
            if row.sets:
                note += f"; no check: {row.sets} was set from it"
            table.add_row(name, f"{figures[name]:,}", f"{row.value:,}", off, escape(note))
        else:
            table.add_row(name, f"{figures[name]:,}", "", "", escape(meaning))
    console.print(table)


def _parameter_columns(profile: Profile, width: int) -> Table:
    """Two columns of parameters; one where two would be cut."""
    rows = [
        (name, f"{value:,}") for name, value in profile.model.items() if _is_told(profile, name)
    ]
    columns = 2 if width >= _TWO_COLUMNS else 1
    table = new_table(*(*left(""), *right("")) * columns, has_header=False)
    height = -(-len(rows) // columns)
    for place in range(height):
        table.add_row(*(cell for row in rows[place::height] for cell in row))
    return table


def _source_table(profile: Profile) -> Table:
    table = new_table(*left(""), *right(""), *left(""), has_header=False)
    for name, value in profile.model.items():
        if _is_told(profile, name):
            table.add_row(name, f"{value:,}", escape(profile.sources.get(name, "")))
    return table


def _is_told(profile: Profile, name: str) -> bool:
    """Return whether the file has the key, or the device has the mechanism all the same."""
    return name in profile.sources or profile.model[name] != 0


def print_sensitivity(result: Sensitivity) -> None:
    """Print a line for each value that was tried, a column for each case."""
    table = new_table(*left("number"), *right("is", "tried", *result.base))
    table.add_row(result.figure, "", "", *(f"{value:,.2f}" for value in result.base.values()))
    changes = {(row.key, row.value, row.case_id): row for row in result.effects}
    for number in result.numbers_by_effect():
        for value in number.values:
            cells = []
            for case in result.base:
                change = changes[number.key, value, case].change
                cells.append("cannot run" if change is None else f"{change:+.1%}")
            table.add_row(number.key, f"{number.value:,}", f"{value:,}", *cells)
    terminal().print(table)


MOST_NUMBERS = 14
_PANEL_WIDTH = 150
_SIDES = ("smaller", "greater")
_COLOURS = ("#0072B2", "#E69F00")


def tornado_svg(result: Sensitivity) -> str:
    """Return the picture as SVG, on white: it stands in pages that this project does not style."""
    shown = {
        number.key: number.value
        for number in result.numbers_by_effect()[:MOST_NUMBERS]
        if result.largest(number.key) > 0
    }
    rows = [
        {
            "case": row.case_id,
            "number": row.key,
            "tried": _SIDES[row.value > shown[row.key]],
            "change": row.change,
        }
        for row in result.effects
        if row.key in shown and row.change is not None
    ]
    data: Datasets = {}
    chart = (
        alt.Chart(vega.named_data(data, rows))
        .mark_bar(height=9)
        .encode(
            x=alt.X("change:Q", title="change", axis=alt.Axis(format="+%", tickCount=4)),
            y=alt.Y("number:N", title=None, sort=list(shown), axis=alt.Axis(labelLimit=220)),
            color=alt.Color(
                "tried:N",
                scale=alt.Scale(domain=_SIDES, range=_COLOURS),
                legend=vega.legend("the number is"),
            ),
            column=alt.Column("case:N", title=result.figure, sort=list(result.base)),
        )
        .properties(width=_PANEL_WIDTH, height=alt.Step(16))
    )
    spec = vega.configure(chart, data)
    spec["config"] = {**spec["config"], "background": "white"}
    return vl_convert.vegalite_to_svg(spec)


MEANINGS = {
    Origin.MEASURED: "somebody measured it",
    Origin.PRINTED: "a data sheet, a standard, a paper or another program says so",
    Origin.ASSUMPTION: "nobody says so",
    Origin.FITTED: "fitted to a figure that was measured or printed",
    Origin.NOT_USED: "it has no effect on this device",
}
COLUMNS = ("case", "key", "value", "tried", "change", "failure")


def write_page(result: Sensitivity, profile: Profile, folder: Path, command: str) -> list[Path]:
    """Write assumptions.md, .svg and .csv into the folder; return their paths."""
    page, picture, table = (folder / f"assumptions.{end}" for end in ("md", "svg", "csv"))
    with writable(folder, "name a folder with --out"):
        folder.mkdir(parents=True, exist_ok=True)
        picture.write_text(tornado_svg(result), encoding="utf-8")
        page.write_text(_page(result, profile, picture.name, command), encoding="utf-8")
        with table.open("w", newline="", encoding="utf-8") as stream:
            rows = csv.writer(stream)
            rows.writerow(COLUMNS)
            values = {number.key: number.value for number in result.numbers}
            for row in result.effects:
                change = "" if row.change is None else f"{row.change:.6f}"
                usual = values[row.key]
                rows.writerow((row.case_id, row.key, usual, row.value, change, row.failure))
    return [page, picture, table]


def _page(result: Sensitivity, profile: Profile, picture: str, command: str) -> str:
    parts = [
        f"# What hangs on the assumptions of {profile.name}",
        f"{profile.title}. Each number of the profile that may be wrong is set to a low and to a "
        f"high value, one number at a time; all others stay as they are, the fitted one too. The "
        f"table says how much {result.figure} changes by it. Made by",
        f"    {command}",
        _origins(result),
        f"![What each number moves]({picture})",
        _effects(result),
        "The phase of the kernel's timers alone moves a figure by up to 1 %. "
        + _unmoved_words(result),
        "## Where every number is from",
        _sources(result),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _origins(result: Sensitivity) -> str:
    rows = ["| numbers | what they rest on |", "|---|---|"]
    for word, meaning in MEANINGS.items():
        count = sum(number.origin is word for number in result.numbers)
        rows.append(f"| {count} | {word}: {meaning} |")
    return "\n".join(rows)


def _moves(result: Sensitivity, number: TriedNumber) -> bool:
    return result.largest(number.key) >= 0.01


def _effects(result: Sensitivity) -> str:
    cases = list(result.base)
    head = ["number", "tried", "range from", *cases]
    usual = ["as it is", "", "", *(f"{result.base[case]:,.2f}" for case in cases)]
    rows = [head, ["---"] * len(head), usual]
    changes = {(row.key, row.value, row.case_id): row for row in result.effects}
    for number in result.numbers_by_effect():
        if not _moves(result, number):
            continue
        for value in number.values:
            cells = [_change(changes[number.key, value, case]) for case in cases]
            rows.append([f"`{number.key}` = {number.value:,}", f"{value:,}", number.why, *cells])
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _change(effect: Effect) -> str:
    if effect.change is None:
        return "cannot run"
    return f"{effect.change:+.1%}" if abs(effect.change) >= 0.0005 else "0"


def _unmoved_words(result: Sensitivity) -> str:
    still = [
        f"`{number.key}`" for number in result.numbers_by_effect() if not _moves(result, number)
    ]
    untried = [
        f"`{number.key}`"
        for number in result.numbers
        if number.origin in (Origin.ASSUMPTION, Origin.FITTED) and not number.values
    ]
    words = f"These move no figure by more: {', '.join(still)}." if still else ""
    if untried:
        words += f" Not tried, as half and double of 0 are 0: {', '.join(untried)}."
    return words.strip()


def _sources(result: Sensitivity) -> str:
    rows = ["| number | value | from | source |", "|---|---|---|---|"]
    for number in result.numbers:
        source = number.source.replace("|", "\\|")
        rows.append(f"| `{number.key}` | {number.value:,} | {number.origin} | {source} |")
    return "\n".join(rows)
