"""Whose bytes are they, and why were they written? Adds `file` and `cause` to requests or runs."""

from __future__ import annotations

from jojlab.analysis.rows.measured import CAPTURE
from jojlab.analysis.rows.name_families import family
from jojlab.foundation.lazy import ibis
from jojlab.trace.run_tables import RunTables


def with_owner(rows: ibis.Table, tables: RunTables) -> ibis.Table:
    """Add `file` (last known path, empty where no file is known) and `cause` to `rows`.

    Files of numbered names stand as one (name_families), such as SQLite's main.db-mj*.

    `rows` has file_id, operation, asker_call, asker_file_id, submitter_call and submitter_comm.
    `cause` is the call that waits and the file it was for, as in "fdatasync of test.db" or "O_DSYNC
    write of test.db". Where nobody waits it is "read" for a read, "writeback" for what the kernel's
    flusher threads (kworker) submit, and else the submitter and the call it was in, as in "unlink
    by sh" or "by jbd2/sda-8".
    """
    names = tables.files.select(*CAPTURE, "file_id", path=family(tables.files.path))
    columns = rows.columns
    rows = rows.left_join(names, [*CAPTURE, "file_id"]).select(*columns, file="path")
    askers = names.rename(asker_file_id="file_id", asker_path="path")
    rows = rows.left_join(askers, [*CAPTURE, "asker_file_id"]).select(
        *columns, "file", "asker_path"
    )
    rows = rows.mutate(file=rows.file.fill_null(""), cause=_cause(rows))
    return rows.drop("asker_path")


def _cause(rows: ibis.Table) -> ibis.Value:
    last = rows.asker_path.re_extract(r"([^/]+)/?$", 1)  # of the path
    name = (rows.asker_path == "/").ifelse("/", last)
    named = rows.asker_path.notnull() & (rows.asker_path != "")
    return ibis.cases(
        (rows.asker_call.notnull() & named, rows.asker_call + " of " + name),
        (rows.asker_call.notnull(), rows.asker_call),
        (rows.operation == "read", "read"),
        (rows.submitter_comm.startswith("kworker"), "writeback"),
        (rows.submitter_call.notnull(), rows.submitter_call + " by " + rows.submitter_comm),
        else_="by " + rows.submitter_comm,
    )
