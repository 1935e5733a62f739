"""Which files are one in a bill? Those whose names are numbered, one for each transaction.

SQLite's super-journals are main.db-mj* here, and the files of the workload file-metadata file-*
and renamed-*: what one transaction costs is asked, not what the seventeenth did.
"""

from __future__ import annotations

from jojlab.foundation.lazy import ibis

_FAMILIES = (
    # vdbeCommit() in SQLite's src/vdbeaux.c: "%s-mj%06X9%02X".
    (r"-mj[0-9A-F]{6}9[0-9A-F]{2}\b", "-mj*"),
    # agent/src/workload/file_metadata/names_left.rs.
    (r"\b(file|renamed)-[0-9]{7}\b", r"\1-*"),
)


def family(names: ibis.StringValue) -> ibis.StringValue:
    """Return `names`, of files or of what has such names in it, with * for their numbers."""
    for pattern, common in _FAMILIES:
        names = names.re_replace(pattern, common)
    return names
