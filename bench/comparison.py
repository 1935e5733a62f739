"""Compares runs of ours with those of peers, in turns, and prints ratios; and the options that
such comparisons share.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import statistics
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

MEMORY = Path("/dev/shm")

Run = Callable[[], float]
# By name of the peer: the goal, and its run.
Peers = dict[str, tuple[float, Run]]


@dataclass(frozen=True)
class Row:
    """One comparison; `own_rate` and `peer_rate` are medians in operations per second.

    `ratio` is the median of the turns' ratios, `spread` their quartiles; `syncs` the shares of
    time that ours and theirs spend in sync calls, where that was asked for.
    """

    subject: str
    peer: str
    goal: float
    own_rate: float
    peer_rate: float
    ratio: float
    spread: tuple[float, float]
    syncs: tuple[float, float] | None = None

    @property
    def is_met(self) -> bool:
        """Return whether the ratio reaches the goal."""
        return self.ratio >= self.goal

    @property
    def ceiling(self) -> float | None:
        """Return the ratio of a program that waits for the peer's syncs and does nothing else."""
        return 1 / self.syncs[1] if self.syncs and self.syncs[1] else None


def compare(subject: str, own: Run, others: Peers, turns: int) -> list[Row]:
    """Let all take turns; the order is reversed from one turn to the next."""
    found: dict[str, list[float]] = {"": [], **{name: [] for name in others}}
    runs = {"": own, **{name: run for name, (_, run) in others.items()}}
    for turn in range(turns):
        for name in list(runs)[:: 1 if turn % 2 else -1]:
            found[name].append(runs[name]())
    rows = []
    for name, (goal, _) in others.items():
        ratios = [a / b for a, b in zip(found[""], found[name], strict=True)]
        own_rate, peer_rate = statistics.median(found[""]), statistics.median(found[name])
        low, ratio, high = statistics.quantiles(ratios, n=4, method="inclusive")
        rows.append(Row(subject, name, goal, own_rate, peer_rate, ratio, (low, high)))
    return rows


@contextlib.contextmanager
def show_when_interrupted(rows: Sequence[Row]) -> Iterator[None]:
    """Show the rows that are there on stderr where something ends the comparisons early."""
    try:
        yield
    except BaseException:
        if rows:
            show(rows, sys.stderr)
        raise


def show(rows: Sequence[Row], stream: TextIO | None = None) -> None:
    """Print the table."""
    print(
        f"{'':42} {'peer':20} {'ours/s':>8} {'theirs/s':>8} {'ratio':>5} {'goal':>5} "
        f"{'quartiles':>9}  syncs: ours, theirs; ceiling",
        file=stream,
    )
    for row in rows:
        low, high = row.spread
        line = (
            f"{row.subject:42} {row.peer:20} {row.own_rate:8.0f} {row.peer_rate:8.0f} "
            f"{row.ratio:5.2f} {row.goal:5} {low:.2f}-{high:.2f}"
        )
        if row.syncs:
            line += f"  {row.syncs[0]:.0%}, {row.syncs[1]:.0%}"
        if row.ceiling:
            line += f"; {row.ceiling:.2f}"
        print(line + ("" if row.is_met else "  MISSED"), file=stream)


def arguments_of(
    name: str, doc: str | None, *, turns: int, epilog: str = "Exit code 1 when a goal is missed."
) -> argparse.ArgumentParser:
    """Return a parser of --directory, --turns and --json for bench.`name`."""
    parser = argparse.ArgumentParser(prog=f"python -m bench.{name}", description=doc, epilog=epilog)
    parser.add_argument(
        "--directory", type=_folder, default=Path(), help="on the disk to write to (default: .)"
    )
    parser.add_argument(
        "--turns", type=_turns, default=turns, help=f"runs of each (default: {turns})"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    return parser


def add_mobibench(parser: argparse.ArgumentParser) -> None:
    """Add --mobibench, a list of binaries; by default what MOBIBENCH names, if anything."""
    parser.add_argument(
        "--mobibench",
        type=Path,
        action="append",
        default=[Path(os.environ["MOBIBENCH"])] if "MOBIBENCH" in os.environ else [],
        help="a binary of Mobibench (or MOBIBENCH); once more for another",
    )


def _turns(text: str) -> int:
    turns = int(text)
    if turns < 5:
        raise argparse.ArgumentTypeError("medians are of 5 at least")
    return turns


def _folder(text: str) -> Path:
    folder = Path(text)
    if not folder.is_dir():
        raise argparse.ArgumentTypeError(f"{text}: no such directory; make it, or name another")
    return folder
