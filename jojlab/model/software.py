"""Software of another time, as one field: what it makes of the fields of a case.

`software = "2012"` is what USENIX ATC 2013 measured with on the Galaxy S3; docs/galaxy-s3.md has
the source of each part. A field that a case names keeps its value, but for those that meant
something else then.
"""

from __future__ import annotations

from collections.abc import Mapping

from jojlab.model.field import Changes, Field, Value
from jojlab.model.filesystems import filesystem_of
from jojlab.model.workloads import workload_of
from jojlab.model.workloads.sqlite import ROLLBACK_MODES, ROWS, SQLITE, UPDATE

TODAY, STUDY = "today", "2012"

SOFTWARE = Field(
    "software",
    "when SQLite, kernel and benchmark are of. 2012: as ATC'13 had them on the Galaxy S3. It sets "
    "mount_options, mkfs_options, dropped_sync, transactions and warmup_transactions where a case "
    "does not name them; emmc-galaxy-s3 is emmc-galaxy-s3-no-cache, an UPDATE makes no rollback "
    "journal (journal_mode = off), and fdatasync means what it did on F2FS and NILFS2 "
    "(docs/galaxy-s3.md)",
    None,
    (TODAY, STUDY),
    changes=Changes.TARGET,
    names_itself=True,
)

# Until 2014 SQLite did not sync a journal that journal mode TRUNCATE truncated. One that a
# super-journal makes PERSIST truncate was synced then too (zeroJournalHdr() in src/pager.c).
_TRUNCATE: Mapping[str, Value] = {"dropped_sync": "truncated-journal"}
# Mobibench makes ten transactions in a new file, and measures from the first.
_COUNTS: Mapping[str, Value] = {"transactions": 10, "warmup_transactions": 0}
# The fields that it sets where a case does not name them.
SET_FIELDS = (*_TRUNCATE, *_COUNTS, "mount_options", "mkfs_options")
# The phone's kernel never switches on the cache of its eMMC.
_DEVICES: Mapping[str, str] = {"emmc-galaxy-s3": "emmc-galaxy-s3-no-cache"}


def with_software(settings: Mapping[str, Value]) -> dict[str, Value]:
    """Return the fields of a case with what its software sets, and makes of those that it names.

    `settings` name the workload, the filesystem and the device.
    """
    named = dict(settings)
    if named.get(SOFTWARE.name) != STUDY:
        return named
    workload, filesystem = workload_of(named), filesystem_of(named)
    unnamed = {**filesystem.study_fields}
    for owner in ("device", "journal_device"):
        if owner in named:
            named[owner] = _DEVICES.get(str(named[owner]), named[owner])
    if workload.name == UPDATE and named.get("journal_mode", "truncate") in ROLLBACK_MODES:
        named["journal_mode"] = "off"
    if workload.has(SQLITE):
        if named.get("journal_mode", "truncate") == "truncate":
            unnamed |= _TRUNCATE
        if named.get("sync_call") == "fdatasync":
            named["sync_call"] = filesystem.study_fdatasync
    if workload.has(ROWS) and not named.get("duration_ms"):
        unnamed |= _COUNTS
    return unnamed | named
