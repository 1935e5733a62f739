"""The short answer of a fleet's report: what a device commits and writes a day, what that costs,
who writes most, what the lab's settings would take, and what is missing. Computes nothing but
shares.
"""

from __future__ import annotations

from jojlab.fleet.report.words import known_name, loss_lines, size_of
from jojlab.fleet.study.study import FleetStudy
from jojlab.report.shared.short_answer import count, duration, fit_lines, number, percent, sentence

_DIGITS = 3


def fleet_lines(study: FleetStudy) -> tuple[str, ...]:
    """Return at most six lines of at most 100 columns, of means of a device and day."""
    lost = [line.partition(": ")[0] for line in loss_lines(study.losses)]
    if study.left_out:
        lost.append(f"{count(len(study.left_out), 'file')} cannot be read")
    return fit_lines(
        [
            (0, _day(study)),
            (0, _commits(study)),
            (1, _bytes(study)),
            (2, _writers(study)),
            (3, _multi_file(study)),
            (0, _settings(study)),
            (1, "" if lost else "Nothing that was observed is missing."),
        ],
        sentence(lost, "Incomplete: "),
    )


def _day(study: FleetStudy) -> str:
    return (
        f"A device commits {_mean(study.daily_commits, 'time')} a day and writes "
        f"{size_of(study.daily_write_bytes, _DIGITS)}: {count(len(study.coverage), 'device')}, "
        f"{count(study.device_days, 'device-day')}."
    )


def _commits(study: FleetStudy) -> str:
    """Say what commits of the commonest sort cost."""
    commits = [row for row in study.commits if row["kind"] == "commit"]
    if not commits:
        return "No commit was seen."
    first = max(commits, key=lambda row: int(row["commits"]))
    share = first["commits"] / sum(row["commits"] for row in commits)
    parts = [
        f"{percent(share)} of the commits are {first['journal_mode']} with {first['sync_call']}",
        f"median {duration(first['median_ns'])}" if first["median_ns"] is not None else "",
        f"95 % within {duration(first['p95_ns'])}" if first["p95_ns"] is not None else "",
    ]
    return sentence(parts, between=", ")


def _bytes(study: FleetStudy) -> str:
    parts = [
        f"{percent(share)}{' ' if place else ' of the bytes written are '}{name}"
        for place, (name, share) in enumerate(study.written_shares)
    ]
    return sentence(parts, between=", ")


def _writers(study: FleetStudy) -> str:
    whole = sum(each.daily_bytes for each in study.apps)
    if not whole:
        return ""
    first = study.apps[0]
    words = f"{first.process or 'A process without a name'} writes most, "
    words += f"{percent(first.daily_bytes / whole)} of the bytes"
    if first.life_a_year is None:
        return f"{words}."
    at_least = "at least " * (study.amplification == 1)
    return f"{words}: {at_least}{number(first.life_a_year * 100)} % of the flash's life a year."


def _multi_file(study: FleetStudy) -> str:
    if not study.multi_file:
        return "No transaction was over several databases."
    words = f"{_mean(study.multi_file / study.device_days, 'transaction')} a day "
    words += "were over several databases"
    if not study.multi_file_apps:
        return f"{words}."
    first = study.multi_file_apps[0]
    share = percent(first["transactions"] / study.multi_file)
    return f"{words}, {share} of them of {known_name(first['database_name'])}."


def _settings(study: FleetStudy) -> str:
    timed = [(each.waited_ns, each.label) for each in study.settings if each.waited_ns is not None]
    if not timed:
        return ""
    (least_ns, cheapest), (most_ns, dearest) = min(timed), max(timed)
    words = f"By the lab's bills these commits wait {duration(least_ns)} a day with {cheapest}"
    return sentence([words, f"{duration(most_ns)} with {dearest}" if len(timed) > 1 else ""])


def _mean(value: float, noun: str) -> str:
    return count(round(value, 0 if value >= 100 else 1), noun)
