"""Counts the flushes that fsync has ext4 send to its data's device where its journal is on another
one.

A file of one block is overwritten and synced, 20 times, as SQLite overwrites a page. Each fsync
must flush the device that has the data. Exits with 1 where it does not.
"""

from __future__ import annotations

import os
from pathlib import Path

from loop_disk import folder, loop_device, mount, run, verdict

SYNCS = 20


def flushes(device: str) -> int:
    """Return how many flushes a device completed (Documentation/block/stat.rst)."""
    return int(Path(f"/sys/block/{Path(device).name}/stat").read_text().split()[15])


def count_flushes(device: str) -> int:
    """Return how many flushes the device had while one block was overwritten and synced."""
    with mount(device, "ext4") as at, (at / "file").open("wb", buffering=0) as file:
        file.write(b"a" * 4096)
        run("sync", "--file-system", at)
        before = flushes(device)
        for number in range(SYNCS):
            os.pwrite(file.fileno(), bytes([number]) * 4096, 0)
            os.fsync(file.fileno())
        return flushes(device) - before


def main() -> None:
    """Count them with the journal inside, and with the journal on another device."""
    with (
        folder() as work,
        loop_device(work / "data") as data,
        loop_device(work / "journal") as journal,
    ):
        run("mkfs.ext4", "-q", "-F", data)
        inside = count_flushes(data)
        print(f"{SYNCS} syncs, journal inside: {inside} flushes of the data's device")
        run("mke2fs", "-q", "-F", "-O", "journal_dev", "-b", "4096", journal)
        run("mkfs.ext4", "-q", "-F", "-b", "4096", "-J", f"device={journal}", data)
        outside = count_flushes(data)
        print(f"{SYNCS} syncs, journal on another device: {outside} flushes of the data's device")
    assert inside >= SYNCS
    verdict(outside < SYNCS, f"ext4 with an external journal: {outside} flushes for {SYNCS} syncs")


main()
