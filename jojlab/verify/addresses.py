"""Where files and journals are, by sources that know nothing of the tracer.

These are FIEMAP through filefrag, debugfs, xfs_db and btrfs inspect-internal. All places are
512-byte sectors of the disk, at whose first the filesystem begins.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

SECTOR = 512


def check(
    filesystem: str, device: str, mounted: Path, found: Mapping[str, Any]
) -> tuple[int, list[str], tuple[str, ...]]:
    """Compare extents and journal of a verdict; return sectors checked, what is wrong, sources.

    A tool that is not installed is left out, and so missing among the sources.
    """
    wrong: list[str] = []
    checked, sources = 0, []
    chunks = _btrfs_chunks(device) if filesystem == "btrfs" else None
    if shutil.which("filefrag") and (filesystem != "btrfs" or chunks):
        sources.append("FIEMAP with the chunk tree" if chunks else "FIEMAP")
        maps: dict[str, dict[int, int]] = {}
        for extent in found["extents"]:
            path = extent["path"]
            if path not in maps:
                maps[path] = _file_sectors(mounted / path.lstrip("/"), chunks)
            for index in range(extent["sectors"]):
                offset, told = extent["offset_bytes"] // SECTOR + index, extent["sector"] + index
                place = maps[path].get(offset)
                if place is None:
                    continue  # kept with the metadata
                checked += 1
                if place != told:
                    wrong.append(f"{path}: sector {offset} of it is at {place}, told was {told}")
    journal, source = _journal(filesystem, device)
    if journal:
        sources.append(source)
        for stretch in found["journal"]:
            places = range(stretch["sector"], stretch["sector"] + stretch["sectors"])
            checked += len(places)
            outside = [place for place in places if not any(place in area for area in journal)]
            wrong += [f"{place} is outside the journal ({stretch['subtype']})" for place in outside]
    return checked, wrong, tuple(sources)


def _output(*command: str) -> str:
    """Run a tool; what it prints, or nothing where it is missing or fails."""
    if not shutil.which(command[0]):
        return ""
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout


def _file_sectors(path: Path, chunks: list[tuple[range, int]] | None) -> dict[int, int]:
    """Sector of the disk by sector of the file; filefrag's lines are numbered."""
    sectors: dict[int, int] = {}
    for line in _output("filefrag", "-v", "-b512", str(path)).splitlines():
        match = re.match(r"\s*\d+:\s*(\d+)\.\.\s*(\d+):\s*(\d+)\.\.\s*\d+:\s*\d+:(.*)", line)
        if not match or re.search("inline|unwritten|delalloc|not_aligned", match[4]):
            continue
        first, last, place = int(match[1]), int(match[2]), int(match[3])
        for offset in range(first, last + 1):
            logical = place + offset - first
            if chunks is None:
                sectors[offset] = logical
                continue
            for area, begin in chunks:
                if logical in area:
                    sectors[offset] = begin + logical - area.start
    return sectors


def _btrfs_chunks(device: str) -> list[tuple[range, int]]:
    """Logical sectors of each chunk with one stripe for its data, and where on the disk it is."""
    text = _output("btrfs", "inspect-internal", "dump-tree", "-t", "chunk", device)
    pattern = r"CHUNK_ITEM (\d+)\).*?length (\d+).*?type DATA.*?stripe 0 devid \d+ offset (\d+)"
    chunks = []
    for item in re.split(r"\n\s*item ", text):
        if match := re.search(pattern, item, re.DOTALL):
            begin, length, place = (int(number) // SECTOR for number in match.groups())
            chunks.append((range(begin, begin + length), place))
    return chunks


def _journal(filesystem: str, device: str) -> tuple[list[range], str]:
    """The areas of the journal, and who says so; none where no tool tells."""
    if filesystem == "ext4":
        size = re.search(r"Block size:\s*(\d+)", _output("dumpe2fs", "-h", device))
        table = _output("debugfs", "-R", "dump_extents <8>", device)
        extents = re.findall(r"^\s*(\d+)/\s*(\d+).*?(\d+)\s+-\s+(\d+)\s+\d+\s*$", table, re.M)
        unit = int(size[1]) // SECTOR if size else 8
        # "Level Entries Logical Physical": leaves only, whose level is the depth.
        areas = [
            range(int(first) * unit, (int(last) + 1) * unit)
            for level, depth, first, last in extents
            if level == depth
        ]
        return areas, "debugfs"
    if filesystem == "xfs":
        names = ["logstart", "logblocks", "blocksize", "agblocks", "agblklog"]
        text = _output("xfs_db", "-r", "-c", "sb 0", "-c", f"p {' '.join(names)}", device)
        found = {name: int(value) for name, value in re.findall(r"(\w+) = (\d+)", text)}
        if found.keys() >= set(names) and found["logstart"]:
            group, block = divmod(found["logstart"], 1 << found["agblklog"])
            unit = found["blocksize"] // SECTOR
            first = (group * found["agblocks"] + block) * unit
            return [range(first, first + found["logblocks"] * unit)], "xfs_db"
    return [], ""
