#!/usr/bin/python3 -IS
"""Judges what a power cut left of engine.py: every acknowledged record must be there, as it was.

Records beyond those that were acknowledged may be there too, in order.
"""

import os
import struct
import sys
import zlib

FOLDER = "records"
HEADER = struct.Struct("<III")
KEPT, LOST, WRONG = 0, 1, 2


def decode(segment: bytes):
    """Yield the number and content of each whole record, up to the first that is not."""
    place = 0
    while place + HEADER.size <= len(segment):
        number, length, checksum = HEADER.unpack_from(segment, place)
        content = segment[place + HEADER.size : place + HEADER.size + length]
        place += HEADER.size + length
        if zlib.crc32(struct.pack("<II", number, length) + content) != checksum:
            return
        yield number, content


def main() -> int:
    """Return the exit code."""
    with open(os.environ["JOJ_ACKED"]) as file:
        acknowledged = [int(line) for line in file]
    found = set()
    for name in sorted(os.listdir(FOLDER)) if os.path.isdir(FOLDER) else []:
        with open(os.path.join(FOLDER, name), "rb") as file:
            for number, content in decode(file.read()):
                found.add(number)
                if content != b"record %d " % number * (40 * number + 1):
                    print(f"record {number} has a right checksum and wrong contents")
                    return WRONG
    lost = [number for number in acknowledged if number not in found]
    if lost:
        print(f"lost: {len(lost)} of {len(acknowledged)} acknowledged records, first {lost[0]}")
        return LOST
    return KEPT


if __name__ == "__main__":
    sys.exit(main())
