"""Says in words what an adviser found, and prints it: what to change, what that gains, what power
cuts left, and which lines of the bill went away.

Gets the choices (jojlab/advise/advice.py); computes nothing.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any

from rich.console import Console
from rich.markup import escape

from jojlab.advise.advice import Advice, Choice, speed_up
from jojlab.advise.request import AdviceRequest
from jojlab.advise.search import Score
from jojlab.advise.space import Candidate, Space
from jojlab.analysis.commit.bill import LineDelta
from jojlab.analysis.run.risks import Guarantee
from jojlab.model.fields import BY_NAME
from jojlab.model.filesystems import TORN_BLOCKS
from jojlab.model.hazards import Harm
from jojlab.model.workloads import workload_of
from jojlab.report import durability, hazards
from jojlab.report.gate import amounts, owner
from jojlab.report.settings import concessions, lines_to_paste, settings_label
from jojlab.report.shared import text
from jojlab.report.shared.console import left, new_table, right
from jojlab.report.shared.short_answer import (
    MOST_COLUMNS,
    RankedLine,
    duration,
    fit_lines,
    number,
    print_answer,
    sentence,
    size,
)

# Of --states 0.
NOT_CUT = "no power cut was asked for: that answers keep the guarantee, the manuals say alone"


def speed(ratio: float) -> str:
    """Return how many times as fast, as a table shows it: 7.4 ×; 1/9.8 × where it takes longer."""
    return f"{text.times(ratio)} ×" if ratio >= 1 or not ratio else f"1/{text.times(1 / ratio)} ×"


def durability_words(choice: Choice) -> str:
    """Return what power cuts left of a choice, in a few words."""
    if choice.why:
        return f"not tested: {choice.why}"
    if not choice.durability_by_regime:
        return durability.NOT_TESTED
    harmful = sum(each.harmful for each in choice.durability_by_regime.values())
    states = sum(each.states for each in choice.durability_by_regime.values())
    torn = sum(
        (Counter(each.torn_blocks) for each in choice.durability_by_regime.values()), Counter()
    )
    if harmful and harmful == torn.total():
        what = " or ".join(each.words for each in TORN_BLOCKS if torn[each])
        return f"{what} in {harmful:,} of {text.integer(states, 'state')}"
    if harmful and harmful == sum(
        each.outcomes["lost"] for each in choice.durability_by_regime.values()
    ):
        of_states = text.integer(states, "state")
        return f"acknowledged work lost in {harmful:,} of {of_states}, nothing corrupt"
    if harmful:
        return f"harm in {harmful:,} of {text.integer(states, 'state')}"
    by = "; refused by the manuals" * choice.manual_refuses
    nothing = durability.nothing_lost(next(iter(choice.judged.values())))
    return f"{nothing} in {text.integer(states, 'state')}{by}"


def states_judged(choice: Choice, states_wanted: int = 0) -> str:
    """Say how many distinct states of which run were judged, by regime; empty where none were. Of
    an answer fewer than were `asked` for are all that there are, as far as draws found.
    """
    lines = []
    for regime, case in choice.judged.items():
        if found := case.durability:
            states = text.count(found.states, "distinct state")
            if found.states < states_wanted:
                states = f"all {states} that {text.count(found.draws, 'draw')} found"
            length = int(case.case.get("transactions", 0))
            run = f"a run of {text.count(length, 'transaction')}" if length else "the run"
            judge = f" ({words})" if (words := durability.native_words(found)) else ""
            lines.append(f"{regime}: " * bool(regime) + f"{states} of {run}{judge}")
    return "; ".join(lines)


def worst_state(choice: Choice) -> str:
    """Return the worst state of a choice, and in which regime it was; empty where none did harm."""
    found = (
        (regime, case, case.durability.worst)
        for regime, case in choice.judged.items()
        if case.durability
    )
    return "; ".join(
        f"{regime or 'the run'}: {durability.state_words(case, each)}"
        for regime, case, each in found
        if each
    )


def refusal_reason(space: Space, candidate: Candidate) -> str:
    """Return why a choice is not allowed, where no power cut did harm."""
    return "; ".join(hazards.hazard_sentences(space.forbidding_hazards(candidate)))


def incomplete(advice: Advice) -> list[str]:
    """Return why measured runs do not count in full, and of which choices."""
    return [f"{reason} ({', '.join(names)})" for reason, names in advice.incomplete.items()]


def exclusions(space: Space) -> dict[str, str]:
    """Return why nothing on a filesystem, or in WAL mode, is allowed, by its name."""
    return {
        name: "; ".join(hazards.hazard_sentences(found)) for name, found in space.left_out.items()
    }


def over_limits(advice: Advice, request: AdviceRequest) -> str:
    """Return how many settings are over the limits, and which comes closest to them."""
    words = f"{text.count(advice.over_limits, 'candidate')} over the limits"
    if not advice.closest:
        return words
    candidate, found = advice.closest
    limits = request.limits
    cost = f"a p99 of {text.duration(found.p99_ns)}"
    if limits.years:
        years = request.flash.years(found.nand_bytes, limits.commits_a_day)
        cost = f"{cost} and {text.digits(years)} years"
    return f"{words}; the closest, with {cost}: {settings_label(request.space.settings(candidate))}"


def saved_lines(gone: tuple[LineDelta, ...]) -> list[str]:
    """Return the lines of the present bill that are smaller or gone."""
    lines = []
    for each in gone[:_MOST_SAVED]:
        now, answer = each.line, each.before
        left = (
            "none" if answer is None or not (answer.requests or answer.bytes) else amounts(answer)
        )
        lines.append(f"{owner(now)}: {amounts(now)} → {left}")
    return lines


def advice_json(
    advice: Advice, request: AdviceRequest, gone: Mapping[str, tuple[LineDelta, ...]]
) -> dict[str, Any]:
    """Return what `joj advise --json` prints; `gone` as for the terminal."""
    assert advice.present
    found: dict[str, list[dict[str, Any]]] = {"present": [], "answer": [], "refused": []}
    for name, choice in advice.choices_by_name:
        record = _choice_json(choice, advice.present, request, gone.get(name, ()))
        wanted = request.states if choice in advice.answers else 0
        found[name.partition("-")[0]].append(
            {"name": name, **record, "tested": states_judged(choice, wanted)}
        )
    app = request.space.settings(request.space.own)
    return {
        "in_short": list(advice_lines(advice, request)),
        "workload": app["workload"],
        "device": app["device"],
        "given": dict(request.settings),
        "notes": list(request.notes),
        "seeds": list(request.seeds),
        "limits": vars(request.limits),
        "guarantee": request.space.guarantee.value,
        "shares": dict(request.shares),
        "states": request.states,
        "measured": advice.measured,
        "allowed": len(request.space.candidates),
        "incomplete": incomplete(advice),
        "left_out": exclusions(request.space),
        "over_limits": advice.over_limits,
        "over_limits_told": over_limits(advice, request) if advice.over_limits else "",
        "not_measured": [
            {"settings": dict(each), "reason": reason} for each, reason in advice.failed.items()
        ],
        "present": found["present"][0],
        "answers": found["answer"],
        "refused": found["refused"],
    }


def _choice_json(
    choice: Choice, present: Choice, request: AdviceRequest, gone: tuple[LineDelta, ...]
) -> dict[str, Any]:
    settings = request.space.settings(choice.candidate)
    changed = request.space.differences(choice.candidate)
    found, a_day = choice.score, request.limits.commits_a_day
    life = request.flash.years(found.nand_bytes, a_day) if a_day and found.nand_bytes else None
    return {
        "settings": dict(choice.candidate),
        "times_as_fast": speed_up(choice, present),
        **vars(found),
        "years": life,
        "durability": {
            regime: dict(each.outcomes) for regime, each in choice.durability_by_regime.items()
        },
        "not_tested": choice.why or ("" if choice.judged else "no power cut was asked for"),
        "worst": worst_state(choice),
        "manual_refuses": choice.manual_refuses,
        "incomplete": list(choice.incomplete),
        "changed": {name: {"old": old, "new": new} for name, (old, new) in changed.items()},
        "lines": lines_to_paste(settings, changed, request.space.schemas),
        "given_up": concessions(settings, changed, request.space.observation),
        "saved": saved_lines(gone),
    }


def advice_lines(advice: Advice, request: AdviceRequest) -> tuple[str, ...]:
    """Return the short answer: what to change, what a commit then takes, what a power cut leaves,
    and for which app and device that holds.
    """
    assert advice.present
    lacking = list(dict.fromkeys(chain.from_iterable(advice.incomplete.values())))
    missing = f"Incomplete: the runs of {', '.join(lacking)} do not count in full."
    first = advice.answers[0] if advice.answers else None
    lines = [
        *_changes(first, request),
        *(_gain(first, advice.present, request) if first else []),
        (0, _safety(first, request) if first else ""),
        (0, _trial(first, request) if first else ""),
        (2, _no_wal(request.space)),
        (0, _conditions(request)),
    ]
    return fit_lines(lines, missing if lacking else "")


def _changes(first: Choice | None, request: AdviceRequest) -> Iterator[RankedLine]:
    """Yield what to change, in a second line what has no room in the first."""
    limits = " and the limits" * bool(request.limits.p99_ns or request.limits.years)
    if first is None:
        yield 0, f"No settings that were measured keep the guarantee{limits}."
        return
    changed = request.space.differences(first.candidate)
    if not changed:
        kept = f"no measured settings that keep the guarantee{limits} are cheaper by 1 %"
        yield 0, f"Change nothing: {kept}."
        return
    changes = [f"{name} to {new or 'none'}" for name, (_, new) in changed.items()]
    present = [f" (now {old or 'none'})" for old, _ in changed.values()]
    whole = f"Change {', '.join(map(''.join, zip(changes, present, strict=True)))}."
    if len(whole) <= MOST_COLUMNS:
        yield 0, whole
        return
    for count in range(len(changes), 0, -1):
        more = f" and {len(changes) - count} more" * (count < len(changes))
        line = f"Change {', '.join(changes[:count])}{more}."
        rest = f"The others: {', '.join(changes[count:])}."
        if len(line) <= MOST_COLUMNS and len(rest) <= MOST_COLUMNS:
            yield 0, line
            if count < len(changes):
                yield 3, rest
            return
    yield 0, f"Change {len(changed)} settings; answer-1 has the lines to paste."


def _gain(first: Choice, present: Choice, request: AdviceRequest) -> Iterator[RankedLine]:
    """Yield what a commit takes and sends, beside what it takes and sends now."""
    now, then = present.score, first.score
    name = "COMMIT" if "journal_mode" in request.space.present else "operation"
    takes = f"takes {duration(then.commit_ns)} on average"
    if first.candidate == present.candidate:
        yield 0, f"One {name} {takes} (p99 {duration(then.p99_ns)}), and sends {size(then.bytes)}."
        return
    by = " by the row" * ("statements" in request.space.differences(first.candidate))
    ratio = speed_up(first, present)
    words = f"{number(ratio)} times as fast{by}"
    if 0 < ratio < 1:
        yield 0, f"It is dearer: {_loses(present, request)}."
        words = f"{number(1 / ratio)} times as long{by}"
    yield 0, f"One {name} then {takes} in place of {duration(now.commit_ns)}: {words}."
    sends = f"it sends {size(then.bytes)} in place of {size(now.bytes)}"
    yield 1, f"Its p99 is {duration(then.p99_ns)} in place of {duration(now.p99_ns)}; {sends}."


def _loses(present: Choice, request: AdviceRequest) -> str:
    """Say why what the present settings do is no choice."""
    space = request.space
    harms = {each.kind for each in space.forbidding_hazards(present.candidate)}
    if harms and harms <= {Harm.COMMITS, Harm.WRITES, Harm.NAMES}:
        return "your present settings may lose commits"
    if harms:
        risked = hazards.risk_words(space.forbidding_hazards(present.candidate))
        return f"your present settings put at risk: {risked}"
    if present.breaks(space.guarantee, but_torn_blocks=True):
        return "your present settings broke the guarantee after a power cut"
    return "your present settings exceed the limits"


def _trial(first: Choice, request: AdviceRequest) -> str:
    changes = request.space.differences(first.candidate)
    if changes.get("vfs", ("", ""))[1] != "redo":
        return ""
    return "vfs=redo is for trial: plain SQLite refuses databases of a process that died."


def _no_wal(space: Space) -> str:
    risked = hazards.risk_words(space.left_out.get("wal", ()))
    return f"WAL is left out, which puts at risk by the manuals: {risked}." if risked else ""


def _conditions(request: AdviceRequest) -> str:
    """Say for which app, device, regimes, limits and seeds the answer holds."""
    present = request.space.settings(request.space.own)
    # What is free to choose or stands in the line of the present settings is no condition.
    means = {name for name, field in BY_NAME.items() if not field.changes_work and "." not in name}
    named = {"workload", "regime", *means - {"kernel"}, *request.space.values}
    more = [f"{name}={value}" for name, value in request.settings.items() if name not in named]
    shares = [
        f"{text.digits(share * 100)} % {regime}"
        for regime, share in request.shares.items()
        if regime
    ]
    limits = request.limits
    parts = [
        f"For {present['workload']} on the model {present['device']}",
        ", ".join(shares),
        f"p99 within {duration(limits.p99_ns)}" if limits.p99_ns else "",
        f"{text.count(limits.years, 'year')} of flash" if limits.years else "",
        f"seed {', '.join(str(seed) for seed in request.seeds)}",
    ]
    line = sentence([*parts, ", ".join(more)])
    if all(each in line for each in more):
        return line
    return sentence([*parts, f"{text.count(len(more), 'field')} as given"])


def _safety(first: Choice, request: AdviceRequest) -> str:
    guarantee = request.space.guarantee
    if guarantee is Guarantee.NONE:
        return "A power cut may do anything (--guarantee none)."
    if not request.states:
        return f"{guarantee.capitalize()} by the manuals alone: no power cut was asked for."
    if workload_of(request.space.present).judges_syncs:
        return sentence(
            [
                "By the manuals, what its syncs promised survives",
                f"after power cuts {durability_words(first)}",
                "what its commits lose is not known",
            ]
        )
    seen = durability_words(first)
    line = f"{guarantee.capitalize()} by the manuals; after power cuts: {seen}."
    if len(line) <= MOST_COLUMNS:
        return line
    return sentence([f"Power cuts: {seen}", f"{guarantee} by the manuals"])


# Lines of the present bill that are named as saved.
_MOST_SAVED = 4
# Of an interrupted search: settings whose power was not cut.
_MOST_FOUND = 5


def print_advice(
    console: Console,
    advice: Advice,
    request: AdviceRequest,
    gone: Mapping[str, tuple[LineDelta, ...]],
) -> None:
    """Print it; `gone` are the lines of the bill that each choice saves, by its name."""
    assert advice.present
    print_answer(console, advice_lines(advice, request))
    for label in incomplete(advice):
        console.print(f"[bold yellow]incomplete:[/bold yellow] {escape(label)}")
    console.print(
        f"[bold]present[/bold] {escape(settings_label(request.space.settings(request.space.own)))}"
    )
    # The settings of the others stand below: a table with them is wider than a terminal.
    years_column = ["years"] if request.limits.commits_a_day else []
    numbers = right("speed", "commit", "p99", "device", "flash", *years_column)
    table = new_table(*left(""), *numbers, *left("after power cuts"))
    for name, choice in advice.choices_by_name:
        found = choice.score
        years = request.flash.years(found.nand_bytes, request.limits.commits_a_day)
        table.add_row(
            name,
            speed(speed_up(choice, advice.present)),
            text.duration(found.commit_ns),
            text.duration(found.p99_ns),
            text.size(found.bytes),
            text.size(found.nand_bytes),
            *([_years(years)] if request.limits.commits_a_day else []),
            escape(durability_words(choice)),
        )
    console.print(table)
    console.print(
        "[dim]per commit; speed: by the row, beside the present settings; device: bytes sent to "
        "it; flash: bytes that it programs[/dim]"
    )
    for place, choice in enumerate(advice.answers, 1):
        name = f"answer-{place}"
        _print_answer(console, name, choice.candidate, request.space, gone.get(name, ()))
        if label := states_judged(choice, request.states):
            console.print(f"  tested: {escape(label)}")
        if risk := worst_state(choice):
            console.print(f"  [yellow]risk:[/yellow] {escape(risk)}")
    for place, choice in enumerate(advice.refused, 1):
        label = settings_label(request.space.settings(choice.candidate))
        worst = worst_state(choice) or durability_words(choice)
        by = "; the manuals refuse it too" if choice.manual_refuses else ""
        if by and not worst_state(choice):
            by = f"; {refusal_reason(request.space, choice.candidate)}"
        console.print(
            f"[bold yellow]refused-{place}[/bold yellow] {escape(f'{label}: {worst}{by}')}"
        )
    if not request.states and request.space.guarantee is not Guarantee.NONE:
        console.print(f"[yellow]{NOT_CUT}[/yellow]")
    for name, reason in exclusions(request.space).items():
        console.print(f"[yellow]left out[/yellow] {escape(f'{name}: {reason}')}")
    if advice.over_limits:
        console.print(escape(over_limits(advice, request)))
    for candidate, why in advice.failed.items():
        label = settings_label(request.space.settings(candidate))
        console.print(f"[yellow]not measured[/yellow] {escape(f'{label}: {why}')}")
    whole = len(request.space.candidates)
    among = "" if request.space.guarantee is Guarantee.NONE else " that the manuals allow"
    console.print(f"{whole:,} settings{among}; {advice.measured} measured, refused ones with them")


def so_far_line(answer: Choice, space: Space) -> str:
    """Return an answer that stands, while others and the present settings are still tried."""
    changed = space.differences(answer.candidate).items()
    change = ", ".join(f"{name} to {new or 'none'}" for name, (_, new) in changed)
    took = duration(answer.score.commit_ns)
    return f"so far: {change or 'as it is'}: {took} a commit; {durability_words(answer)}"


def print_interrupted(
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
    table = new_table(*left("cheapest so far"), *right("commit", "p99"), *left("after power cuts"))
    for candidate in (*going, *refused):
        found, choice = scores[candidate], judged.get(candidate)
        table.add_row(
            escape(settings_label(space.settings(candidate))),
            text.duration(found.commit_ns),
            text.duration(found.p99_ns),
            escape(durability_words(choice)) if choice else "not tested yet",
        )
    console.print(table)
    for first in going[:1]:
        _print_answer(console, "the first", first, space, ())


def _print_answer(
    console: Console, name: str, candidate: Candidate, space: Space, gone: tuple[LineDelta, ...]
) -> None:
    settings, changed = space.settings(candidate), space.differences(candidate)
    console.print(f"\n[bold]{name}[/bold] {escape(settings_label(settings))}")
    if not changed:
        console.print("  nothing to change: these are the present settings")
    for line in lines_to_paste(settings, changed, space.schemas):
        console.print(f"    {escape(line)}", soft_wrap=True)
    if told := concessions(settings, changed, space.observation):
        console.print(f"  given up: {escape('; '.join(told))}")
    for saved in saved_lines(gone):
        console.print(f"  saved: {escape(saved)}")


def _years(years: float) -> str:
    return "–" if math.isinf(years) else text.digits(years)
