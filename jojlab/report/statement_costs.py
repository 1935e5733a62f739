"""The statements of SQL that cost most: a table in the terminal, a section of the page, a line of
the short answer.
"""

from __future__ import annotations

from rich.console import Console
from rich.markup import escape

from jojlab.analysis.commit.statement_costs import StatementCost, StatementCosts
from jojlab.analysis.run.summary import RunSummary
from jojlab.foundation.printable import printable
from jojlab.report.shared import text
from jojlab.report.shared.console import new_table
from jojlab.report.shared.short_answer import duration, percent
from jojlab.report.shared.template import Section, render

_MOST_STATEMENTS = 10
_COLUMNS = ("in commits", "executions", "time", "share", "written", "flushes")
# What the other columns leave of a terminal of 100 columns; and of a line of the answer.
_TABLE_COLUMNS, _ANSWER_COLUMNS = 38, 40


def dearest_statement(costs: StatementCosts | None) -> str:
    """Return which statement took most of the commits' time; empty where none is known."""
    if costs is None or not costs.took_ns:
        return ""
    first = costs.statements[0]
    sql = _short(first.sql, _ANSWER_COLUMNS)
    words = f"{sql} took {percent(first.took_ns / costs.took_ns)} of the commits' time"
    if not costs.write_bytes:
        return f"{words}."
    return f"{words}, {percent(first.write_bytes / costs.write_bytes)} of their bytes."


def print_statement_costs(console: Console, costs: StatementCosts) -> None:
    """Print the statements that cost most, and what is missing."""
    table = new_table(("statement", "left"), *((title, "right") for title in _COLUMNS))
    for each in costs.statements[:_MOST_STATEMENTS]:
        table.add_row(escape(_short(each.sql, _TABLE_COLUMNS)), *_cells(each, costs))
    if costs.statements:
        console.print(table)
    for line in _notes(costs):
        console.print(line)


def statements_section(summary: RunSummary, run: str) -> Section | None:
    """Return the section of the statements that cost most; None where none was recorded."""
    found = [case.statements for case in summary.cases if case.statements]
    if not found:
        return None
    [costs] = found
    html = render(
        "report/statement_costs.html",
        columns=("statement", *_COLUMNS),
        rows=[(each.sql, *_cells(each, costs)) for each in costs.statements[:_MOST_STATEMENTS]],
        notes=_notes(costs),
        run=run,
    )
    return Section("statements", html)


def _cells(each: StatementCost, costs: StatementCosts) -> tuple[str, ...]:
    return (
        f"{each.commits:,}",
        f"{each.executions:,}",
        duration(each.took_ns),
        percent(each.took_ns / costs.took_ns if costs.took_ns else 0),
        text.size(each.write_bytes),
        text.digits(each.flushes, 3),
    )


def _notes(costs: StatementCosts) -> list[str]:
    """Return what the table does not have."""
    notes = []
    if further := costs.statements[_MOST_STATEMENTS:]:
        took_ns = sum(each.took_ns for each in further)
        notes.append(f"{len(further):,} further statements took {duration(took_ns)}")
    if costs.unmatched_commits:
        notes.append(
            f"{costs.unmatched_commits:,} of {costs.commits:,} commits are of no recorded statement"
        )
    return notes + [f"the SQL is incomplete: {printable(reason)}" for reason in costs.reasons]


def _short(sql: str, columns: int) -> str:
    sql = printable(sql)
    return sql if len(sql) <= columns else f"{sql[: columns - 1]}…"
