"""joj bench file: reads, writes and metadata operations in a directory of this machine."""

from __future__ import annotations

from typing import Any

import typer

from jojlab.command_line.bench import parameters, run_fields
from jojlab.command_line.field_options import set_signature
from jojlab.experiment.fields import FILES
from jojlab.live.fields import live_fields

EXAMPLES = """Run file operations on this machine's disk, in real time.

The files are in a new directory below DIR, which is removed at the end, also after an error. One
operation with its sync is one transaction. It needs no root and uses no tracer.

\b
Examples:
  joj bench file .
  joj bench file /mnt/card --sync-mode o_dsync --record-bytes 16384 --repeat 5
  joj bench file /mnt/card --workload file-read --read-mode o_direct --file-bytes 1000000000
  joj bench file /mnt/card --workload file-metadata --metadata-operation rename --sync-directory on

Exit code 2 for a usage error, 3 if the machine fails, such as a full or failing disk, 4
if a run is incomplete.
"""
_FIELDS = live_fields(FILES)


def file(**given: Any) -> None:
    """See EXAMPLES, which `--help` shows; the options are made in jojlab/command_line/bench.py."""
    raise typer.Exit(run_fields("file", _FIELDS, given))


set_signature(file, EXAMPLES, parameters(_FIELDS))
