"""Runs the agent's import of a trace into a recording, and tells what it made of it."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from jojlab.foundation.errors import INCOMPLETE
from jojlab.foundation.places import agent_path

# Names of calls that are told one by one; the rest is summed up.
_TOLD_NAMES = 10


def import_trace(
    form: str, files: Sequence[Path], folder: Path, *options: str, as_json: bool
) -> int:
    """Import files of a form into a new folder; print the counts; return the exit code."""
    command = [str(agent_path()), "import", "--output", str(folder), *options]
    command += ["--", form, *map(str, files)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode not in (0, INCOMPLETE):
        return 128 - done.returncode if done.returncode < 0 else done.returncode
    told = json.loads(done.stdout)
    if as_json:
        print(json.dumps({"recording": str(folder), **told}, indent=1, ensure_ascii=False))
    else:
        _tell(told, folder)
    return done.returncode


def _tell(told: dict[str, Any], folder: Path) -> None:
    print(f"{told['lines']} lines: {told['calls']} calls of {told['threads']} threads")
    left_out = sorted(told["left_out"].items(), key=lambda it: (-it[1], it[0]))
    for name, count in left_out[:_TOLD_NAMES]:
        print(f"left out: {count} {name}")
    if more := left_out[_TOLD_NAMES:]:
        print(f"left out: {sum(count for _, count in more)} of {len(more)} other names")
    for line in told["bad"]:
        print(f"not read: {line}")
    if (more_lines := told["bad_lines"] - len(told["bad"])) > 0:
        print(f"not read: {more_lines} more lines")
    for note in told["notes"]:
        print(f"note: {note}")
    for reason in told["reasons"]:
        print(f"incomplete: {reason}")
    print(f"recording  {folder}")
