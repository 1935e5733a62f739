"""The section on how it was measured: configuration read back, settings, fingerprint."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from jojlab.analysis.run.compare import flatten
from jojlab.analysis.run.summary import RunSummary
from jojlab.report.sections.elements import ask, details, pairs, paragraph, section
from jojlab.report.words import text


def method(summary: RunSummary, run: str) -> str:
    """Say what made the numbers: configuration read back, fingerprint, settings, other cases."""
    settings = summary.experiment.get("settings", {})
    absent = [(c.label, f"{c.status}: {c.reason}") for c in summary.cases if c.status != "ok"]
    parts = ["<h3>Effective configuration, as read back</h3>"]
    parts += [
        details(case.label, "", pairs(_flat(case.configuration)))
        for case in summary.measured
        if case.configuration
    ]
    if absent:
        parts += ["<h3>Cases without figures</h3>", pairs(absent)]
    if settings:
        parts += ["<h3>Settings of the experiment</h3>", pairs(_flat(settings))]
    parts += ["<h3>Fingerprint</h3>", pairs(_flat(summary.fingerprint))]
    same = "   # the same on any machine" if summary.clocks == ("virtual",) else ""
    parts.append(ask(f"joj show {run} --hash{same}", f"joj diff {run} OTHER"))
    clocks = paragraph(text.clocks(summary.clocks))
    return section("method", "How it was measured", clocks, *parts)


def _flat(values: Mapping[str, Any]) -> list[tuple[str, str]]:
    return [
        (name, value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
        for name, value in flatten(values).items()
    ]
