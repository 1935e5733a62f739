#!/usr/bin/python3 -IS
"""Replaces a file by a new version as careful programs do: write a new file, sync it, rename it
over the old one, sync the directory; and acknowledges each version.

The word no-file-sync leaves out the sync of the new file, no-directory-sync that of the directory:
faults that power cuts find. With new-names each version has a name of its own.
"""

import os
import sys

VERSIONS = 16


def content(version: int) -> bytes:
    """Return what a version holds."""
    return b"version %d\n" % version * 600


def sync_directory() -> None:
    """Make the names in the working directory durable."""
    directory = os.open(".", os.O_RDONLY)
    os.fsync(directory)
    os.close(directory)


def main(words: set[str]) -> None:
    """Write the versions; acknowledge each when it is durable."""
    acks = int(os.environ["JOJ_ACKS"])
    for version in range(VERSIONS):
        name = f"state-{version:03}" if "new-names" in words else "state"
        file = os.open("new", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        os.write(file, content(version))
        if "no-file-sync" not in words:
            os.fsync(file)
        os.close(file)
        os.rename("new", name)
        if "no-directory-sync" not in words:
            sync_directory()
        os.write(acks, b"%d %s\n" % (version, name.encode()))


if __name__ == "__main__":
    main(set(sys.argv[1:]))
