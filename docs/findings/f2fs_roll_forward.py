"""Cuts the power of an F2FS while a mount recovers what was synced.

Files grow by a block each and are synced behind a checkpoint, and the disk is copied: a cut that
loses nothing. The next mount recovers, and ends that by a checkpoint. The second cut comes before
that checkpoint's own blocks, and loses nothing else: they are put back as they were, and all that
the recovery had written before is there. Exits with 1 where a synced block is gone.
"""

from __future__ import annotations

import os
from pathlib import Path

from f2fs_disk import BLOCK_BYTES, checkpoint_area
from loop_disk import copy, folder, mounted_copy, need_filesystem, new_filesystem, run, verdict

FILES = ("first", "second", "third")


def grow(path: Path) -> None:
    """Append a block to a file, and sync it."""
    with path.open("ab") as file:
        file.write(b"b" * BLOCK_BYTES)
        file.flush()
        os.fsync(file.fileno())


def files_with_block(at: Path) -> list[str]:
    """Return the files that have the block that was synced."""
    return [name for name in FILES if (at / name).read_bytes().endswith(b"b" * BLOCK_BYTES)]


def main() -> None:
    """Cut the power twice, and tell what each mount finds."""
    need_filesystem("f2fs")
    with folder() as work:
        image = work / "image"
        with new_filesystem(image, "f2fs") as (_, at):
            for name in FILES:
                (at / name).write_bytes(b"a" * BLOCK_BYTES)
            run("sync", "--file-system", at)
            for name in FILES:
                grow(at / name)
            cut = copy(image, "cut")
        begin, before = checkpoint_area(cut)
        with mounted_copy(cut) as at_copy:
            assert at_copy
            found = files_with_block(at_copy)
            print(f"one cut: the synced block is in {', '.join(found) or 'no file'}")
            again = copy(cut, "again")
        with again.open("r+b") as file:
            os.pwrite(file.fileno(), before, begin)
        with mounted_copy(again) as at_copy:
            assert at_copy
            found = files_with_block(at_copy)
    print(f"a second cut, while it recovers: it is in {', '.join(found) or 'no file'}")
    verdict(len(found) < len(FILES), "F2FS with a cut while it recovers: a sync is undone")


main()
