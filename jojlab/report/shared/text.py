"""Words that every part of a report uses: numbers as people read them, with three or four digits
that count, the clocks of a run, its regimes, and the name of a transaction.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from jojlab.analysis.run.summary import CaseSummary
from jojlab.model.figures import FIGURES, Number

# Parts of a bill beside the commit itself, as they are called.
LATER_PARTS = {
    "deferred": "deferred",
    "background": "background load",
    "read-only": "reading, by transactions that changed nothing",
    "rollback": "transactions that were rolled back",
    "program": "reading what is no database",
}

_AXIS_UNITS: dict[str, tuple[str, float]] = {
    "ns": ("ms", 1e6),
    "bytes": ("KiB", 1024),
    "%": ("%", 1),
}
_TIMES = ((1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1, "ns"))


def duration(value_ns: Number, most: int = 4) -> str:
    """Return nanoseconds as 5.034 ms, with so many digits that count."""
    for size, unit in _TIMES:
        if abs(value_ns) >= size > 1:
            shown = _round if most > 3 else digits
            return f"{shown(value_ns / size, most)} {unit}"
    return f"{digits(value_ns, most)} ns"


def kib(value_bytes: Number) -> str:
    """Return bytes in KiB, as 68 or 4.059."""
    return digits(value_bytes / 1024)


def size(value_bytes: Number, most: int = 4) -> str:
    """Return bytes as 68 KiB, or as 40.59 B below one KiB."""
    if 0 < abs(value_bytes) < 1024:
        return f"{digits(value_bytes, most)} B"
    return f"{digits(value_bytes / 1024, most)} KiB"


def digits(value: Number, most: int = 4) -> str:
    """Return `most` digits that count, 3 or 4; fewer where those say it exactly (9, 0.5)."""
    if abs(value) >= 1e6:
        return f"{value:,.0f}"
    if most < 4 and value != round(value) and 0.001 <= abs(value) < 999.5:
        return f"{value:#.{most}g}".rstrip(".")
    if value == round(value, 2):
        return f"{value:g}" if abs(value) < 1e4 else f"{value:,.2f}".rstrip("0").rstrip(".")
    if 0 < abs(value) < 0.001:
        return f"{value:.{1 - math.floor(math.log10(abs(value)))}f}"
    return _round(value, most)


def upper_bound(value: float) -> str:
    """Return a bound with two digits that count, rounded up: as 0.41, 1.4 or 100."""
    if value <= 0:
        return "0"
    places = 1 - math.floor(math.log10(value))
    # What arithmetic adds behind the digits that count is no part of it.
    bound = math.ceil(round(value * 10**places, 6)) / 10**places
    return f"{bound:.{max(0, places)}f}"


def _round(value: Number, most: int) -> str:
    whole = len(str(int(abs(value)))) if abs(value) >= 1 else 0
    return f"{value:,.0f}" if whole >= most else f"{value:.{most - whole}f}"


def figure(name: str, value: Number) -> str:
    """Return a figure's value with its unit, where digits alone do not say it."""
    match FIGURES[name].unit:
        case "ns":
            return duration(value)
        case "bytes":
            return size(value)
        case "%":
            return f"{digits(value)} %"
        case _:
            return digits(value)


def count(value: Number, one: str, several: str = "") -> str:
    """Return how many there are, as 1 flush or 2.5 flushes; `several` where it is not one's + s."""
    return f"{digits(value)} {one if value == 1 else several or one + 's'}"


def integer(value: int, one: str, several: str = "") -> str:
    """Return how many whole things there are, all digits told: 1 state or 4,200 states."""
    return f"{value:,} {one if value == 1 else several or one + 's'}"


def axis_unit(name: str) -> tuple[str, float]:
    """Return the unit in which a chart shows a figure, and what its values are divided by."""
    return _AXIS_UNITS.get(FIGURES[name].unit, ("", 1))


def times(ratio: Number) -> str:
    """Return how many times as fast: 1.9, 12 or 207; all digits before the point are right."""
    return f"{ratio:.0f}" if ratio >= 10 else f"{ratio:.1f}"


def spread(name: str, ends: tuple[Number, Number]) -> str:
    """Return [min–max], or nothing when all seeds agree in the digits shown."""
    low, high = (figure(name, end) for end in ends)
    return "" if low == high else f"[{low}–{high}]"


def percent(share: float) -> str:
    """Return a share as 12.3 %."""
    return f"{share * 100:.1f} %"


def change(share: float | None) -> str:
    """Return a change with its sign; from zero there is none to tell."""
    return "from 0" if share is None else f"{share * 100:+.2f} %"


CLOCKS = {
    "virtual": "Virtual time: the guest's clock counts instructions; the flash device is modelled.",
    "guest-wall": "Real time: QEMU emulates the guest and its disk. There is no flash; results do "
    "not repeat and are not cached.",
    "wall": "Live: real time on real hardware.",
}


def clocks(names: Iterable[str]) -> str:
    """Say by which clocks a run was measured."""
    return " ".join(CLOCKS.get(name, name) for name in names)


def has_commit(cases: Iterable[CaseSummary]) -> bool:
    """Return whether SQLite is among what the cases ran: by their fields, or by the commits that
    were found of a program or a replay; imported traces do not say.
    """
    return any("journal_mode" in case.case or case.has_found_commits for case in cases)


def transaction_name(cases: Iterable[CaseSummary]) -> str:
    """Return what the cases' transactions are, as it stands after "one"."""
    cases = tuple(cases)
    if has_commit(cases):
        return "COMMIT"
    # Of a program that is traced live, without SQLite, its syncs alone are seen.
    return "sync" if all(case.live for case in cases) else "operation"


def latency_interval(cases: Iterable[CaseSummary]) -> str:
    """Return what interval a latency covers."""
    if has_commit(cases):
        return "from BEGIN to the return of COMMIT, with its checkpoint"
    return "of one operation with its sync"


_MEANINGS = {
    "fresh": "fresh, new files that grow",
    "steady": "steady, files that do not grow",
    "reopened": "reopened, the connection is closed and opened around each burst",
}


def regime_meaning(case: CaseSummary) -> str:
    """Return the regime of a case, explained; empty where it has none."""
    return _MEANINGS.get(str(case.case.get("regime", "")), "")
