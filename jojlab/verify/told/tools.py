"""Runs the filesystems' own tools, and reads numbers from what they print."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path


class ToolError(Exception):
    """A tool is missing, fails, or prints what we do not know: the address check is left out."""


def output(*command: str, package: str, folder: Path | None = None, commands: str = "") -> str:
    """Run a tool in a folder with commands on its input; return what it prints."""
    if not shutil.which(command[0]):
        raise ToolError(f"{command[0]} is not installed: sudo apt-get install {package}")
    answer = subprocess.run(
        command, capture_output=True, text=True, errors="replace", cwd=folder, input=commands
    )
    if answer.returncode:
        raise ToolError(f"{' '.join(command)}: {answer.stderr.strip()}")
    return answer.stdout


def number(pattern: str, text: str) -> int:
    """Return the one number of a pattern; ToolError where the text has none."""
    found = re.search(pattern, text)
    if not found:
        raise ToolError(f"no {pattern!r} in what the tool prints")
    return int(found[1], 0)
