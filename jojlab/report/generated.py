"""Says what power cuts did to drawn scripts: which one was harmed, and its fewest such steps."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jojlab.analysis.run.durability import durability_json
from jojlab.analysis.run.summary import CaseSummary
from jojlab.campaign.generated import ScriptKind
from jojlab.model.filesystem import TornBlock
from jojlab.model.filesystems import TORN_BLOCKS
from jojlab.report import durability
from jojlab.report.shared import text
from jojlab.report.shared.short_answer import fit_lines


@dataclass(frozen=True)
class HarmedScript:
    """A script that a power cut harms: its number among those that were drawn, how many steps it
    had, those of them that are needed, and the case with these.
    """

    number: int
    steps: int
    script: tuple[str, ...]
    case: CaseSummary


def short_lines(
    kind: ScriptKind,
    count: int,
    states: int,
    harmed: HarmedScript | None,
    folder: Path | None,
    torn_blocks: Counter[TornBlock],
    failed: int,
) -> tuple[str, ...]:
    """Return the short answer about `count` scripts of which so many states each were asked; of so
    many cases the judging failed.
    """
    unjudged = f"Failed, and so not judged: {text.integer(failed, 'case')}." if failed else ""
    torn = [
        (1, f"Not counted: {block.words} in {text.integer(met, 'state')}; no script avoids it.")
        for block in TORN_BLOCKS
        if (met := torn_blocks[block])
    ]
    if harmed is None:
        # Of a short script there may be fewer states.
        judged = f"{text.integer(count, 'script')}, up to {text.integer(states, 'state')} each"
        first = f"No harm against the manuals in {judged}; that proves nothing safe."
        return fit_lines([(0, first), *torn], unjudged)
    fewest = text.integer(len(harmed.script), kind.step)
    of = f"of its {harmed.steps}" if len(harmed.script) < harmed.steps else "all of it"
    worst = " ".join(durability.worst_sentence(harmed.case).split())
    return fit_lines(
        [
            (0, f"Script {harmed.number} was harmed: {fewest}, {of}, are enough."),
            (1, f"{harmed.case.case_id}: {durability.outcome_words(harmed.case)}."),
            (2, worst),
            (1, f"It is kept: joj verify durability --set workload={kind.workload}"),
            (1, f"--set {kind.field}={folder}, beside the settings of this run, judges it again."),
            *torn,
        ],
        unjudged,
    )


def harm_json(kind: ScriptKind, harmed: HarmedScript, folder: Path) -> dict[str, Any]:
    """Return the script, which is kept in a folder, and what was found, as --json prints it."""
    assert harmed.case.durability
    return {
        "number": harmed.number,
        "steps": harmed.steps,
        "script": list(harmed.script),
        "case": {**harmed.case.case, kind.field: str(folder)},
        "durability": durability_json(harmed.case.durability, None, ""),
        "worst_state": durability.worst_sentence(harmed.case),
    }
