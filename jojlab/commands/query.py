"""joj query: SQL over the tables of a run, or of a fleet."""

from __future__ import annotations

import csv
import sys
from collections.abc import Sequence
from pathlib import Path

from jojlab.analysis.figures.case_figures import capture_figures
from jojlab.command_line import options as common
from jojlab.command_line.group import argument, command, flag
from jojlab.fleet.store.objects import open_store
from jojlab.fleet.study.dataset import (
    FleetEngine,
    FleetFiles,
    LeftOutFile,
    answer_readable,
    fleet_files,
)
from jojlab.fleet.study.engines import DuckDbEngine
from jojlab.foundation.errors import FINE, INCOMPLETE, UseError
from jojlab.foundation.lazy import pa
from jojlab.foundation.printable import CsvStream, json_text
from jojlab.model.figures import FIGURES
from jojlab.report.shared.console import print_rows, terminal
from jojlab.trace.dataset import Dataset
from jojlab.trace.run_folder import RunFolder
from jojlab.trace.sql import query as run_query


@command()
@argument("run", metavar="RUN", help="Run folder; or the data of a fleet (DIR, s3://...).")
@argument("sql", help="One SELECT, in DuckDB's SQL.")
@common.json("Print a JSON list of objects.")
@flag("--csv", "Print CSV with a header.", name="as_csv")
def query(run: str, sql: str, as_json: bool, as_csv: bool) -> int:
    """Query the tables of a run with SQL.

    The tables are requests, page_runs, files, transactions, counters and manifest. They hold the
    rows of all captures, with case_id, seed and the fields of the case (filesystem, journal_mode
    ...) as further columns. A field with the name of a column becomes case_NAME. The table figures
    has one row per capture and a column for each figure of joj list figures, null where the capture
    has none. A query can read nothing else.

    Of a fleet, the tables are segments, commits, io_sums, file_sums and file_lives, with the
    columns device and day. A file that cannot be read is left out with its segment, and named on
    stderr: exit code 4.

    \b
    Examples:
      joj query RUN "SELECT block_type, sum(length_bytes) FROM page_runs GROUP BY ALL"
      joj query RUN "SELECT journal_mode, count(*) FROM requests
                     WHERE operation = 'flush' AND phase = 'commit' GROUP BY ALL" --csv
      joj query RUN "SELECT filesystem, median(throughput_tps) FROM figures GROUP BY ALL"
      joj query RUN "DESCRIBE requests"
      joj query /srv/fleet "SELECT device, day, count(*) FROM commits GROUP BY ALL"
    """
    if as_json and as_csv:
        raise UseError("--json and --csv exclude each other", "leave one out")
    left_out: Sequence[LeftOutFile] = ()
    if _is_fleet(run):
        answer, left_out = _query_fleet(run, sql)
    else:
        folder = RunFolder.open(Path(run))
        answer = run_query(folder, sql, {"figures": lambda: _figures(folder)})
    if as_json:
        _refuse_twins(answer.column_names)
        print(json_text(answer.to_pylist(), default=str))
    elif as_csv:
        writer = csv.writer(CsvStream(sys.stdout), lineterminator="\n")
        writer.writerow(answer.column_names)
        writer.writerows(_rows(answer))
    else:
        print_rows(terminal(), answer.column_names, _rows(answer))
    for each in left_out:
        print(f"left out: {each.file}: {each.why}", file=sys.stderr)
    return INCOMPLETE if left_out else FINE


def _is_fleet(run: str) -> bool:
    folder = Path(run)
    return "://" in run or ((folder / "segments").is_dir() and not (folder / "run.json").exists())


def _query_fleet(data: str, sql: str) -> tuple[pa.Table, Sequence[LeftOutFile]]:
    def ask(engine: FleetEngine, files: FleetFiles) -> tuple[pa.Table, Sequence[LeftOutFile]]:
        assert isinstance(engine, DuckDbEngine)
        return engine.query(sql), files.left_out

    return answer_readable(fleet_files(open_store(data)), DuckDbEngine, ask)


def _figures(run: RunFolder) -> dict[tuple[str, int], dict[str, int | float | None]]:
    """Return the figures of every capture, in the order of the run."""
    found = capture_figures(Dataset.from_runs(run))
    order = [(entry.case_id, capture.seed) for entry in run.cases for capture in entry.captures]
    return {key: {name: found[key].get(name) for name in FIGURES} for key in order if key in found}


def _rows(answer: pa.Table) -> list[list[object]]:
    """Return the rows, of columns that may have one name."""
    columns = [column.to_pylist() for column in answer.columns]
    return [list(values) for values in zip(*columns, strict=True)]


def _refuse_twins(names: list[str]) -> None:
    for name in names:
        if names.count(name) > 1:
            raise UseError(
                f"{names.count(name)} columns are named {name}, and an object has one of a name",
                f"name them apart: {name} AS other_name",
            )
