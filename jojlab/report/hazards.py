"""Describes what a power cut or a crash may destroy; computes nothing.

Gets hazards (jojlab/analysis/run/risks.py); returns sentences, and the short words of tables.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from jojlab.analysis.run.summary import CaseSummary
from jojlab.model.hazards import SEEN_IN_COMMITS, Doubt, Harm, Hazard, Unknown

# The words of a column or a mark, in the order in which they are shown.
SHORT = {
    Harm.COMMITS: "last commits",
    Harm.WRITES: "last writes",
    Harm.NAMES: "last changes of names",
    Harm.TRANSACTION: "atomicity",
    Harm.DATABASE: "database",
    Harm.DATABASE_BY_CRASH: "database",
    Harm.FILESYSTEM: "filesystem",
    Harm.STALE_DATA: "contents",
    Harm.STATED: "see below",
}

# Of settings that risk nothing: the manuals promise nothing of the device or of faults in programs.
NONE = "no warning"
# Where too little is known for that.
NOT_KNOWN = "not known"

_MOST_NAMED = 3

_UNKNOWN = {
    Doubt.NO_SETTINGS: "with which settings its writes were made is not known",
    Doubt.NO_RULE: "what workload {} promises is not known",
    Doubt.NOT_SEEN: "its commits were not looked at",
    Doubt.LOST_CALLS: "the run is incomplete: commits may be missing among those that were seen",
    Doubt.NO_SQLITE: "no SQLite was seen in it: what it promises of its files is not known",
    Doubt.NO_COMMIT: "it has a database of SQLite, but no commit was found: how it makes one "
    "durable is not known",
    Doubt.FILESYSTEM: "what a sync promises on {} is not known",
}


def hazard_sentences(hazards: Iterable[Hazard]) -> tuple[str, ...]:
    """Return one sentence for each cause; one that may do several harms names them all."""
    found = tuple(hazards)
    of_files = not {Harm.WRITES, Harm.NAMES}.isdisjoint(each.kind for each in found)
    words = (
        ((of_files and each.cause.file_sentence) or each.cause.sentence).format(each.value or "?")
        for each in found
    )
    return tuple(dict.fromkeys(words))


def risk_words(hazards: Iterable[Hazard]) -> str:
    """Return what may be lost as a table shows it, such as "last commits, atomicity"."""
    kinds = {each.kind for each in hazards}
    words = dict.fromkeys(word for kind, word in SHORT.items() if kind in kinds)
    return ", ".join(words)


def doubt_sentences(unknowns: Iterable[Unknown]) -> tuple[str, ...]:
    """Return a sentence for each thing that is not known of a case."""
    nameless = {Doubt.FILESYSTEM: "its filesystem"}
    return tuple(
        _UNKNOWN[each.doubt].format(each.value or nameless.get(each.doubt, "?"))
        for each in unknowns
    )


def manuals(case: CaseSummary, has_room: bool = False) -> str:
    """Return what the manuals say of a case as a table shows it: what is at risk, that too little
    is known, or that they warn of nothing. Where there is room, how many commits are at risk is
    said, if that is one number: " in 1 of 52 commits (DELETE)".
    """
    risk = risk_words(case.hazards)
    if has_room:
        shares = {each.value if each.cause in SEEN_IN_COMMITS else "" for each in case.hazards}
        risk += f" in {shares.pop()}" if len(shares) == 1 and all(shares) else ""
    if case.unknowns:
        return f"{risk}; else {NOT_KNOWN}" if risk else NOT_KNOWN
    return risk or NONE


def risk_mark(case: CaseSummary) -> str:
    """Return what stands below a case's name; nothing where a commit survives a power cut."""
    if case.hazards:
        return f"at risk: {manuals(case)}"
    return f"safety: {NOT_KNOWN}" if case.unknowns else ""


def summarise_labels(labels: Sequence[str], cases: int) -> str:
    """Return which cases a sentence is said of: all, some by name, or how many of how many."""
    if len(labels) == cases:
        return "every case" if cases > 1 else labels[0]
    if len(labels) <= _MOST_NAMED:
        return "; ".join(labels)
    return f"{len(labels)} of {cases} cases"


def cases_by_sentence(cases: Sequence[CaseSummary]) -> dict[str, str]:
    """Return every sentence, risks before doubts, with the words for its cases."""
    found: dict[str, list[str]] = {}
    for case in cases:
        for sentence in hazard_sentences(case.hazards):
            found.setdefault(sentence, []).append(case.label)
    for case in cases:
        for sentence in doubt_sentences(case.unknowns):
            found.setdefault(f"{NOT_KNOWN}: {sentence}", []).append(case.label)
    return {sentence: summarise_labels(labels, len(cases)) for sentence, labels in found.items()}
