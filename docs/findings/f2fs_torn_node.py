"""Tears the write of a node of F2FS behind a checkpoint, as a power cut may between sectors of 512
bytes: its last sector is there, with the footer, and the others are as they were before.

A file is part of a checkpoint, grows by a block and is synced; that sync wrote the node. Exits with
1 where the file cannot be read any more.
"""

from __future__ import annotations

import os
from pathlib import Path

from f2fs_disk import BLOCK_BYTES, first_recovered_node
from loop_disk import (
    SECTOR_BYTES,
    copy,
    folder,
    mounted_copy,
    need_filesystem,
    new_filesystem,
    run,
    verdict,
)


def read(image: Path) -> str:
    """Return what a mount finds in the file."""
    with mounted_copy(image) as at:
        if at is None:
            return "is not there: the mount is refused"
        try:
            content = (at / "file").read_bytes()
        except OSError as error:
            return f"cannot be read: {error.strerror}"
    return f"has {len(content)} bytes"


def main() -> None:
    """Tear the node, and tell what the next mounts find."""
    need_filesystem("f2fs")
    with folder() as work:
        image = work / "image"
        with new_filesystem(image, "f2fs") as (_, at):
            (at / "file").write_bytes(b"a" * BLOCK_BYTES)
            run("sync", "--file-system", at)
            with (at / "file").open("ab") as file:
                file.write(b"b" * BLOCK_BYTES)
                file.flush()
                os.fsync(file.fileno())
            whole = copy(image, "whole")
        torn = copy(whole, "torn")
        with torn.open("r+b") as disk:
            node = first_recovered_node(torn)
            os.pwrite(disk.fileno(), bytes(BLOCK_BYTES - SECTOR_BYTES), node)
        print(f"the node is whole: the file {read(whole)}")
        found = read(torn)
        print(f"its last sector alone is new: the file {found}")
    verdict(not found.startswith("has"), f"F2FS with a torn node: the file {found}")


main()
