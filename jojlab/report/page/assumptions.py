"""Writes the page of a device's assumptions: what each number of its profile rests on, and how much
those that may be wrong move the figures, as Markdown with a picture, and as a table for programs.
"""

from __future__ import annotations

import csv
from pathlib import Path

from jojlab.campaign.sensitivity import Effect, Sensitivity
from jojlab.device.profile import Profile
from jojlab.device.ranges import Origin, Tried
from jojlab.foundation.errors import MachineError
from jojlab.report.charts.tornado import tornado_svg

MEANINGS = {
    Origin.MEASURED: "somebody measured it",
    Origin.PRINTED: "a data sheet, a standard, a paper or another program says so",
    Origin.ASSUMPTION: "nobody says so",
    Origin.FITTED: "fitted to a figure that was measured or printed",
    Origin.NOT_USED: "it has no effect on this device",
}
COLUMNS = ("case", "key", "value", "tried", "change", "failure")


def write_page(found: Sensitivity, profile: Profile, folder: Path, command: str) -> list[Path]:
    """Write assumptions.md, .svg and .csv into the folder; return their paths."""
    page, picture, table = (folder / f"assumptions.{end}" for end in ("md", "svg", "csv"))
    try:
        folder.mkdir(parents=True, exist_ok=True)
        picture.write_text(tornado_svg(found), encoding="utf-8")
        page.write_text(_page(found, profile, picture.name, command), encoding="utf-8")
        with table.open("w", newline="", encoding="utf-8") as stream:
            rows = csv.writer(stream)
            rows.writerow(COLUMNS)
            values = {number.key: number.value for number in found.numbers}
            for row in found.effects:
                change = "" if row.change is None else f"{row.change:.6f}"
                usual = values[row.key]
                rows.writerow((row.case_id, row.key, usual, row.value, change, row.failure))
    except OSError as error:
        raise MachineError(f"{folder}: {error.strerror}", "name a folder with --out") from error
    return [page, picture, table]


def _page(found: Sensitivity, profile: Profile, picture: str, command: str) -> str:
    parts = [
        f"# What hangs on the assumptions of {profile.name}",
        f"{profile.title}. Each number of the profile that may be wrong is set to a low and to a "
        f"high value, one number at a time; all others stay as they are, the fitted one too. The "
        f"table says how much {found.figure} changes by it. Made by",
        f"    {command}",
        _origins(found),
        f"![What each number moves]({picture})",
        _effects(found),
        "The phase of the kernel's timers alone moves a figure by up to 1 %. " + _unmoved(found),
        "## Where every number is from",
        _sources(found),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _origins(found: Sensitivity) -> str:
    rows = ["| numbers | what they rest on |", "|---|---|"]
    for word, meaning in MEANINGS.items():
        count = sum(number.origin is word for number in found.numbers)
        rows.append(f"| {count} | {word}: {meaning} |")
    return "\n".join(rows)


def _moves(found: Sensitivity, number: Tried) -> bool:
    return found.largest(number.key) >= 0.01


def _effects(found: Sensitivity) -> str:
    cases = list(found.base)
    head = ["number", "tried", "range from", *cases]
    usual = ["as it is", "", "", *(f"{found.base[case]:,.2f}" for case in cases)]
    rows = [head, ["---"] * len(head), usual]
    changes = {(row.key, row.value, row.case_id): row for row in found.effects}
    for number in found.by_effect():
        if not _moves(found, number):
            continue
        for value in number.values:
            told = [_change(changes[number.key, value, case]) for case in cases]
            rows.append([f"`{number.key}` = {number.value:,}", f"{value:,}", number.why, *told])
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _change(effect: Effect) -> str:
    if effect.change is None:
        return "cannot run"
    return f"{effect.change:+.1%}" if abs(effect.change) >= 0.0005 else "0"


def _unmoved(found: Sensitivity) -> str:
    still = [f"`{number.key}`" for number in found.by_effect() if not _moves(found, number)]
    untried = [
        f"`{number.key}`"
        for number in found.numbers
        if number.origin in (Origin.ASSUMPTION, Origin.FITTED) and not number.values
    ]
    words = f"These move no figure by more: {', '.join(still)}." if still else ""
    if untried:
        words += f" Not tried, as half and double of 0 are 0: {', '.join(untried)}."
    return words.strip()


def _sources(found: Sensitivity) -> str:
    rows = ["| number | value | from | source |", "|---|---|---|---|"]
    for number in found.numbers:
        said = number.source.replace("|", "\\|")
        rows.append(f"| `{number.key}` | {number.value:,} | {number.origin} | {said} |")
    return "\n".join(rows)
