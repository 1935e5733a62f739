"""Says what the self-test of attribution found: the short answer, a table, and the steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.markup import escape

from jojlab.report.shared.console import READABLE, print_rows, terminal
from jojlab.report.shared.short_answer import (
    RankedLine,
    count,
    fit_lines,
    print_answer,
    sentence,
    size,
)
from jojlab.verify.compare import COLUMNS, Verdict

# What is wrong, and what is not known.
_FAULTS = {
    "misattributed_bytes": "of the wrong file or place",
    "missing_bytes": "not seen",
    "address_wrong_bytes": "other than the filesystem's tools say",
    "wrong_asker_requests": "requests of the wrong sync",
    "unknown_bytes": "without a file",
    "askerless_requests": "requests of a sync without one",
    "lost_events": "events lost",
}


def short_lines(verdicts: Sequence[Verdict], untested: Sequence[str]) -> tuple[str, ...]:
    """Return the short answer: what was right, what was not compared, and what is wrong where."""
    right = [verdict for verdict in verdicts if not verdict.is_wrong and not verdict.is_incomplete]
    lines: list[RankedLine] = []
    if right:
        lines.append((0, f"Right in all steps that were done: {_names(right)}."))
        checked = size(sum(verdict.counts["checked_bytes"] for verdict in right))
        requests = sum(verdict.counts["checked_requests"] for verdict in right)
        what = f"Of {checked} compared, each byte has its file"
        if requests:
            what += f"; of {count(requests, 'request')}, each has its sync"
        lines.append((1, f"{what}."))
        without = [verdict for verdict in right if not verdict.counts["checked_requests"]]
        places = [verdict for verdict in right if verdict.addresses.missing]
        unknown = (
            f"whose sync a request is, on {_names(without)}" if without else "",
            f"the place on the disk, on {_names(places)}" if places else "",
        )
        lines.append((2, sentence(unknown, "Not compared: ")))
    for rank, verdict in enumerate(verdicts, 3):
        if verdict.is_wrong or verdict.is_incomplete:
            lines.append((rank, _faults(verdict)))
    missing = f"Not tested: {', '.join(untested)}." if untested else ""
    return fit_lines(lines, missing or ("" if lines else "Nothing was tested."))


def _names(verdicts: Sequence[Verdict]) -> str:
    return ", ".join(verdict.filesystem for verdict in verdicts)


def _faults(verdict: Verdict) -> str:
    """Say what is wrong or not known of a filesystem."""
    row = verdict.row()
    parts = (
        f"{size(row[name]) if name.endswith('bytes') else row[name]} {words}"
        for name, words in _FAULTS.items()
        if row[name]
    )
    begin = f"{verdict.filesystem}: "
    return sentence(parts, begin) or f"{begin}incomplete, see below."


def print_verdicts(
    verdicts: Sequence[Verdict], skipped: Mapping[str, str], failed: Mapping[str, str]
) -> None:
    """Print the answer, the counts, and what was done, left out and complained of."""
    console = terminal(READABLE)
    print_answer(console, short_lines(verdicts, [*skipped, *failed]))
    name, *counts = COLUMNS
    heads = [name, *(verdict.filesystem for verdict in verdicts)]
    print_rows(console, heads, [[it, *(v.row()[it] for v in verdicts)] for it in counts])
    notes = []
    for verdict in verdicts:
        addresses = verdict.addresses
        if addresses.sources:
            notes.append(f"{verdict.filesystem}: addresses by {', '.join(addresses.sources)}")
        if addresses.missing:
            notes.append(f"{verdict.filesystem}: addresses not checked: {addresses.missing}")
        notes.append(f"{verdict.filesystem}: done: {', '.join(verdict.did)}")
        for step, reason in verdict.left_out.items():
            notes.append(f"{verdict.filesystem}: left out: {step}: {reason}")
        for line in (*verdict.complaints, *verdict.reasons):
            notes.append(f"{verdict.filesystem}: {line}")
    for name, reason in skipped.items():
        notes.append(f"{name}: skipped: {reason}")
    for name, reason in failed.items():
        notes.append(f"{name}: failed: {reason}")
    for note in notes:
        console.print(escape(note))
