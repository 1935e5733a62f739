"""Words of printed tables beside ours: the same in the terminal and in the report."""

from __future__ import annotations

from jojlab.analysis.study.tables import ComparedTable, TableCell


def change(value: float | None) -> str:
    """A change in per cent, as the papers print it."""
    return "–" if value is None else f"{value:+.2f}"


def cell(found: TableCell) -> str:
    """Ours, or that there is none, with what it would have had to exceed."""
    if found.ours is None:
        return "–"
    return f"none ({found.ours:+.3f})" if found.is_none else f"{found.ours:+.3f}"


def verdict(table: ComparedTable) -> str:
    """How many changes there are, and what a change has to exceed."""
    cells = table.measured
    if not cells:
        return "Not measured."
    real = [cell for cell in cells if not cell.is_none and cell.ours is not None]
    spread = max(cell.spread_percent or 0.0 for cell in cells)
    largest = max((abs(cell.ours or 0.0) for cell in cells), default=0.0)
    close = sum(abs((cell.ours or 0.0) - cell.theirs) <= 1 for cell in cells)
    seeds = f"the {table.seeds} seeds" if table.seeds > 1 else "one seed (no spread: take more)"
    return (
        f"Ours differs from case 1 beyond {seeds} in {len(real)} of {len(cells)} cells; "
        f"the largest change is {largest:.3f} %, and the seeds of one case lie up to "
        f"{spread:.3f} % apart. {close} cells are within one point of what was printed. "
        "none: the seeds of both cases overlap, so that another seed gives another sign."
    )
