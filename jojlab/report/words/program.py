"""Words for how a program that is not ours ended, what was found of it, and why it has no bill."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from jojlab.analysis.figures.apart import Apart
from jojlab.foundation.printable import printable
from jojlab.report.words import cost

_MOST_LINES = 20


def sentence(program: Mapping[str, Any]) -> str:
    """Say how it ended, and which transactions were found; `program` is of the manifest."""
    name = printable(str(program["command"][0]))
    if program["timed_out"]:
        end = "was killed at its time limit"
    elif program["signal"] is not None:
        end = f"was ended by signal {program['signal']}"
    else:
        end = f"ended with exit code {program['exit_code']}"
    found = [
        _counted(program["commits"], "commit of SQLite", "commits of SQLite"),
        _counted(program["checkpoints"], "checkpoint", "checkpoints"),
        _counted(program["rollbacks"], "rollback", "rollbacks"),
        _counted(program["syncs"], "other sync", "other syncs"),
    ]
    words = ", ".join(filter(None, found))
    after = ""
    if program["bytes_after_last"]:
        after = f"; {program['bytes_after_last']} bytes were written"
        after += " after the last of them" if words else ""
    return f"{name} {end}: {words or 'no call that makes anything durable'}{after}"


def no_bill(programs: Mapping[int, Mapping[str, Any]], apart: Iterable[Apart] = ()) -> str:
    """Say why a case has no bill; `programs` is by seed, and empty for other workloads. `apart` are
    its transactions that are no commits.
    """
    why = "; ".join(filter(None, (*map(sentence, programs.values()), cost.beside(apart))))
    return "no bill: no commit was measured, so that there is none to divide by" + (
        f" ({why})" if why else ""
    )


def output(program: Mapping[str, Any]) -> str:
    """Return the beginning of what it wrote."""
    lines = str(program["output"]).splitlines()
    shown = [f"  | {printable(line)}" for line in lines[:_MOST_LINES]]
    if len(lines) > _MOST_LINES or program["output_bytes"] > len(program["output"].encode()):
        shown.append(f"  | ... ({program['output_bytes']} bytes in all)")
    return "\n".join(shown) or "  (it wrote nothing)"


def _counted(count: int, one: str, many: str) -> str:
    return f"{count} {one if count == 1 else many}" if count else ""
