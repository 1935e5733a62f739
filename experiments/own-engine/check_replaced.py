#!/usr/bin/python3 -IS
"""Judges what a power cut left of replace.py: each name has the version that was acknowledged last,
or a later one, and every version is whole.
"""

import os
import sys

KEPT, LOST, WRONG = 0, 1, 2


def version_of(path: str) -> int:
    """Return the version that a file holds; -1 where it is none as a whole."""
    with open(path, "rb") as file:
        found = file.read()
    first = found.split(b"\n", 1)[0].split()
    if len(first) != 2 or not first[1].isdigit() or found != b"version %s\n" % first[1] * 600:
        return -1
    return int(first[1])


def main() -> int:
    """Return the exit code."""
    acknowledged = {}
    with open(os.environ["JOJ_ACKED"]) as file:
        for line in file:
            version, name = line.split()
            acknowledged[name] = int(version)
    for name in sorted(os.listdir(".")):
        if name.startswith("state") and version_of(name) < 0:
            print(f"{name} is no version as a whole: it has {os.path.getsize(name)} bytes")
            return WRONG
    for name, version in acknowledged.items():
        there = version_of(name) if os.path.exists(name) else None
        if there is None or there < version:
            print(f"{name}: version {version} was acknowledged, {there} is there")
            return LOST
    return KEPT


if __name__ == "__main__":
    sys.exit(main())
