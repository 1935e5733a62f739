"""Says what power cuts did to transactions of SQL that were drawn: which script was harmed, and the
fewest of its transactions that are.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jojlab.analysis.run.durability import durability_json
from jojlab.analysis.run.summary import CaseSummary
from jojlab.report import durability
from jojlab.report.shared import text
from jojlab.report.shared.short_answer import fit_lines


@dataclass(frozen=True)
class HarmedScript:
    """A script that a power cut harms: its number among those that were drawn, how many
    transactions it had, those of them that are needed, and the case with these.
    """

    number: int
    transactions: int
    script: tuple[str, ...]
    case: CaseSummary


def short_lines(
    count: int, states: int, harmed: HarmedScript | None, folder: Path | None
) -> tuple[str, ...]:
    """Return the short answer about `count` scripts of which so many states each were asked."""
    judged = text.integer(states, "state")
    if harmed is None:
        scripts = f"None of {text.integer(count, 'script')} was seen harmed in a way that the"
        return (f"{scripts} manuals rule out, in {judged} of each, which proves nothing safe.",)
    fewest = text.integer(len(harmed.script), "transaction")
    of = (
        f"of its {harmed.transactions}" if len(harmed.script) < harmed.transactions else "all of it"
    )
    worst = " ".join(durability.worst_sentence(harmed.case).split())
    return fit_lines(
        [
            (0, f"Script {harmed.number} was harmed: {fewest}, {of}, are enough."),
            (1, f"{harmed.case.case_id}: {durability.outcome_words(harmed.case)}."),
            (2, worst),
            (1, f"Kept in {folder}: joj verify durability takes it as --set workload=sql-recorded"),
            (1, f"--set scripts={folder}, beside the settings of this run."),
        ]
    )


def harm_json(harmed: HarmedScript, folder: Path) -> dict[str, Any]:
    """Return the script, which is kept in a folder, and what was found, as --json prints it."""
    assert harmed.case.durability
    return {
        "number": harmed.number,
        "transactions": harmed.transactions,
        "script": list(harmed.script),
        "case": {**harmed.case.case, "scripts": str(folder)},
        "durability": durability_json(harmed.case.durability, None, ""),
        "worst_state": durability.worst_sentence(harmed.case),
    }
