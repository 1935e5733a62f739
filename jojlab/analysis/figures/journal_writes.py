"""How large is the first write of a commit into the filesystem's journal?

Jeong et al. (USENIX ATC 2013, section 4.3) tell by it what a journal mode of SQLite makes the
filesystem journal: the metadata that the rollback journal's sync has to commit.
"""

from __future__ import annotations

from jojlab.analysis.rows.measured import CAPTURE, commits
from jojlab.foundation.lazy import ibis
from jojlab.trace.run_tables import RunTables


def first_journal_writes(tables: RunTables) -> ibis.Table:
    """Return `median_bytes` of each capture, over the commits that write into the journal at all.

    A request of several owners (NILFS2 has them) is no write into the journal.
    """
    requests = tables.requests
    writes = requests.filter(requests.operation == "write", requests.block_type == "fs-journal")
    order = ibis.row_number().over(
        group_by=[*CAPTURE, "transaction_id"], order_by=[writes.issue_ns, writes.request_id]
    )
    writes = writes.mutate(place=order)
    first = writes.filter(writes.place == 0)
    measured = commits(tables).select(*CAPTURE, "transaction_id")
    first = first.inner_join(measured, [*CAPTURE, "transaction_id"])
    return first.group_by(CAPTURE).agg(median_bytes=first.length_bytes.median())
