#!/usr/bin/python3 -IS
"""A storage engine that appends records with checksums to segments, and acknowledges each.

A record is durable when the segment is synced, and, if the segment is new, its directory. The
words no-file-sync and no-directory-sync leave one of the two out: faults that power cuts find. The
word no-rest takes a write of a part for one of the whole: a fault that a full disk shows.
"""

import os
import struct
import sys
import zlib

RECORDS = 24
RECORDS_OF_SEGMENT = 4
FOLDER = "records"
HEADER = struct.Struct("<III")  # number, length, checksum of both and of the payload


def payload(number: int) -> bytes:
    """Return what record `number` holds: the more, the later."""
    return b"record %d " % number * (40 * number + 1)


def encode(number: int, content: bytes) -> bytes:
    """Return a record as it lies in its segment."""
    checksum = zlib.crc32(struct.pack("<II", number, len(content)) + content)
    return HEADER.pack(number, len(content), checksum) + content


def write_whole(file: int, content: bytes) -> None:
    """Write all of it: a full disk takes a part, and refuses the rest alone."""
    while content:
        content = content[os.write(file, content) :]


def sync_directory(path: str) -> None:
    """Make the names in a directory durable."""
    directory = os.open(path, os.O_RDONLY)
    os.fsync(directory)
    os.close(directory)


def main(left_out: set[str]) -> None:
    """Append the records; acknowledge each when it is durable."""
    acks = int(os.environ["JOJ_ACKS"])
    os.mkdir(FOLDER)
    sync_directory(".")
    segment = -1
    for number in range(RECORDS):
        is_new = number % RECORDS_OF_SEGMENT == 0
        if is_new:
            path = os.path.join(FOLDER, f"{number:06}")
            segment = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
        write = os.write if "no-rest" in left_out else write_whole
        write(segment, encode(number, payload(number)))
        if "no-file-sync" not in left_out:
            os.fsync(segment)
        if is_new and "no-directory-sync" not in left_out:
            sync_directory(FOLDER)
        os.write(acks, b"%d\n" % number)
        if (number + 1) % RECORDS_OF_SEGMENT == 0:
            os.close(segment)


if __name__ == "__main__":
    main(set(sys.argv[1:]))
