"""Prints what an adviser found: in short, a ranking, each answer with its lines, the refused."""

from __future__ import annotations

import math
from collections.abc import Mapping

from rich.console import Console
from rich.markup import escape

from jojlab.advise.advice import Advice, speed_up
from jojlab.advise.asked import Asked
from jojlab.advise.score import Score
from jojlab.advise.space import Candidate, Space
from jojlab.analysis.commit.lines import GrownLine
from jojlab.analysis.run.guarantee import Guarantee
from jojlab.report.terminal.console import new_table
from jojlab.report.words import advice as words
from jojlab.report.words import text
from jojlab.report.words.advice_in_short import in_short

# Of an interrupted search: settings whose power was not cut.
_MOST_FOUND = 5


def print_advice(
    console: Console, advice: Advice, asked: Asked, gone: Mapping[str, tuple[GrownLine, ...]]
) -> None:
    """Print it; `gone` are the lines of the bill that each choice saves, by its name."""
    assert advice.present
    for name, told in in_short(advice, asked).items():
        console.print(f"[bold]{name}:[/bold] {escape(told)}")
    for told in words.incomplete(advice):
        console.print(f"[bold yellow]incomplete:[/bold yellow] {escape(told)}")
    console.print(
        f"[bold]present[/bold] {escape(words.label(asked.space.settings(asked.space.own)))}"
    )
    # The settings of the others stand below: a table with them is wider than a terminal.
    table = new_table(
        ("", "left"),
        ("speed", "right"),
        ("commit", "right"),
        ("p99", "right"),
        ("device", "right"),
        ("flash", "right"),
        *([("years", "right")] if asked.limits.commits_a_day else []),
        ("after power cuts", "left"),
    )
    for name, choice in advice.named:
        found = choice.score
        years = asked.flash.years(found.nand_bytes, asked.limits.commits_a_day)
        table.add_row(
            name,
            words.speed(speed_up(choice, advice.present)),
            text.duration(found.commit_ns),
            text.duration(found.p99_ns),
            text.size(found.bytes),
            text.size(found.nand_bytes),
            *([_years(years)] if asked.limits.commits_a_day else []),
            escape(words.survives(choice)),
        )
    console.print(table)
    console.print(
        "[dim]per commit; speed: by the row, beside the present settings; device: bytes sent to "
        "it; flash: bytes that it programs[/dim]"
    )
    for number, choice in enumerate(advice.answers, 1):
        name = f"answer-{number}"
        _print_answer(console, name, choice.candidate, asked.space, gone.get(name, ()))
        if told := words.states_judged(choice, asked.states):
            console.print(f"  tested: {escape(told)}")
        if risk := words.worst(choice):
            console.print(f"  [yellow]risk:[/yellow] {escape(risk)}")
    for number, choice in enumerate(advice.refused, 1):
        told = words.label(asked.space.settings(choice.candidate))
        worst = words.worst(choice) or words.survives(choice)
        by = "; the manuals refuse it too" if choice.manual_refuses else ""
        if by and not words.worst(choice):
            by = f"; {words.ruled_out(asked.space, choice.candidate)}"
        console.print(
            f"[bold yellow]refused-{number}[/bold yellow] {escape(f'{told}: {worst}{by}')}"
        )
    if not asked.states and asked.space.guarantee is not Guarantee.NONE:
        console.print(f"[yellow]{words.NOT_CUT}[/yellow]")
    for filesystem, reason in words.left_out(asked.space).items():
        console.print(f"[yellow]left out[/yellow] {escape(f'{filesystem}: {reason}')}")
    if advice.over_limits:
        console.print(escape(words.over_limits(advice, asked)))
    for candidate, why in advice.failed.items():
        told = words.label(asked.space.settings(candidate))
        console.print(f"[yellow]not measured[/yellow] {escape(f'{told}: {why}')}")
    whole = len(asked.space.candidates)
    among = "" if asked.space.guarantee is Guarantee.NONE else " that the manuals allow"
    console.print(f"{whole:,} settings{among}; {advice.measured} measured, refused ones with them")


def print_found(
    console: Console, advice: Advice, scores: Mapping[Candidate, Score], space: Space
) -> None:
    """Print what an interrupted search found: the cheapest of what was measured and is within the
    limits, those whose power was cut first, and those that were refused last; with the lines of the
    first. Nothing where nothing was measured.
    """
    allowed = sorted(filter(space.is_allowed, scores), key=lambda each: scores[each].row_ns)
    judged = {each.candidate: each for each in [*advice.answers, *advice.refused]}
    answers = [each.candidate for each in advice.answers]
    others = [each for each in allowed if each not in judged][:_MOST_FOUND]
    going = [*answers, *others]
    refused = [each.candidate for each in advice.refused if each.candidate in scores]
    if not (going or refused):
        return
    table = new_table(
        ("cheapest so far", "left"), ("commit", "right"), ("p99", "right"),
        ("after power cuts", "left"),
    )  # fmt: skip
    for candidate in (*going, *refused):
        found, choice = scores[candidate], judged.get(candidate)
        table.add_row(
            escape(words.label(space.settings(candidate))),
            text.duration(found.commit_ns),
            text.duration(found.p99_ns),
            escape(words.survives(choice)) if choice else "not tested yet",
        )
    console.print(table)
    for first in going[:1]:
        _print_answer(console, "the first", first, space, ())


def _print_answer(
    console: Console, name: str, candidate: Candidate, space: Space, gone: tuple[GrownLine, ...]
) -> None:
    settings, changed = space.settings(candidate), space.differences(candidate)
    console.print(f"\n[bold]{name}[/bold] {escape(words.label(settings))}")
    if not changed:
        console.print("  nothing to change: these are the present settings")
    for line in words.lines(settings, changed, space.schemas):
        console.print(f"    {escape(line)}", soft_wrap=True)
    if told := words.given_up(settings, changed, space.observation):
        console.print(f"  given up: {escape('; '.join(told))}")
    for saved in words.why(gone):
        console.print(f"  saved: {escape(saved)}")


def _years(years: float) -> str:
    return "–" if math.isinf(years) else text.digits(years)
