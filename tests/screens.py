"""The whole output of commands on terminals of 80, 100 and 160 columns, as files of
jojlab/report/screens: a change of words is then a difference to read.

JOJ_WRITE_SCREENS=1 .venv/bin/pytest jojlab/report/test_screens.py jojlab/fleet/report writes them,
and with tests/live/test_record.py -k screen that of joj record.
"""

from __future__ import annotations

import io
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.console import Console

from jojlab.report.shared.console import QuietConsole

SCREENS = Path(__file__).parents[1] / "jojlab" / "report" / "screens"
each_width = pytest.mark.parametrize("width", [80, 100, 160])


def check_screen(name: str, width: int, show: Callable[[Console], None]) -> None:
    """Compare what `show` prints on a terminal so wide with its file."""
    printed = io.StringIO()
    show(QuietConsole(file=printed, width=width, highlight=False))
    screen = "\n".join(line.rstrip() for line in printed.getvalue().splitlines()) + "\n"
    path = SCREENS / f"{name}-{width}.txt"
    if os.environ.get("JOJ_WRITE_SCREENS"):
        path.write_text(screen, encoding="utf-8")
    assert screen == path.read_text(encoding="utf-8")
