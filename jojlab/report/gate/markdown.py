"""Writes the verdicts of a gate as Markdown, as a CI server shows it beside a change."""

from __future__ import annotations

import re
from collections.abc import Sequence

from jojlab.foundation.printable import printable
from jojlab.gate.check import Held, LimitVerdict
from jojlab.report.words import gate

# What Markdown or HTML would take for its own.
_MARKS = re.compile(r"([\\`*_\[\]<>|#~&])")


def markdown(verdicts: Sequence[LimitVerdict], name: str) -> str:
    """Return the text: a table of all limits, then what became of those that do not hold."""
    rows = [
        f"### {_plain(name)}: {_plain(gate.summary(verdicts))}",
        "",
        "| case | limit | | now | accepted |",
        "|---|---|---|---:|---:|",
    ]
    for each in verdicts:
        kept = each.kept if each.kept is Held.KEPT else f"**{each.kept}**"
        cells = (each.label, each.limit.text, gate.value(each), gate.before(each))
        label, limit, value, before = map(_plain, cells)
        rows.append(f"| {label} | {limit} | {kept} | {value} | {before} |")
    for each in verdicts:
        if each.kept is not Held.KEPT:
            rows += ["", f"**{each.kept}**: {_plain(gate.headline(each))}", ""]
            rows += [f"- {_plain(told)}" for told in gate.details(each)]
    return "\n".join([*rows, "", gate.NO_TOLERANCE, ""])


def _plain(told: str) -> str:
    return _MARKS.sub(r"\\\1", printable(told))
