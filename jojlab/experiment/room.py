"""How much a case writes, and whether that fits on the device and in the memory of its guest.

SQLite's part is computed from its file format (sqlite.org/fileformat2.html, sections 1.6 and 2.1);
interior pages, a few per cent, are left out.
"""

from __future__ import annotations

from collections.abc import Mapping

from jojlab.experiment.fields import PASSES, RECORDS, SQLITE, Value
from jojlab.experiment.filesystems import MIB

# The smallest device each mkfs accepts (e2fsprogs 1.47, xfsprogs 6.1, btrfs-progs 6.2,
# f2fs-tools 1.15, nilfs-tools 2.2 as tried), in bytes.
SMALLEST_DEVICE_BYTES = {
    "ext4": 8 * MIB,
    "xfs": 300 * MIB,
    "btrfs": 109 * MIB,
    "nilfs2": 128 * MIB,
    "f2fs": 64 * MIB,
    # With UBI's reserve, and the least that the kernel makes a filesystem on.
    "ubifs": 16 * MIB,
}

# Those that write anew what is overwritten, and leave the old for later.
_OUT_OF_PLACE = ("btrfs", "nilfs2", "f2fs", "ubifs")
# Journals, logs and tables of a filesystem.
_FILESYSTEM_BYTES = 128 * MIB
# Rows that a database begins with go into its WAL in portions of this many bytes of values
# (agent/src/workload/sqlite/mod.rs).
_WAL_PORTION_BYTES = 64 * MIB


def table_bytes(rows: int, value_bytes: int, page_bytes: int) -> int:
    """Return the bytes of a table's leaf and overflow pages."""
    # A row is its header (its own length, the types of key and text) and the text.
    payload = 2 + _varint_bytes(13 + 2 * value_bytes) + value_bytes
    local, overflow_pages, pointer_bytes = payload, 0, 0
    if payload > page_bytes - 35:
        least = (page_bytes - 12) * 32 // 255 - 23
        local = least + (payload - least) % (page_bytes - 4)
        local = local if local <= page_bytes - 35 else least
        overflow_pages, pointer_bytes = -(-(payload - local) // (page_bytes - 4)), 4
    cell = 2 + _varint_bytes(payload) + _varint_bytes(rows) + local + pointer_bytes
    in_a_page = max(1, (page_bytes - 8) // cell)
    return (-(-rows // in_a_page) + rows * overflow_pages) * page_bytes


def _varint_bytes(number: int) -> int:
    return max(1, -(-number.bit_length() // 7))


def files_bytes(settings: Mapping[str, Value]) -> int:
    """Return what the workload's files take in the end, as far as it is known before.

    0 where it is not: of a replay, and of transactions that go on for a time.
    """
    if settings["workload"] in RECORDS:
        return int(settings["file_bytes"]) * int(settings["threads"])
    if settings["workload"] in PASSES:
        return int(settings["file_bytes"])
    if settings["workload"] not in SQLITE:
        return 0
    return sum(_databases_bytes(settings, int(settings["initial_rows"])))


def _databases_bytes(settings: Mapping[str, Value], initial_rows: int) -> tuple[int, int]:
    """Return the bytes of all databases, and of their WALs when the databases are made."""
    connections, tables = int(settings["connections"]), int(settings["tables"])
    shared = settings["sharing"] == "shared"
    transactions = int(settings["transactions"]) + int(settings["warmup_transactions"])
    inserted = transactions
    if settings["workload"] != "sqlite-insert":
        inserted = 0
    elif not shared:
        inserted = -(-inserted // connections)
    rows = initial_rows + -(-inserted * int(settings["statements"]) // tables)
    value_bytes, page_bytes = int(settings["value_bytes"]), int(settings["page_size_bytes"])
    database = table_bytes(rows, value_bytes, page_bytes) * tables
    wal = 0
    if settings["journal_mode"] == "wal":
        wal = min(database, _WAL_PORTION_BYTES * 5 // 4)
    if settings["regime"] == "steady":
        allocated = _allocated_bytes(settings, transactions)
        database += allocated
        wal += allocated
    files = int(settings["databases"]) * (1 if shared else connections)
    return database * files, wal * files


def _allocated_bytes(settings: Mapping[str, Value], transactions: int) -> int:
    """Return what a steady workload allocates of a database, and again of its WAL or journal.

    As the agent does it (pages_to_allocate() in agent/src/workload/sqlite/settings.rs), at most.
    """
    page_bytes, value_bytes = int(settings["page_size_bytes"]), int(settings["value_bytes"])
    of_a_row = 6 + -(-(value_bytes + 16) // (page_bytes - 4))
    of_a_transaction = int(settings["statements"]) * of_a_row + 2
    pages = transactions * of_a_transaction + int(settings["tables"])
    limit = int(settings["wal_autocheckpoint_pages"])
    if settings["journal_mode"] == "wal" and limit and settings["workload"] != "sqlite-insert":
        pages = limit + of_a_transaction * (1 + int(settings["connections"]))
    return pages * page_bytes


def contents_bytes(settings: Mapping[str, Value], capacity_bytes: int) -> int:
    """Return what a device of `capacity_bytes` is expected to hold in the end, at most."""
    copies = 2 if settings["filesystem"] in _OUT_OF_PLACE else 1
    return min(files_bytes(settings) * copies + _FILESYSTEM_BYTES, capacity_bytes)


def refuse_small_device(settings: Mapping[str, Value], capacity_bytes: int) -> str:
    """Say when filesystem or files do not fit on a device of `capacity_bytes`; empty if they do."""
    filesystem = str(settings["filesystem"])
    smallest = SMALLEST_DEVICE_BYTES[filesystem]
    if capacity_bytes < smallest:
        return (
            f"{filesystem} needs a device of {smallest // MIB} MiB, "
            f"{settings['device']} has {capacity_bytes // MIB} MiB"
        )
    # The rest is the filesystem's own, and what a log-structured one needs in order to clean.
    room, needed = capacity_bytes // 4 * 3, files_bytes(settings)
    if needed <= room:
        return ""
    if settings["workload"] in SQLITE:
        return _databases_too_large(settings, capacity_bytes, needed)
    threads = int(settings["threads"])
    of_each = f" for each of {threads} threads" if threads > 1 else ""
    return (
        f"file_bytes = {settings['file_bytes']}{of_each} is more than three quarters of "
        f"{settings['device']}, which has {capacity_bytes} bytes"
    )


def _databases_too_large(settings: Mapping[str, Value], capacity_bytes: int, needed: int) -> str:
    fits, too_many = 0, int(settings["initial_rows"]) + 1
    while too_many - fits > 1:
        middle = (fits + too_many) // 2
        if sum(_databases_bytes(settings, middle)) <= capacity_bytes // 4 * 3:
            fits = middle
        else:
            too_many = middle
    larger = -(-needed * 4 // 3 // (64 * MIB)) * 64 * MIB
    return (
        f"initial_rows = {settings['initial_rows']} with value_bytes = {settings['value_bytes']} "
        f"makes databases of {needed // MIB} MiB, more than three quarters of "
        f"{settings['device']}, which has {capacity_bytes // MIB} MiB; {fits} rows fit, or "
        f"device.capacity_bytes = {larger}"
    )
