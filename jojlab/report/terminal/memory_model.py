"""Prints what a memory model counted of each case; computes nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.markup import escape

from jojlab.report.terminal.console import new_table


def print_memory_model(console: Console, found: Mapping[str, Any]) -> None:
    """Print a line a case and seed, the touches of each buffer, and the costliest functions."""
    console.print(f"\n[bold]Memory model: {escape(str(found['title']))}[/bold]")
    for source in found["sources"]:
        console.print(f"[dim]{escape(str(source))}[/dim]")
    table = new_table(
        ("case", "left"), ("seed", "right"), ("loads", "right"), ("stores", "right"),
        ("micro TLB misses", "right"), ("levels walked", "right"), ("L1 misses", "right"),
        ("L2 misses", "right"), ("added", "right"),
    )  # fmt: skip
    buffers = new_table(
        ("case", "left"), ("buffer", "left"), ("loads", "right"), ("stores", "right"),
        ("bytes", "right"), ("levels walked", "right"), ("L1 misses", "right"), ("added", "right"),
    )  # fmt: skip
    for case in found["cases"]:
        for seed, modelled in case["seeds"].items():
            every = modelled["all"]
            table.add_row(
                escape(case["case_id"]), seed, *_numbers(every, "loads", "stores",
                "micro_tlb_misses", "walk_levels", "l1_misses", "l2_misses"), _ms(every),
            )  # fmt: skip
        for name, counts in modelled["buffers"].items():
            buffers.add_row(
                escape(case["case_id"]), name,
                *_numbers(counts, "loads", "stores", "bytes", "walk_levels", "l1_misses"),
                _ms(counts),
            )  # fmt: skip
    console.print(table)
    if any(each["buffers"] for case in found["cases"] for each in case["seeds"].values()):
        console.print("Accesses to the buffers while transactions ran, of the last seed:")
        console.print(buffers)
    first = found["cases"][0] if found["cases"] else None
    if first:
        modelled = next(iter(first["seeds"].values()))
        words = ", ".join(f"{name} {_ms(c)}" for name, c in modelled["functions"].items())
        console.print(f"[dim]costliest of {escape(first['case_id'])}: {escape(words)}[/dim]")
    console.print(
        "[dim]A model: loads and stores of x86-64 code in the tables of another core, which drop "
        "what was used longest ago and keep stores. Without prefetching, store buffers and misses "
        "that overlap it adds time that a core may hide; without instruction fetches and address "
        "spaces in the TLB it leaves some out. The run itself is unchanged.[/dim]"
    )


def _numbers(counts: Mapping[str, Any], *names: str) -> list[str]:
    return [f"{counts[name]:,}" for name in names]


def _ms(counts: Mapping[str, Any]) -> str:
    return f"{counts['added_ns'] / 1e6:,.3f} ms"
