"""What is known of a case's commits and of where they were made, beside its fields?

Reads what the captures' manifests say; gives what risks.py has to know.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any

from jojlab.analysis.rows.completeness import Completeness
from jojlab.analysis.run.findings import Manifests
from jojlab.model.hazards import ModeCounts, Observation

_COUNTS = tuple(each.name for each in fields(ModeCounts))


def observation_of(case_id: str, manifests: Manifests, missing: Completeness) -> Observation:
    """Return what is known of a case: its scripts' databases, and a program's or replay's commits,
    those of all seeds together.
    """
    programs = list(manifests.programs.get(case_id, {}).values())
    replays = list(manifests.replays.get(case_id, {}).values())
    found = [*programs, *replays]
    configuration = manifests.configurations.get(case_id, {})
    return Observation(
        databases=databases_of(configuration.get("scripts") or ()),
        modes=_modes(found),
        found_databases=sum(int(each.get("databases", 0)) for each in found),
        lost_calls=any(each.get("lost_calls") for each in programs)
        or bool(replays and missing.reasons),
    )


def databases_of(scripts: Iterable[Mapping[str, Any]]) -> int:
    """Return how many databases a connection of some scripts has open, at most."""
    return max((1 + len(each.get("attached") or ()) for each in scripts), default=1)


def place_of(case: Mapping[str, Any], configuration: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a case with the filesystem that it ran on, where its fields do not say that: of a run
    in a directory of this machine the manifest has its line of /proc/mounts.
    """
    if not case or "filesystem" in case or not configuration.get("filesystem"):
        return case
    line = str(configuration.get("mount") or "").split(" ")
    options = line[3] if len(line) == 4 else ""
    return {**case, "filesystem": configuration["filesystem"], "mount_options": options}


def _modes(rows: Iterable[Mapping[str, Any]]) -> dict[str, ModeCounts] | None:
    """Return the commits by journal mode of some seeds; None where one did not tell them."""
    sums: dict[str, Counter[str]] = {}
    is_told = False
    for each in rows:
        if "journal_modes" not in each:
            return None
        is_told = True
        for mode, counts in each["journal_modes"].items():
            sums.setdefault(mode, Counter()).update({n: int(counts[n]) for n in _COUNTS})
    return {mode: ModeCounts(**counts) for mode, counts in sums.items()} if is_told else None
