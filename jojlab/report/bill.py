"""The bill of a commit, and the statements of SQL that cost most, in words, tables and sections."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby, islice
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from jojlab.analysis.commit.bill import CLASSES, Bill, BillRow, Total, class_shares
from jojlab.analysis.commit.flash_life import CYCLES, years
from jojlab.analysis.commit.statement_costs import StatementCost, StatementCosts
from jojlab.analysis.figures.throughput import ApartTransactions
from jojlab.analysis.run.summary import CaseSummary, RunSummary
from jojlab.foundation.printable import plural, printable
from jojlab.model.figures import CAUSED
from jojlab.report import durability, hazards
from jojlab.report.overview import case_title, name_of
from jojlab.report.shared import text
from jojlab.report.shared.console import left, new_table, print_table, right
from jojlab.report.shared.short_answer import duration, percent
from jojlab.report.shared.template import Cell, NotedCell, Section, case_anchor, case_ids


def deferred_words(bill: Bill) -> str:
    """Say what of a commit's cost is left to be done later; empty where nothing is."""
    later = bill.total("deferred")
    if not later.requests:
        return ""
    size, whole = bill.per_commit(later.bytes), bill.per_commit(bill.total(*CAUSED).bytes)
    requests = text.count(bill.per_commit(later.requests), "request")
    flushes = text.count(bill.per_commit(later.flushes), "flush", "flushes")
    share = f" ({text.percent(size / whole)})" if whole else ""
    return (
        f"deferred of it, to checkpoints and to the sync at the end: "
        f"{requests}, including {flushes}, and {text.size(size)}{share}"
    )


def apart_words(apart: Iterable[ApartTransactions]) -> str:
    """Say what transactions there were beside commits; empty where there were none."""
    parts = [
        f"{text.integer(each.transactions, 'transaction')} "
        f"{apart_kind(each)} ({_latency_words(each)})"
        for each in apart
    ]
    return f"beside the commits: {'; '.join(parts)}" if parts else ""


def _latency_words(each: ApartTransactions) -> str:
    if each.transactions == 1:
        return text.duration(each.latency_ns_p50)
    return f"p50 {text.duration(each.latency_ns_p50)}, p99 {text.duration(each.latency_ns_p99)}"


def apart_kind(each: ApartTransactions) -> str:
    """Return what became of transactions that are no commits."""
    if each.kind == "rollback":
        return "was rolled back" if each.transactions == 1 else "were rolled back"
    return "changed nothing"


_MOST_LINES = 20


def program_sentence(program: Mapping[str, Any]) -> str:
    """Say how it ended, and which transactions were found; `program` is of the manifest."""
    name = printable(str(next(iter(program["command"]), "everybody")))
    if "exit_code" not in program:
        end = ""  # a live trace: its own exit code says it
    elif program["timed_out"]:
        end = " was killed at its time limit"
    elif program["signal"] is not None:
        end = f" was ended by signal {program['signal']}"
    else:
        end = f" ended with exit code {program['exit_code']}"
    names = {"commits": "commit{} of SQLite", "checkpoints": "checkpoint{}",
             "rollbacks": "rollback{}", "syncs": "sync{}"}  # fmt: skip
    if program["commits"]:
        names["syncs"] = "other sync{}"
    found = ((program[key], name) for key, name in names.items() if program[key])
    words = ", ".join(f"{count} {name.format('s' * (count != 1))}" for count, name in found)
    after = ""
    if program.get("bytes_after_last"):
        written = program["bytes_after_last"]
        after = f"; {plural(written, 'byte')} {'was' if written == 1 else 'were'} written"
        after += " after the last of them" if words else ""
    return f"{name}{end}: {words or 'no call that makes anything durable'}{after}"


def no_bill(
    programs: Mapping[int, Mapping[str, Any]], apart: Iterable[ApartTransactions] = ()
) -> str:
    """Say why a case has no bill, by its programs of each seed and what is no commit."""
    why = "; ".join(filter(None, (*map(program_sentence, programs.values()), apart_words(apart))))
    return "no bill: no commit was measured, so that there is none to divide by" + (
        f" ({why})" if why else ""
    )


def program_lines(case: CaseSummary) -> list[tuple[str, str]]:
    """Return a sentence on the program of each seed, and its output; a live trace has no seeds."""
    return [
        (f"{'' if case.live else f'seed {seed}: '}{program_sentence(ended)}", program_output(ended))
        for seed, ended in case.programs.items()
    ]


def program_output(program: Mapping[str, Any]) -> str:
    """Return the beginning of what it wrote; empty of a live trace, which does not read it."""
    if "output" not in program:
        return ""
    lines = str(program["output"]).splitlines()
    shown = [f"  | {printable(line)}" for line in lines[:_MOST_LINES]]
    if len(lines) > _MOST_LINES or program["output_bytes"] > len(program["output"].encode()):
        shown.append(f"  | ... ({program['output_bytes']} bytes in all)")
    return "\n".join(shown) or "  (it wrote nothing)"


# Reasons that are spelled out for one block type; the others are counted.
_SPELLED = 8


def reason_sentences(bill: Bill, part: str) -> Iterator[str]:
    """Yield one sentence for each block type that has reasons."""
    shares = [share for share in bill.reasons if share.part == part]
    for block_type, group in groupby(shares, lambda share: share.block_type):
        ours = list(group)
        spelled = [
            # A call forces a commit, writeback merely makes one.
            f"{text.kib(bill.per_commit(share.bytes))} KiB {'forced by ' * (' of ' in share.cause)}"
            f"{share.cause} ({share.changes})"
            for share in islice(ours, _SPELLED)
        ]
        if len(ours) > _SPELLED:
            spelled.append(plural(len(ours) - _SPELLED, "more reason"))
        whole = sum(row.bytes for row in bill.part(part) if row.block_type == block_type)
        yield f"{text.kib(bill.per_commit(whole))} KiB of {block_type}: {', '.join(spelled)}"


def journal_sentences(bill: Bill, part: str) -> Iterator[str]:
    """Yield what the journal's copies are of, and whom shared requests served."""
    homes = [share for share in bill.homes if share.part == part]
    if homes:
        spelled = [
            f"{text.kib(bill.per_commit(share.bytes))} KiB of {share.home}"
            for share in homes[:_SPELLED]
        ]
        if len(homes) > _SPELLED:
            spelled.append(plural(len(homes) - _SPELLED, "more place"))
        yield f"copies in the journal: {', '.join(spelled)}"
    askers = [share for share in bill.askers if share.part == part]
    for share in askers[:_SPELLED]:
        size = text.kib(bill.per_commit(share.bytes))
        yield f"{size} KiB of {share.block_type} served several calls at once: {share.askers}"
    if len(askers) > _SPELLED:
        yield f"{len(askers) - _SPELLED} more groups of calls were served at once"


# What is stated where nobody states a load.
COMMITS_A_DAY = 10_000
_SPELLED_OWNERS = 4


def life_sentences(bill: Bill) -> Iterator[str]:
    """Yield what was programmed and why, to whom it is charged, and how long the flash lasts."""
    life = bill.life
    if life is None or not life.programmed_bytes:
        return
    kinds = [
        f"{text.kib(bill.per_commit(size))} KiB {reason}"
        for reason, size in life.programmed.items()
        if size
    ]
    whole = bill.per_commit(life.programmed_bytes)
    sent = bill.per_commit(life.sent_bytes)
    erases = "nothing was erased (device.preload_percent ages a device)"
    if life.erases:
        erases = f"{text.digits(bill.per_commit(life.erases))} blocks erased"
    yield (
        f"on the flash, with warm-up and settling: {text.size(whole)} programmed for "
        f"{text.size(sent)} that were sent: "
        f"{', '.join(kinds)}; {erases}"
    )
    shares = []
    for each in life.charged[:_SPELLED_OWNERS]:
        owner = ", ".join(filter(None, (each.block_type, each.file, each.cause)))
        shares.append(f"{text.kib(each.bytes / bill.transactions)} KiB to {owner}")
    if len(life.charged) > _SPELLED_OWNERS:
        shares.append(f"{len(life.charged) - _SPELLED_OWNERS} more")
    yield f"charged to: {', '.join(shares)}"
    lasts = years(whole, COMMITS_A_DAY, life.flash_bytes)
    if not math.isinf(lasts):
        yield (
            f"life: {text.digits(lasts)} years at {COMMITS_A_DAY:,} commits a day, if the "
            f"{text.digits(life.flash_bytes / 1024**3)} GiB of the profile endure {CYCLES:,} "
            "erases and are worn evenly"
        )


# Rows of a part in the terminal; what installs software writes thousands of files.
_MOST_ROWS = 20


def print_bill(
    console: Console, bill: Bill, unit: str = "commit", *, is_whole: bool = False
) -> None:
    """Print what one commit costs, row by row, and its deferred I/O; `unit` is what a commit is
    called. Of a part with many rows it prints the dearest, and the sum of the others, unless
    `is_whole`.
    """
    total = bill.total(*CAUSED)
    console.print(
        f"[bold]one {unit}[/bold]: {text.count(bill.per_commit(total.requests), 'request')} "
        f"({text.digits(bill.per_commit(total.flushes))} of them flushes), "
        f"{text.kib(bill.per_commit(total.bytes))} KiB, "
        f"p50 {text.duration(bill.latency_ns['latency_ns_p50'] or 0)}"
        f"  [dim](over {plural(bill.transactions, unit)})[/dim]"
    )
    for sentence in filter(None, (deferred_words(bill), apart_words(bill.apart))):
        console.print(escape(sentence))
    words = left("block type", "file kind", "file", "cause")
    table = new_table(*words, *right("requests", "KiB", "share"))
    most_rows = len(bill.rows) if is_whole else _MOST_ROWS
    _add_rows(table, bill, "commit", total.bytes, most_rows)
    for part, title in text.LATER_PARTS.items():
        if bill.part(part):
            table.add_section()
            table.add_row(f"[bold]{title}[/bold]")
            _add_rows(table, bill, part, total.bytes if part in CAUSED else 0, most_rows)
    console.print(table)
    for part in ("commit", "deferred"):
        sentences = (*reason_sentences(bill, part), *journal_sentences(bill, part))
        for sentence in sentences:
            console.print(escape(sentence if part == "commit" else f"deferred: {sentence}"))
    for sentence in life_sentences(bill):
        console.print(escape(sentence))


def _add_rows(table: Table, bill: Bill, part: str, whole: int, most_rows: int) -> None:
    rows = bill.part(part)
    # A row in the place of one other would spare nothing.
    shown = rows if len(rows) <= most_rows + 1 else rows[:most_rows]
    for row in shown:
        owner = (
            _block_type_words(bill, row),
            _file_kind_words(row),
            *map(escape, (row.file, row.cause)),
        )
        share = text.percent(row.bytes / whole) if whole else ""
        table.add_row(*owner, *_amounts(bill, row), share)
    if further := rows[len(shown) :]:
        rest = Total.from_rows(further)
        share = text.percent(rest.bytes / whole) if whole else ""
        more = (f"{len(further):,} more rows", "", "joj show --figures", "")
        table.add_row(*more, *_amounts(bill, rest), share)
    amounts = (f"[bold]{each}[/bold]" for each in _amounts(bill, bill.total(part)))
    table.add_row("[bold]total[/bold]", "", "", "", *amounts)


def bill_section(summary: RunSummary, run: str) -> Section:
    """Return the section of what one commit costs by class, then every case's bill in full."""
    return Section.render(
        "bill",
        "bill",
        classes=_class_table(summary),
        bills=[_full_bill(case, case.bill, run) for case in summary.measured_cases if case.bill],
        bills_are_open=len(summary.measured_cases) == 1,
    )


def _class_table(summary: RunSummary) -> dict[str, Any]:
    shares = {case.case_id: class_shares(case.bill) for case in summary.measured_cases if case.bill}
    classes = [n for n in CLASSES if any(s.name == n for part in shares.values() for s in part)]
    rows: list[list[Cell]] = []
    for case in summary.measured_cases:
        found = {(share.part, share.name): share for share in shares.get(case.case_id, ())}
        cells: list[Cell] = []
        for name in classes:
            now, later = found.get(("commit", name)), found.get(("deferred", name))
            small = f"+ {_class_cell(name, later)}" if later else ""
            value = (now.requests if name == "flush" else now.bytes) if now else 0
            cells.append(NotedCell(_class_cell(name, now), small, value=value))
        rows.append([name_of(summary, case), *cells])
    heads = ["flushes" if name == "flush" else f"{name}, KiB" for name in classes]
    columns = [case_title(summary), *heads]
    return {"columns": columns, "rows": rows, "ids": case_ids(summary.measured_cases)}


def _class_cell(name: str, share: Any) -> str:
    if share is None:
        return "0"
    return text.digits(share.requests) if name == "flush" else text.kib(share.bytes)


def _full_bill(case: CaseSummary, bill: Bill, run: str) -> dict[str, Any]:
    total = bill.total(*CAUSED)
    unit = text.transaction_name([case]).lower()
    return {
        "id": case_anchor(case.case_id),
        "case": case.case_id,
        "label": case.label,
        "soft": f"{text.count(bill.per_commit(total.requests), 'request')}, "
        f"{text.kib(bill.per_commit(total.bytes))} KiB, over {plural(bill.transactions, unit)}",
        "risk": hazards.risk_mark(case),
        "durability": durability.verdict_sentence(case),
        "programs": program_lines(case),
        "told": [*filter(None, (deferred_words(bill), apart_words(bill.apart)))],
        "commit": _part(bill, "commit"),
        "later": [
            (title.capitalize(), _part(bill, part))
            for part, title in text.LATER_PARTS.items()
            if bill.part(part)
        ],
        "command": f"joj show {run} --case {shlex.quote(case.case_id)}",
    }


def _part(bill: Bill, part: str) -> dict[str, Any]:
    """Return one part of a bill: its rows, the total at the end, and why the filesystem wrote."""
    total = bill.total(part)
    whole = bill.total(*CAUSED) if part in CAUSED else total
    rows = [
        [
            *(
                _block_type_words(bill, row),
                "" if row.file_kind == "none" else _file_kind_words(row),
            ),
            *(row.file, row.cause, *_amounts(bill, row)),
            text.percent(row.bytes / whole.bytes) if whole.bytes and row.bytes else "",
            f"{row.bytes:,}",
        ]
        for row in bill.part(part)
    ]
    rows.append(["total", "", "", "", *_amounts(bill, total), "", f"{total.bytes:,}"])
    life = life_sentences(bill) if part == "commit" else ()
    sentences = (*reason_sentences(bill, part), *journal_sentences(bill, part), *life)
    return {"rows": rows, "reasons": sentences}


def _amounts(bill: Bill, part: BillRow | Total) -> tuple[str, str]:
    """Return requests and KiB of one commit."""
    requests, size = bill.per_commit(part.requests), bill.per_commit(part.bytes)
    return text.digits(requests), text.kib(size)


def _block_type_words(bill: Bill, row: BillRow) -> str:
    if row.operation in ("write", "flush"):
        return row.block_type
    named = f" of {text.kib(bill.per_commit(row.dataless_bytes))} KiB" if row.dataless_bytes else ""
    return f"{row.block_type} ({row.operation}{named})"


def _file_kind_words(row: BillRow) -> str:
    return f"{row.file_kind}, another program's" if row.is_foreign else row.file_kind


_MOST_STATEMENTS = 10
_COST_COLUMNS = ("in commits", "executions", "time", "share", "written", "flushes")
# What the other columns leave of a terminal of 100 columns; and of a line of the answer.
_TABLE_COLUMNS, _ANSWER_COLUMNS = 38, 40


def dearest_statement(costs: StatementCosts | None) -> str:
    """Return which statement took most of the commits' time; empty where none is known."""
    if costs is None or not costs.took_ns:
        return ""
    first = costs.statements[0]
    sql = _short(first.sql, _ANSWER_COLUMNS)
    if sql.endswith("…"):  # a word that is cut reads as another
        sql = f"{sql.rpartition(' ')[0] or sql[:-1]} …"
    words = f"{sql} took {percent(first.took_ns / costs.took_ns)} of the commits' time"
    if not costs.write_bytes:
        return f"{words}."
    return f"{words}, {percent(first.write_bytes / costs.write_bytes)} of their bytes."


def print_statement_costs(console: Console, costs: StatementCosts) -> None:
    """Print the statements that cost most, and what is missing."""
    if costs.statements:
        rows = (
            (escape(_short(each.sql, _TABLE_COLUMNS)), *_cost_cells(each, costs))
            for each in costs.statements[:_MOST_STATEMENTS]
        )
        print_table(console, [*left("statement"), *right(*_COST_COLUMNS)], rows)
    for line in _cost_notes(costs):
        console.print(line)


def statements_section(summary: RunSummary, run: str) -> Section | None:
    """Return the section of the statements that cost most; None where none was recorded."""
    found = [case.statements for case in summary.cases if case.statements]
    if not found:
        return None
    [costs] = found
    return Section.render(
        "statements",
        "statement_costs",
        columns=("statement", *_COST_COLUMNS),
        rows=[
            (each.sql, *_cost_cells(each, costs)) for each in costs.statements[:_MOST_STATEMENTS]
        ],
        notes=_cost_notes(costs),
        run=run,
    )


def _cost_cells(each: StatementCost, costs: StatementCosts) -> tuple[str, ...]:
    return (
        f"{each.commits:,}",
        f"{each.executions:,}",
        duration(each.took_ns),
        percent(each.took_ns / costs.took_ns if costs.took_ns else 0),
        text.size(each.write_bytes),
        text.digits(each.flushes, 3),
    )


def _cost_notes(costs: StatementCosts) -> list[str]:
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
