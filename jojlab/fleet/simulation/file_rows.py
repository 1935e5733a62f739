"""What a made segment says of files: bytes written to each, and how long those that are gone lived.

Both follow from the segment's commits; how long other files live is an assumption.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jojlab.fleet.simulation.apps import APPS
from jojlab.fleet.simulation.commit_rows import MODES, DayCommits

Row = dict[str, Any]
_ENDING = {"delete": "-journal", "truncate": "-journal", "persist": "-journal", "wal": "-wal"}
_KIND = {"-journal": "db-journal", "-wal": "wal"}
# Of files that are no journals, a day and app: how many, how long they live, how large they are.
_OTHERS = (("other", 60, 1 << 22, 1 << 14), ("resource", 25, 1 << 30, 1 << 16))


def file_sums(commits: DayCommits, which: NDArray[np.int64]) -> list[Row]:
    """Return the rows of file_sums for the commits at the places `which`."""
    written = commits.bytes_of()
    sums: Counter[tuple[str, str, str]] = Counter()
    pairs = commits.database[which] * len(MODES) + commits.mode[which]
    for pair in np.unique(pairs):
        chosen = which[pairs == pair]
        name = commits.databases[pair // len(MODES)]
        ending = _ENDING[MODES[pair % len(MODES)]]
        process = APPS[int(commits.app[chosen[0]])].process
        sums[name, "db", process] += int(written["database_bytes"][chosen].sum())
        sums[name + ending, _KIND[ending], process] += int(written["journal_bytes"][chosen].sum())
    return [
        {"path": path, "file_kind": kind, "process": process, "files": 1, "write_bytes": count}
        for (path, kind, process), count in sorted(sums.items())
        if count
    ]


def file_lives(
    commits: DayCommits, which: NDArray[np.int64], share: float, generator: np.random.Generator
) -> list[Row]:
    """Return the rows of file_lives for the same commits, in a segment of that share of a day."""
    counts: Counter[tuple[str, str, str, int | None, int | None]] = Counter()
    is_delete = commits.mode[which] == MODES.index("delete")
    sizes = commits.bytes_of()["journal_bytes"]
    for chosen, kind in (
        (which[is_delete], "db-journal"),
        (which[commits.joined[which]], "super-journal"),
    ):
        for place in chosen:
            process = APPS[int(commits.app[place])].process
            lived = _above(int(commits.duration_ns[place]) / 1e6)
            size = _above(512) if kind == "super-journal" else _above(int(sizes[place]))
            counts["created", process, kind, None, None] += 1
            counts["deleted", process, kind, lived, size] += 1
    for app in APPS:
        for kind, files, lived_ms, size_bytes in _OTHERS:
            made = int(generator.poisson(files * share))
            gone = int(generator.binomial(made, 0.7))
            for age in generator.lognormal(np.log(lived_ms), 2.5, gone):
                size = _above(float(generator.lognormal(np.log(size_bytes), 1)))
                counts["deleted", app.process, kind, _above(age), size] += 1
            if made:
                counts["created", app.process, kind, None, None] += made
    return [
        {
            "event": event,
            "process": process,
            "file_kind": kind,
            "lived_below_ms": lived,
            "size_below_bytes": size,
            "files": files,
        }
        for (event, process, kind, lived, size), files in sorted(counts.items(), key=repr)
    ]


def _above(value: float) -> int:
    """Return the power of two that is next above; 1 for less than one."""
    return 1 << int(value).bit_length()
