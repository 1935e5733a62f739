"""joj in this process: for what a process of its own would not show better, only later."""

from __future__ import annotations

import contextlib
import subprocess
from pathlib import Path

from click.testing import CliRunner

from jojlab.cli import app


def joj(*arguments: str | Path, folder: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run joj in `folder`, if one is given; what it ends with and says is as of a process."""
    words = list(map(str, arguments))
    with contextlib.chdir(folder or Path()):
        answer = CliRunner().invoke(app, words, catch_exceptions=False)
    return subprocess.CompletedProcess(words, answer.exit_code, answer.stdout, answer.stderr)
