"""Measures what a collector and the processes that it started held at most; reads /proc.

The kernel tells the most that a process had resident as VmHWM of /proc/PID/status (proc(5)). The
ru_maxrss of wait4(2) is another thing: it begins with what its parent had before the program was
loaded. BPF maps are memory of the kernel (`memlock` of /proc/PID/fdinfo), but for pages of them
that the process has mapped, which are in its VmHWM, too.
"""

from __future__ import annotations

import contextlib
import re
from dataclasses import dataclass, replace
from pathlib import Path


@dataclass(frozen=True)
class Memory:
    """The most that the collector and its uploader had resident, each by itself, what the BPF maps
    take, and how much of these the collector has mapped.
    """

    collector_bytes: int = 0
    uploader_bytes: int = 0
    map_bytes: int = 0
    mapped_bytes: int = 0

    @property
    def whole_bytes(self) -> int:
        """All of it, mapped maps once."""
        return self.collector_bytes + self.uploader_bytes + self.map_bytes - self.mapped_bytes

    def largest(self, other: Memory) -> Memory:
        """The larger of each."""
        pairs = {name: max(value, getattr(other, name)) for name, value in vars(self).items()}
        return replace(self, **pairs)


def memory_of(pid: int) -> Memory:
    """Return what a collector held until now; 0 for what has ended."""
    return Memory(
        peak_bytes(pid),
        sum(map(peak_bytes, children(pid))),
        map_bytes(pid),
        mapped_bytes(_text(f"/proc/{pid}/smaps")),
    )


def peak_bytes(pid: int) -> int:
    """Return the most that a process had resident."""
    found = re.search(r"^VmHWM:\s+(\d+) kB$", _text(f"/proc/{pid}/status"), re.MULTILINE)
    return int(found[1]) * 1024 if found else 0


def children(pid: int) -> list[int]:
    """Return the processes that it started and that run."""
    tasks = Path(f"/proc/{pid}/task").glob("*/children")
    return [int(child) for task in tasks for child in _text(str(task)).split()]


def map_bytes(pid: int) -> int:
    """Return what the BPF maps take that a process has open."""
    maps: dict[str, int] = {}
    for path in Path(f"/proc/{pid}/fdinfo").glob("*"):
        facts = dict(re.findall(r"(\w+):\s+(\S+)", _text(str(path))))
        if "map_id" in facts:
            maps[facts["map_id"]] = int(facts["memlock"])
    return sum(maps.values())


def mapped_bytes(smaps: str) -> int:
    """Return how much of BPF maps is resident, by the text of /proc/PID/smaps."""
    mappings = re.split(r"(?m)^(?=[0-9a-f]+-[0-9a-f]+ )", smaps)
    maps = (mapping for mapping in mappings if "anon_inode:bpf-map" in mapping.split("\n")[0])
    found = (re.search(r"(?m)^Rss:\s+(\d+) kB$", mapping) for mapping in maps)
    return sum(int(rss[1]) * 1024 for rss in found if rss)


def _text(path: str) -> str:
    """Return what the kernel says; nothing of a process that has ended."""
    with contextlib.suppress(OSError):
        return Path(path).read_text()
    return ""
