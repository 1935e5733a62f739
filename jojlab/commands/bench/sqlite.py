"""joj bench sqlite: SQLite's transactions in a directory of this machine."""

from __future__ import annotations

from typing import Any

import typer

from jojlab.command_line.bench import parameters, run_fields
from jojlab.command_line.field_options import set_signature
from jojlab.experiment.fields import SQLITE
from jojlab.live.fields import live_fields

EXAMPLES = """Run SQLite transactions on this machine's disk, in real time.

The databases are in a new directory below DIR, which is removed at the end, also after an error. It
needs no root and uses no tracer; for the I/O of a commit, run joj bill with the same fields.

\b
Examples:
  joj bench sqlite .
  joj bench sqlite /mnt/card --journal-mode wal --transactions 1000 --repeat 5
  joj bench sqlite /mnt/card --workload sqlite-update --databases 3 --out runs/card
  joj bench sqlite . --synchronous normal --json | jq '.cases[].figures.latency_ns_p99'

Exit code 2 for a usage error, 3 if the machine fails, such as a full or failing disk, 4
if a run is incomplete.
"""
_FIELDS = live_fields(SQLITE)


def sqlite(**given: Any) -> None:
    """See EXAMPLES, which `--help` shows; the options are made in jojlab/command_line/bench.py."""
    raise typer.Exit(run_fields("sqlite", _FIELDS, given))


set_signature(sqlite, EXAMPLES, parameters(_FIELDS))
