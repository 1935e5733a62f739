"""The agent's table of system calls, as tests read it."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def call_rows() -> dict[str, dict[str, str]]:
    """Return what the table says of each call, by its name: "x86_64" is its number there."""
    text = (ROOT / "agent/src/system_calls/table.txt").read_text()
    text = re.sub(r"\n +", " ", re.sub(r"(?m)^#.*\n", "", text))
    rows = {}
    for line in filter(None, text.split("\n")):
        name, number, *facts = line.split()
        pairs = (fact.partition("=") for fact in facts)
        rows[name] = {"x86_64": number} | {key: value for key, _, value in pairs}
    return rows
