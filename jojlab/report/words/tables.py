"""Words of printed tables beside ours: the same in the terminal and in the report."""

from __future__ import annotations

from jojlab.analysis.study.tables import ComparedTable, TableCell


def change(value: float | None) -> str:
    """A change in per cent, as the papers print it."""
    return "–" if value is None else f"{value:+.2f}"


def cell(found: TableCell) -> str:
    """Ours in per cent, and whether it is none; a dash where it was not measured."""
    if found.ours is None:
        return "–"
    return f"none ({found.ours:+.3f})" if found.is_none else f"{found.ours:+.3f}"


def verdict(table: ComparedTable) -> str:
    """How many changes there are, and how far the seeds of one case lie apart."""
    if not table.measured:
        return "Not measured."
    if table.seeds == 1:
        return (
            f"Ours has one seed, so that nothing tells a change from noise: take more. The largest "
            f"change of {len(table.measured)} cells is {table.largest_percent:.3f} %; {table.near} "
            "are within one point of what was printed."
        )
    seeds = f"the {table.seeds} seeds"
    return (
        f"Ours differs from the case that it is compared with beyond {seeds} in {table.changed} of "
        f"{len(table.measured)} cells; the largest change is {table.largest_percent:.3f} %, and "
        f"the seeds of one case lie up to {table.spread_percent:.3f} % apart. {table.near} cells "
        "are within one point of what was printed. "
        "none: the seeds of both cases overlap, so that other seeds may give another sign."
    )
