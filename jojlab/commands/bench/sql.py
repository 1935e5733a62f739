"""joj bench sql: SQL scripts of one's own in a directory of this machine."""

from __future__ import annotations

from typing import Any

import typer

from jojlab.command_line.bench import parameters, run_fields
from jojlab.command_line.field_options import set_signature
from jojlab.experiment.fields import SQL
from jojlab.live.fields import live_fields

EXAMPLES = """Run SQL scripts of your own on a disk of this machine.

FOLDER holds schema.sql, setup.sql, and transaction.sql or a transaction-NAME.sql for each
connection (docs/own-sql.md). Workload sql plays the scripts round and round, with values drawn from
the seed; sql-recorded plays each once. The databases are in a new directory below DIR, which is
removed at the end, also after an error.

\b
Examples:
  joj bench sql . --scripts experiments/own-app/app
  joj bench sql /mnt/card --scripts my-app --journal-mode wal --transactions 1000 --repeat 5
  joj bench sql /mnt/card --workload sql-recorded --scripts recorded --think-time recorded
  joj bench sql . --scripts my-app --json | jq '.cases[].figures.latency_ns_p99'

Exit code 2 for a usage error, such as SQL that SQLite does not understand; 3 if the machine fails;
4 if a run is incomplete, such as by a statement that failed.
"""
_FIELDS = live_fields(SQL)


def sql(**given: Any) -> None:
    """See EXAMPLES, which `--help` shows; the options are made in jojlab/command_line/bench.py."""
    raise typer.Exit(run_fields("sql", _FIELDS, given))


set_signature(sql, EXAMPLES, parameters(_FIELDS))
