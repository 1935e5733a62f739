"""What did the statements of SQL cost that made the commits of a live trace?

Joins the commits that the trace found in the program's calls with the statements that were recorded
beside it (RUN/sql, a recording of joj record --sql).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from jojlab.analysis.rows.ask import ask, text_of
from jojlab.recording.folder import Recording
from jojlab.recording.sql_text import tokens
from jojlab.trace.dataset import Dataset
from jojlab.trace.run_folder import SQL_FOLDER, RunFolder


@dataclass(frozen=True)
class StatementCost:
    """The statements of one text but for its values, and their share of the commits that they were
    in: a commit counts for the writing statements of its transaction in equal parts.
    """

    sql: str
    executions: int
    commits: int
    took_ns: float
    write_bytes: float
    flushes: float


@dataclass(frozen=True)
class StatementCosts:
    """The costs of all statements, dearest first; `unmatched_commits` of the `commits` that were
    traced were in no recorded statement. `reasons` say why the recording is incomplete.
    """

    commits: int
    unmatched_commits: int
    statements: tuple[StatementCost, ...]
    reasons: tuple[str, ...]

    @property
    def took_ns(self) -> float:
        """Return the time of all commits that are of a statement."""
        return sum(each.took_ns for each in self.statements)

    @property
    def write_bytes(self) -> float:
        """Return the bytes that they sent."""
        return sum(each.write_bytes for each in self.statements)


def statement_costs(run: RunFolder) -> StatementCosts | None:
    """Return those of a live trace; None where its program's statements were not recorded."""
    folder = run.path / SQL_FOLDER
    if not folder.exists():
        return None
    recording = Recording.open(folder)
    data = Dataset.from_runs(run)
    files = sorted(str(path) for path in (folder / "statements").glob("*.parquet"))
    [counted] = data.rows("SELECT count(*) AS commits FROM transactions WHERE kind = 'commit'")
    rows: list[dict[str, Any]] = []
    matched = 0
    if files:
        data.engine.keep(
            "recorded_statements", "SELECT * FROM read_parquet($files)", {"files": files}
        )
        data.engine.keep("ending_statements", text_of("commit/statement_ends"))
        rows = ask(data, "commit/statement_costs")
        [found] = data.rows("SELECT count(*) AS commits FROM ending_statements")
        matched = int(found["commits"])
    commits = int(counted["commits"])
    reasons = tuple(recording.incomplete_reasons)
    return StatementCosts(commits, commits - matched, _merge_texts(rows), reasons)


def _merge_texts(rows: Iterable[Mapping[str, Any]]) -> tuple[StatementCost, ...]:
    """Return the costs of texts that differ in their values alone together, dearest first."""
    sums: dict[str, StatementCost] = {}
    for row in rows:
        sql = without_values(row["sql"])
        known = sums.get(sql, StatementCost(sql, 0, 0, 0, 0, 0))
        sums[sql] = StatementCost(
            sql,
            known.executions + row["executions"],
            known.commits + row["commits"],
            known.took_ns + row["took_ns"],
            known.write_bytes + row["write_bytes"],
            known.flushes + row["flushes"],
        )
    return tuple(sorted(sums.values(), key=lambda each: (-each.took_ns, each.sql)))


def without_values(sql: str) -> str:
    """Return a statement with ? for each text and number, in one line and without comments."""
    parts = [
        "?" if token.text[0] == "'" or token.text[0].isdigit() else token.text
        for token in tokens(sql)
    ]
    text = re.sub(r" ([(),.;])", r"\1", " ".join(parts))
    return re.sub(r"\?(\.\?)+", "?", re.sub(r"([(.]) ", r"\1", text)).rstrip("; ")
