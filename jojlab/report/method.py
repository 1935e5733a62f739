"""The section on how it was measured: configuration read back, settings, fingerprint."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from jojlab.analysis.run.compare import flatten
from jojlab.analysis.run.summary import RunSummary
from jojlab.report.shared import text
from jojlab.report.shared.template import Section, render


def method_section(summary: RunSummary, run: str) -> Section:
    """Say what made the numbers: configuration read back, fingerprint, settings, other cases."""
    html = render(
        "report/method.html",
        clocks=text.clocks(summary.clocks),
        configurations=[
            (case.label, _flat(case.configuration))
            for case in summary.measured
            if case.configuration
        ],
        absent=[(c.label, f"{c.status}: {c.reason}") for c in summary.cases if c.status != "ok"],
        settings=_flat(summary.experiment.get("settings", {})),
        fingerprint=_flat(summary.fingerprint),
        memory_models=[f"memory-model-{model.core}.json" for model in summary.memory_models],
        run=run,
        same="   # the same on any machine" if summary.clocks == ("virtual",) else "",
    )
    return Section("method", html)


def _flat(values: Mapping[str, Any]) -> list[tuple[str, str]]:
    return [
        (name, value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
        for name, value in flatten(values).items()
    ]
