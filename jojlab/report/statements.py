"""Published statements and tables beside our figures: their words, their print on a terminal, and
the lines of a short answer that say how far a run reproduces what papers printed.

Gets statements that are evaluated; computes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from rich.console import Console
from rich.markup import escape

from jojlab.analysis.run.summary import RunSummary
from jojlab.analysis.study.parts import Part, Verdicts, statement_rows, verdicts
from jojlab.analysis.study.published import Point, Statement
from jojlab.analysis.study.tables import ComparedTable, TableCell
from jojlab.model.figures import FIGURES
from jojlab.report import hazards
from jojlab.report.shared import text
from jojlab.report.shared.console import left, new_table, print_table, right
from jojlab.report.shared.short_answer import (
    RankedLine,
    count,
    number,
    percent,
    range_words,
    sentence,
)

ABSENT = "–"

Ends = tuple[float, float]


def published_value(result: Statement) -> str:
    """Return what was printed, as "39 inserts/s", "+17 %" or "above 3 times"."""
    if result.kind == "missing":
        return "not available"
    if result.value is None:
        return {"above": "more", "below": "less"}[result.holds]
    if result.unit == "%" and result.kind != "value":
        number = f"{result.value:+g} %"
    else:
        number = f"{text.digits(result.value)} {result.unit}".strip()
    return f"{result.holds} {number}".strip()


def measured_value(result: Statement, point: Point) -> str:
    """Return our value in the statement's unit; a dash where none was measured."""
    if point.measured is None:
        return ABSENT
    if point.other_change is not None:
        return f"{_change(result, point.measured)}, the other {_change(result, point.other_change)}"
    if result.kind in ("value", "missing") and not point.against:
        return text.figure(result.figure, point.measured)
    return _change(result, point.measured)


def error(point: Point) -> str:
    """Return our error, as "+12.0 %"."""
    return ABSENT if point.error is None else f"{point.error * 100:+.1f} %"


def case_words(point: Point) -> str:
    """Return which cases a point is about."""
    return f"{point.label} against {point.against}" if point.against else point.label


def statement_verdict(result: Statement) -> str:
    """Return the verdict, with the number of cases where they are several."""
    held, known = result.bound_counts
    words = result.verdict
    if result.kind == "bound" and known > 1:
        words += f", {held} of {known}"
    return words


def title(result: Statement) -> str:
    """Return what the statement says, or names."""
    figure = FIGURES.get(result.figure)
    return result.says or (figure.meaning if figure else result.figure)


def _change(result: Statement, value: float) -> str:
    return f"{text.digits(value)} times" if result.unit == "times" else f"{value:+.1f} %"


def percent_change(value: float | None) -> str:
    """Return a change in per cent, as the papers print it."""
    return "–" if value is None else f"{value:+.2f}"


def measured_cell(result: TableCell) -> str:
    """Return ours in per cent, and whether it is none; a dash where it was not measured."""
    if result.measured_change is None:
        return "–"
    return (
        f"none ({result.measured_change:+.3f})"
        if result.is_none
        else f"{result.measured_change:+.3f}"
    )


def table_verdict(table: ComparedTable) -> str:
    """Return how many changes there are, and how far the seeds of one case lie apart."""
    if not table.measured_cells:
        return "Not measured."
    cells, near = len(table.measured_cells), table.near_cells
    if table.seeds == 1:
        return (
            "Ours has one seed, so that nothing tells a change from noise: take more. The largest "
            f"change of {cells} cells is {table.largest_percent:.3f} %; {near} are within one "
            "point of what was printed."
        )
    return (
        "Ours differs from the case that it is compared with beyond the "
        f"{table.seeds} seeds in {table.changed_cells} of {cells} cells; the largest change is "
        f"{table.largest_percent:.3f} %, and the seeds of one case lie up to "
        f"{table.spread_percent:.3f} % apart. {near} cells are within one point of what was "
        "printed. none: the seeds of both cases overlap, so that other seeds may give another sign."
    )


_STYLES = {"reproduced": "green", "not reproduced": "red"}


def software_columns(part: Part) -> list[str]:
    """Return the titles of a part's software, where its statements are held against several."""
    names = list(dict.fromkeys(each.software for each in part.statements))
    return [f"software of {name}" for name in names] if len(names) > 1 else []


def result_words(result: Statement) -> str:
    """Return what became of a statement with one software: a verdict, or ours and its error."""
    if result.kind == "bound" or result.verdict == "not measured":
        return statement_verdict(result)
    told = [
        f"{measured_value(result, point)} ({error(point)})"
        if point.error is not None
        else measured_value(result, point)
        for point in result.points
    ]
    return "; ".join(dict.fromkeys(told))


def reasons(row: Iterable[Statement]) -> str:
    """Return why ours is another, with each software that it is another with."""
    told: dict[str, list[str]] = {}
    for each in row:
        if each.reason:
            told.setdefault(each.reason, []).append(each.software)
    return " ".join(f"{' and '.join(names)}: {reason}" for reason, names in told.items())


def print_statements(console: Console, part: Part) -> None:
    """Print values and changes line by line, then the bounds, and what explains a miss; with each
    software beside the other where the cases name it.
    """
    if columns := software_columns(part):
        _print_columns(console, part, columns)
        return
    values = [result for result in part.statements if result.kind != "bound"]
    bounds = [result for result in part.statements if result.kind == "bound"]
    if values:
        titles = (*left("published", "case"), *right("theirs", "ours", "error"), *left(""))
        print_table(console, titles, (row for each in values for row in _value_rows(each)))
    if bounds:
        print_table(console, left("published", "verdict", "where not"), map(_bound_row, bounds))
    for result in part.statements:
        if result.reason:
            console.print(f"[dim]{escape(title(result))}: {escape(result.reason)}[/dim]")


def _print_columns(console: Console, part: Part, columns: list[str]) -> None:
    rows = statement_rows(part)
    cells = (
        (
            escape(title(row[0])),
            escape(published_value(row[0]) + (" (anchor)" if row[0].anchor else "")),
            *map(_style, row),
        )
        for row in rows
    )
    print_table(console, left("published", "theirs", *columns), cells)
    for row in rows:
        if told := reasons(row):
            console.print(f"[dim]{escape(title(row[0]))}: {escape(told)}[/dim]")


def _style(result: Statement) -> str:
    style = _STYLES.get(result.verdict)
    words = escape(result_words(result))
    return f"[{style}]{words}[/{style}]" if style else words


def failures(result: Statement) -> str:
    """Return where a bound does not hold, and by how much; empty where nowhere."""
    failed = (point for point in result.points if point.holds is False)
    return "; ".join(f"{case_words(point)}: {measured_value(result, point)}" for point in failed)


def _value_rows(result: Statement) -> Iterator[tuple[str, ...]]:
    mark = "anchor" if result.anchor else "" if result.status == "stated" else result.status
    for point in result.points:
        cells = (title(result), case_words(point), published_value(result))
        yield (
            *map(escape, (*cells, measured_value(result, point))),
            error(point),
            f"[dim]{mark}[/dim]" if mark else "",
        )


def _bound_row(result: Statement) -> tuple[str, ...]:
    style = _STYLES.get(result.verdict, "yellow")
    verdict = f"[{style}]{escape(statement_verdict(result))}[/{style}]"
    return escape(title(result)), verdict, escape(failures(result))


def print_tables(console: Console, tables: Iterable[ComparedTable]) -> None:
    """Print the measured rows of each table, the means of its groups, and what they amount to."""
    for result in tables:
        if not result.measured_cells:
            console.print(f"[dim]{escape(f'{result.title} ({result.source}): not measured')}[/dim]")
            continue
        both = (f"{name}, {whose}" for name in result.columns for whose in ("theirs", "ours"))
        table = new_table(*left(result.title, ""), *right(*both))
        for group in result.groups:
            measured = [
                row for row in group.rows if any(c.measured_change is not None for c in row.cells)
            ]
            for place, row in enumerate(measured):
                cells = [
                    (percent_change(cell.published_change), measured_cell(cell))
                    for cell in row.cells
                ]
                table.add_row(
                    escape(f"{group.name}: {group.note}" if place == 0 else ""),
                    escape(row.name),
                    *(text for both in cells for text in both),
                )
            if len(measured) < len(group.rows):
                continue  # their mean is of all rows
            means = zip(group.published_change, group.measured_change, strict=True)
            table.add_row(
                "", "mean", *(percent_change(value) for both in means for value in both),
                style="bold",
            )  # fmt: skip
        console.print(table)
        console.print(f"[dim]{escape(f'Theirs: {result.source}. {table_verdict(result)}')}[/dim]")


def study_lines(summary: RunSummary) -> list[RankedLine]:
    """Return the answer of a run of several experiments: how far the papers were reproduced, with
    each software; and which of their advice holds with the last.
    """
    columns = verdicts(summary.parts)
    lines = [(0, line) for each in columns for line in _verdict_lines(each)]
    anchors = {found.entry for each in columns for found, _ in each.anchors}
    fitted = (
        f"The device is fitted to {count(len(anchors), 'number')}, which count as no prediction."
    )
    if len(columns) == 1:
        lines.append((0, fitted if anchors else ""))
    elif columns:
        lines += _advice_lines(summary, columns)
    return lines


def published_line(summary: RunSummary) -> str:
    """Return how far one experiment's run reproduces what was printed; empty where nothing was."""
    told = [line for each in verdicts(summary.parts) for line in _verdict_lines(each) if line]
    tables = [table for part in summary.parts for table in part.tables if table.measured_cells]
    if cells := sum(len(table.measured_cells) for table in tables):
        near = sum(table.near_cells for table in tables)
        told.append(f"{near} of {count(cells, 'printed change')} are within one point of ours.")
    return "; ".join(line.removesuffix(".") for line in told) + "." if told else ""


def _verdict_lines(result: Verdicts) -> Iterator[str]:
    whole, error = result.whole, result.whole.median_error
    orderings = f"{whole.reproduced} of {count(whole.orderings, 'published ordering')} reproduced"
    predictions = count(len(whole.errors), "prediction")
    if result.software:
        told = [orderings] if whole.orderings else []
        told += [f"{predictions}, median error {percent(error)}"] if error is not None else []
        yield sentence(told, f"Software of {result.software}: ")
        return
    if whole.orderings:
        yield f"{orderings}."
    if error is not None:
        lacking = f"; {result.missing} not available" if result.missing else ""
        numbers = count(len(whole.errors), "published number")
        close = f"{result.close} of {numbers} within 10 %"
        yield f"{close}, median error {percent(error)}{lacking}."


def _advice_lines(summary: RunSummary, columns: Sequence[Verdicts]) -> Iterator[RankedLine]:
    """Yield what the advice of the papers gains with the last software, where it is faster in
    every case, and gained with the first; and which is not, or risks what its base does not.
    """
    then, now = columns[0].software, columns[-1].software
    gains: dict[str, dict[str, Ends]] = {}
    for part in summary.parts:
        for each in part.statements:
            if each.advice and (ends := each.ratio_ends):
                gains.setdefault(each.advice, {})[each.software] = ends
    known = {name: found for name, found in gains.items() if now in found}
    faster = [name for name, found in known.items() if round(found[now][0], 2) > 1]
    slower = [name for name in known if name not in faster]
    yield 0, _gain_words(f"Times as fast {now}: ", {name: known[name][now] for name in faster})
    earlier = {name: found[then] for name, found in known.items() if then in found}
    yield 0, _gain_words(f"In {then}: ", earlier)
    doubts = [f"not faster in every case {now}: {', '.join(slower)}"] if slower else []
    doubts += [f"dangerous: {name}: {words}" for name, words in _risks(summary, now).items()]
    told = sentence(doubts)
    yield 0, told[:1].upper() + told[1:]


def _gain_words(begin: str, gains: Mapping[str, Ends]) -> str:
    told = (f"{name} {range_words(ends, number)}" for name, ends in gains.items())
    return sentence(told, begin, ", ")


def _risks(summary: RunSummary, now: str) -> dict[str, str]:
    """Return what an advice puts at risk by the manuals that its base does not, with software
    `now`.
    """
    cases = {
        (part.name, label): case
        for part in summary.parts
        for case in summary.cases
        if (label := part.labels.get(case.case_id))
    }
    risks: dict[str, str] = {}
    for part in summary.parts:
        for each in part.statements:
            for point in each.points if each.advice and each.software == now else ():
                if point.measured is None:
                    continue
                case, base = (cases[part.name, name] for name in (point.label, point.against))
                if added := set(case.hazards) - set(base.hazards):
                    risks.setdefault(each.advice, hazards.risk_words(tuple(added)))
    return risks
