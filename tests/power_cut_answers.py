"""Answers of power cuts for tests, as the agent writes them (agent/src/lab/power_cut)."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from jojlab.trace.checksums import read_checksums
from jojlab.trace.power_cuts import BOUNDARIES, OUTCOMES
from jojlab.trace.run_folder import RunFolder

MODEL = {
    "volatile_cache": True,
    "fua": True,
    "torn_bytes": 512,
    "second_cuts": True,
    "fsck": "every state",
}

# What the kernel logs of a torn block for which it refuses ext4 and XFS: Linux 6.1,
# fs/ext4/super.c, fs/jbd2/journal.c and fs/xfs/xfs_error.c.
SUPERBLOCK_LOG = "EXT4-fs (flash0): VFS: Found ext4 filesystem with invalid superblock checksum."
COMMIT_BLOCK_LOG = (
    "JBD2: journal transaction 637 on flash0-8 is corrupt.\nEXT4-fs (flash0): error loading journal"
)
XFS_LOG = (
    "XFS (flash0): Metadata CRC error detected at xfs_dir3_block_read_verify+0xd0/0x110 [xfs], "
    "xfs_dir3_block block 0x78 \nXFS (flash0): Unmount and run xfs_repair"
)


def state(number: int, kind: str = "subset", outcome: str = "kept", **more: Any) -> dict[str, Any]:
    """Return a state of a cut at so many ms; a harmful one is cut just after a commit returned."""
    lost = 1 if outcome == "lost" else 0
    return {
        "cut_ns": 1_000_000 * number,
        "kind": kind,
        "is_torn": kind == "torn",
        "after_return": outcome != "kept",
        "acknowledged": number,
        "begun": number + 1,
        "promises": number,
        "outcome": outcome,
        "found": [number - lost],
        "lost": lost,
        "message": "",
        "fsck": "clean",
        "kernel_log": "",
        "hash": f"{number:016x}",
        **more,
    }


def slot(*survivors: int, file: str = "", place: int = 0) -> dict[str, Any]:
    """Return a slot that a cut took, of a file if one is named, and which sectors survive."""
    owner = {
        "block_type": "data" if file else "fs-metadata",
        "block_subtype": "" if file else "inode",
        "file_kind": "db" if file else "other",
        "file": file,
        "file_offset_bytes": place if file else None,
        "call": "fsync",
        "call_file": file,
    }
    return {
        "device": "flash0",
        "offset_bytes": 4096 * 7,
        "issue_ns": 5,
        "survivors": list(survivors),
        "owners": [owner],
    }


def smallest(
    *slots: dict[str, Any], first_slots: int | None = None, is_minimal: bool = True
) -> dict[str, Any]:
    """Return a smallest cut; with `first_slots` a second one."""
    return {
        "slots": list(slots),
        "first_slots": first_slots,
        "is_minimal": is_minimal,
        "message": "",
    }


def states(harmless: int, **harmful: int) -> list[dict[str, Any]]:
    """Return so many states by outcome, one in four of them at a boundary."""
    outcomes = ["kept"] * harmless + [name for name, count in harmful.items() for _ in range(count)]
    kinds = ("boundary-none", "drop-one", "prefix", "subset")
    return [state(place, kinds[place % 4], name) for place, name in enumerate(outcomes, 1)]


def answer(
    states: Iterable[dict[str, Any]], tables: dict[str, str], seed: int = 1, **more: Any
) -> dict[str, Any]:
    """Return an answer that has these states."""
    rows = list(states)
    boundaries = sum(row["kind"] in BOUNDARIES for row in rows)
    return {
        "seed": seed,
        "tables": tables,
        "model": MODEL,
        "asked_states": len(rows),
        "boundary_states": boundaries,
        "boundary_states_left_out": 0,
        "sampled_states": len(rows) - boundaries,
        "draws": len(rows) - boundaries,
        "begin_ns": 0,
        "end_ns": 2_000_000_000,
        "outcomes": {name: sum(row["outcome"] == name for row in rows) for name in OUTCOMES},
        "states": rows,
        **more,
    }


def cut(run: RunFolder, case_id: str, states: Iterable[dict[str, Any]], **more: Any) -> None:
    """Put an answer of the case's first seed into a run folder."""
    entry, seed, folder = next(it for it in run.capture_folders() if it[0].case_id == case_id)
    sums = {path.name: known for path, known in (read_checksums(folder) or {}).items()}
    tables = {name: sums[name] for name in ("transactions.parquet", "requests.parquet")}
    content = json.dumps(answer(states, tables, seed, **more)).encode()
    run.add_power_cuts(entry.case_id, seed, content)
