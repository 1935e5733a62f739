"""Says in words what an adviser found, and prints it: lines to paste, what is given up, and why it
is cheaper.

Gets the choices (jojlab/advise/advice.py); computes nothing.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.markup import escape

from jojlab.advise.advice import Advice, Choice, speed_up
from jojlab.advise.request import AdviceRequest
from jojlab.advise.score import Score
from jojlab.advise.space import MAIN, Candidate, Space
from jojlab.analysis.commit.bill import LineDelta
from jojlab.analysis.run.risks import Guarantee
from jojlab.analysis.run.risks import hazards as risks
from jojlab.model.field import Value
from jojlab.model.fields import BY_NAME
from jojlab.model.filesystem import NO_DEVICE
from jojlab.model.filesystems import FILESYSTEMS
from jojlab.model.hazards import Harm, Observation
from jojlab.report import hazards, survival
from jojlab.report.gate import amounts, owner
from jojlab.report.shared import text
from jojlab.report.shared.console import new_table

# Of --states 0.
NOT_CUT = "no power cut was asked for: that answers keep the guarantee, the manuals say alone"

Differences = Mapping[str, tuple[Value, Value]]


def settings_label(settings: Mapping[str, Value]) -> str:
    """Return the settings that tell choices apart, in a few words."""
    words = [str(settings["filesystem"])]
    for name in ("journal_mode", "synchronous", "sync_call"):
        words += [str(settings[name])] if name in settings else []
    if settings.get("batch_atomic_write") == "on":
        words.append("batch atomic writes")
    if settings.get("locking_mode") == "exclusive":
        words.append("exclusive")
    if settings.get("vfs") == "wal":
        words.append("vfs=wal")
    if "page_size_bytes" in settings:
        words.append(f"pages of {text.size(int(settings['page_size_bytes']))}")
    if settings.get("journal_mode") == "wal":
        words.append(f"checkpoint at {settings['wal_autocheckpoint_pages']} pages")
    words += [str(settings[name]) for name in ("mkfs_options", "mount_options") if settings[name]]
    if settings["journal_device"] != NO_DEVICE:
        words.append(f"journal on {settings['journal_device']}")
    return ", ".join(words)


def speed(ratio: float) -> str:
    """Return how many times as fast, as a table shows it: 7.4 ×; 1/9.8 × where it takes longer."""
    return f"{text.times(ratio)} ×" if ratio >= 1 or not ratio else f"1/{text.times(1 / ratio)} ×"


def lines_to_paste(
    settings: Mapping[str, Value], changed: Differences, schemas: Sequence[str] = (MAIN,)
) -> list[str]:
    """Return what to paste, with the file or program that each part is for as a comment. A PRAGMA
    is given for each of the `schemas`, as it was when the settings were tested.
    """
    set_ones = schemas[:1] if settings.get("attached_settings") == "sqlite" else schemas
    return [
        *_vfs_lines(settings),
        *_database_lines(settings, changed, schemas),
        *_app_lines(settings, changed, set_ones),
        *_build_lines(settings, changed),
        *_disk_lines(settings, changed),
    ]


def _vfs_lines(settings: Mapping[str, Value]) -> Iterator[str]:
    if settings.get("vfs") == "wal":
        yield "# the app keeps its code; docs/cure.md has the lines for C, Rust, Go and others"
        yield "LD_PRELOAD=$(joj cure --path)/joj_wal_preload.so APP"


def _database_lines(
    settings: Mapping[str, Value], changed: Differences, schemas: Sequence[str]
) -> Iterator[str]:
    """What changes the file itself: SQLite changes no page size in WAL mode (sqlite.org/pragma)."""
    if "page_size_bytes" not in changed:
        return
    several = len(schemas) > 1
    after = "after ATTACH, " if several else ""
    what = "databases" if several else "database"
    yield f"-- SQL, once, {after}while no other connection is open: writes the {what} anew"
    for name, prefix in _prefixes(schemas):
        yield f"PRAGMA {prefix}journal_mode = DELETE;"
        yield f"PRAGMA {prefix}page_size = {settings['page_size_bytes']};"
        yield f"VACUUM {name};" if several else "VACUUM;"


def _app_lines(
    settings: Mapping[str, Value], changed: Differences, schemas: Sequence[str]
) -> Iterator[str]:
    """What a connection sets, by schema: `PRAGMA synchronous` without a name is of main alone."""
    if "journal_mode" not in settings:
        return
    when = ", after ATTACH" if len(schemas) > 1 else ""
    yield f"-- SQL, whenever the database is opened{when}"
    for _, prefix in _prefixes(schemas):
        if settings.get("locking_mode") == "exclusive" or "locking_mode" in changed:
            yield f"PRAGMA {prefix}locking_mode = {str(settings['locking_mode']).upper()};"
        yield f"PRAGMA {prefix}journal_mode = {str(settings['journal_mode']).upper()};"
        yield f"PRAGMA {prefix}synchronous = {str(settings['synchronous']).upper()};"
    if settings["journal_mode"] == "wal":
        yield f"PRAGMA wal_autocheckpoint = {settings['wal_autocheckpoint_pages']};"
    if "statements" in changed:
        yield f"-- change {settings['statements']} rows in one transaction: BEGIN; ...; COMMIT;"


def _prefixes(schemas: Sequence[str]) -> list[tuple[str, str]]:
    """Return each schema's name as SQL has it, and what stands before a PRAGMA's name for it;
    nothing where there is one alone.
    """
    quoted = [
        name if re.fullmatch(r"[A-Za-z_]\w*", name) else '"' + name.replace('"', '""') + '"'
        for name in schemas
    ]
    return [(name, f"{name}." if len(schemas) > 1 else "") for name in quoted]


def _build_lines(settings: Mapping[str, Value], changed: Differences) -> Iterator[str]:
    flags = []
    if settings.get("sync_call") == "fdatasync":
        flags.append("-DHAVE_FDATASYNC=1")
    elif "sync_call" in changed:
        flags.append("-DHAVE_FDATASYNC=0")
    if settings.get("batch_atomic_write") == "on":
        flags.append("-DSQLITE_ENABLE_BATCH_ATOMIC_WRITE")
    if flags:
        yield "# when SQLite is compiled"
        yield f"CFLAGS += {' '.join(flags)}"


def _disk_lines(settings: Mapping[str, Value], changed: Differences) -> Iterator[str]:
    filesystem = str(settings["filesystem"])
    mkfs, mount = str(settings["mkfs_options"]), str(settings["mount_options"])
    journal = str(settings["journal_device"])
    if not {"filesystem", "mkfs_options", "mount_options", "journal_device"} & changed.keys():
        return
    made = {"filesystem", "mkfs_options", "journal_device"} & changed.keys()
    yield "# as root; mkfs destroys what is on DEVICE" if made else "# as root"
    external = FILESYSTEMS[filesystem].external_journal
    if journal != NO_DEVICE and external:
        if made and external.prepare:
            yield external.prepare
        mkfs = external.mkfs_options.format(mkfs)
        mount = ",".join(filter(None, (mount, external.mount_option)))
    if made:
        yield " ".join(filter(None, (f"mkfs.{filesystem}", mkfs.strip(), "DEVICE")))
    options = f"-o {mount.lstrip(',')} " if mount else ""
    yield f"mount -t {filesystem} {options}DEVICE DIRECTORY"


def concessions(
    settings: Mapping[str, Value], changed: Differences, observation: Observation | None = None
) -> list[str]:
    """Return what the changes cost beside time, and what a power cut may do that it could not."""
    found = []
    present = {**settings, **{name: own for name, (own, _) in changed.items()}}
    observation = observation or Observation()
    own_risks = risks(present, observation=observation)
    for name, (own, new) in changed.items():
        match name:
            case "filesystem":
                found.append(f"the disk must be formatted: {own} is there now")
            case "mkfs_options" | "journal_device":
                found.append("the disk must be formatted")
            case "page_size_bytes":
                found.append("the database must be written anew (VACUUM)")
            case "locking_mode" if new == "exclusive":
                found.append("no other connection may open the database")
            case "journal_mode" if new == "wal":
                found.append(
                    "two more files beside the database; a checkpoint makes some commits slow"
                )
            case "wal_autocheckpoint_pages" if int(new) > int(own):
                size = text.size(int(new) * int(settings["page_size_bytes"]))
                found.append(
                    f"the WAL may grow to {size}, all of it read when a crash is recovered"
                )
            case "sync_call" if new == "fdatasync":
                found.append("a SQLite that is built with fdatasync; a file's times may be old")
            case "vfs" if new == "wal":
                found.append("a library in the app's process; the WAL stays, of up to 4 MiB")
            case "batch_atomic_write" if new == "on":
                found.append("a SQLite that is built with batch atomic writes")
            case "statements" if int(new) > int(own):
                found.append(f"{new} rows wait for one another and are kept or lost together")
    found += hazards.hazard_sentences(
        each for each in risks(settings, observation=observation) if each not in own_risks
    )
    return list(dict.fromkeys(found))


def survival_words(choice: Choice) -> str:
    """Return what power cuts left of a choice, in a few words."""
    if choice.why:
        return f"not tested: {choice.why}"
    if not choice.survivals:
        return survival.NOT_TESTED
    harmful = sum(each.harmful for each in choice.survivals.values())
    states = sum(each.states for each in choice.survivals.values())
    torn = sum((Counter(each.torn_blocks) for each in choice.survivals.values()), Counter())
    if harmful and harmful == torn.total():
        what = " or ".join(words for each, words in survival.TORN_BLOCKS.items() if torn[each])
        return f"{what} in {harmful:,} of {text.integer(states, 'state')}"
    if harmful and harmful == sum(each.outcomes["lost"] for each in choice.survivals.values()):
        of_states = text.integer(states, "state")
        return f"acknowledged work lost in {harmful:,} of {of_states}, nothing corrupt"
    if harmful:
        return f"harm in {harmful:,} of {text.integer(states, 'state')}"
    by = "; refused by the manuals" * choice.manual_refuses
    nothing = survival.nothing_lost(next(iter(choice.judged.values())))
    return f"{nothing} in {text.integer(states, 'state')}{by}"


def states_judged(choice: Choice, states_wanted: int = 0) -> str:
    """Say how many distinct states of which run were judged, by regime; empty where none were. Of
    an answer fewer than were `asked` for are all that there are, as far as draws found.
    """
    told = []
    for regime, case in choice.judged.items():
        if found := case.survival:
            states = text.count(found.states, "distinct state")
            if found.states < states_wanted:
                states = f"all {states} that {text.count(found.draws, 'draw')} found"
            length = int(case.case.get("transactions", 0))
            run = f"a run of {text.count(length, 'transaction')}" if length else "the run"
            told.append(f"{regime}: " * bool(regime) + f"{states} of {run}")
    return "; ".join(told)


def worst_state(choice: Choice) -> str:
    """Return the worst state of a choice, and in which regime it was; empty where none did harm."""
    found = (
        (regime, case, case.survival.worst)
        for regime, case in choice.judged.items()
        if case.survival
    )
    return "; ".join(
        f"{regime or 'the run'}: {survival.state_words(case, each)}"
        for regime, case, each in found
        if each
    )


def refusal_reason(space: Space, candidate: Candidate) -> str:
    """Return why a choice is not allowed, where no power cut did harm."""
    return "; ".join(hazards.hazard_sentences(space.ruled_out_by(candidate)))


def incomplete(advice: Advice) -> list[str]:
    """Return why measured runs do not count in full, and of which choices."""
    return [f"{reason} ({', '.join(names)})" for reason, names in advice.incomplete.items()]


def excluded_filesystems(space: Space) -> dict[str, str]:
    """Return why nothing on a filesystem is allowed, by its name."""
    return {
        name: "; ".join(hazards.hazard_sentences(found)) for name, found in space.left_out.items()
    }


def over_limits(advice: Advice, request: AdviceRequest) -> str:
    """Return how many settings are over the limits, and which comes closest to them."""
    told = f"{text.count(advice.over_limits, 'candidate')} over the limits"
    if not advice.closest:
        return told
    candidate, found = advice.closest
    limits = request.limits
    cost = f"a p99 of {text.duration(found.p99_ns)}"
    if limits.years:
        years = request.flash.years(found.nand_bytes, limits.commits_a_day)
        cost = f"{cost} and {text.digits(years)} years"
    return f"{told}; the closest, with {cost}: {settings_label(request.space.settings(candidate))}"


def saved_lines(gone: tuple[LineDelta, ...], most: int = 4) -> list[str]:
    """Return the lines of the present bill that are smaller or gone."""
    told = []
    for each in gone[:most]:
        now, answer = each.line, each.before
        left = (
            "none" if answer is None or not (answer.requests or answer.bytes) else amounts(answer)
        )
        told.append(f"{owner(now)}: {amounts(now)} → {left}")
    return told


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
        "workload": app["workload"],
        "device": app["device"],
        "given": dict(request.settings),
        "seeds": list(request.seeds),
        "limits": vars(request.limits),
        "guarantee": request.space.guarantee.value,
        "shares": dict(request.shares),
        "states": request.states,
        "measured": advice.measured,
        "allowed": len(request.space.candidates),
        "incomplete": incomplete(advice),
        "left_out": excluded_filesystems(request.space),
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
        "survives": {regime: dict(each.outcomes) for regime, each in choice.survivals.items()},
        "not_tested": choice.why or ("" if choice.judged else "no power cut was asked for"),
        "worst": worst_state(choice),
        "manual_refuses": choice.manual_refuses,
        "incomplete": list(choice.incomplete),
        "changed": {name: {"old": old, "new": new} for name, (old, new) in changed.items()},
        "lines": lines_to_paste(settings, changed, request.space.schemas),
        "given_up": concessions(settings, changed, request.space.observation),
        "saved": saved_lines(gone),
    }


_NONE = "no settings that were measured keep the guarantee and the limits"


def in_short(advice: Advice, request: AdviceRequest) -> dict[str, str]:
    """Return a line each of `do`, `gain` and `holds`; without an answer there is no gain."""
    if not advice.answers:
        return {"do": _NONE, "holds": _holds(request)}
    assert advice.present
    first = advice.answers[0]
    return {
        "do": _do(first, request),
        "gain": _gain(first, advice.present, request),
        "holds": f"{_holds(request)}; {_guarantee_words(first, request)}",
    }


def _do(first: Choice, request: AdviceRequest) -> str:
    changed = request.space.differences(first.candidate)
    if not changed:
        return (
            "change nothing: of the settings that were measured, none that keeps the guarantee "
            "and the limits is cheaper by 1 %"
        )
    told = (
        f"{name} = {new or 'none'} (now {old or 'none'})" for name, (old, new) in changed.items()
    )
    return f"{', '.join(told)}; answer-1 has the lines to paste"


def _gain(first: Choice, present: Choice, request: AdviceRequest) -> str:
    now, then = present.score, first.score
    by = " by the row" * ("statements" in request.space.differences(first.candidate))
    if first.candidate == present.candidate:
        return f"none: a commit takes {text.duration(now.commit_ns)} as it is"
    ratio = speed_up(first, present)
    told = f"{text.times(ratio)} times as fast{by}: a commit takes "
    if ratio < 1:
        times = text.times(1 / ratio) if ratio else "many"
        told = f"none: {_loses(present, request)} costs {times} times as much{by}: a commit takes "
    return (
        f"{told}{text.duration(then.commit_ns)} in place of {text.duration(now.commit_ns)}, p99 "
        f"{text.duration(then.p99_ns)} in place of {text.duration(now.p99_ns)}, and sends "
        f"{text.size(then.bytes)} to the device in place of {text.size(now.bytes)}"
    )


def _loses(present: Choice, request: AdviceRequest) -> str:
    """Say why what the present settings do is no choice."""
    space = request.space
    harms = {each.kind for each in space.ruled_out_by(present.candidate)}
    if harms and harms <= {Harm.COMMITS, Harm.WRITES, Harm.NAMES}:
        return "your present settings may lose commits; keeping them"
    if harms:
        risked = hazards.risk_words(space.ruled_out_by(present.candidate))
        return f"your present settings put at risk: {risked}; keeping that safe"
    if present.breaks(space.guarantee, but_torn_blocks=True):
        return "your present settings broke the guarantee after a power cut; keeping it"
    return "your present settings exceed the limits; what keeps them"


def _holds(request: AdviceRequest) -> str:
    """For which app, device, regimes, seeds and limits."""
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
    seeds = ", ".join(str(seed) for seed in request.seeds)
    return "; ".join(
        filter(
            None,
            (
                f"{present['workload']} on {present['device']}, a model of a device",
                ", ".join(more),
                f"commits: {', '.join(shares)}" if shares else "",
                f"p99 of at most {text.duration(limits.p99_ns)}" if limits.p99_ns else "",
                f"{text.count(limits.years, 'year')} of flash" if limits.years else "",
                f"seed {seeds}",
            ),
        )
    )


def _guarantee_words(first: Choice, request: AdviceRequest) -> str:
    guarantee = request.space.guarantee
    if guarantee is Guarantee.NONE:
        return "a power cut may do anything (--guarantee none)"
    if not request.states:
        return NOT_CUT
    if request.space.present["workload"] == "replay":
        return (
            f"by the manuals, what its syncs promised survives, and after power cuts "
            f"{survival_words(first)}; what its commits lose is not known"
        )
    return f"{guarantee} by the manuals, and after power cuts {survival_words(first)}"


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
    for name, told in in_short(advice, request).items():
        console.print(f"[bold]{name}:[/bold] {escape(told)}")
    for told in incomplete(advice):
        console.print(f"[bold yellow]incomplete:[/bold yellow] {escape(told)}")
    console.print(
        f"[bold]present[/bold] {escape(settings_label(request.space.settings(request.space.own)))}"
    )
    # The settings of the others stand below: a table with them is wider than a terminal.
    table = new_table(
        ("", "left"),
        ("speed", "right"),
        ("commit", "right"),
        ("p99", "right"),
        ("device", "right"),
        ("flash", "right"),
        *([("years", "right")] if request.limits.commits_a_day else []),
        ("after power cuts", "left"),
    )
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
            escape(survival_words(choice)),
        )
    console.print(table)
    console.print(
        "[dim]per commit; speed: by the row, beside the present settings; device: bytes sent to "
        "it; flash: bytes that it programs[/dim]"
    )
    for number, choice in enumerate(advice.answers, 1):
        name = f"answer-{number}"
        _print_answer(console, name, choice.candidate, request.space, gone.get(name, ()))
        if told := states_judged(choice, request.states):
            console.print(f"  tested: {escape(told)}")
        if risk := worst_state(choice):
            console.print(f"  [yellow]risk:[/yellow] {escape(risk)}")
    for number, choice in enumerate(advice.refused, 1):
        told = settings_label(request.space.settings(choice.candidate))
        worst = worst_state(choice) or survival_words(choice)
        by = "; the manuals refuse it too" if choice.manual_refuses else ""
        if by and not worst_state(choice):
            by = f"; {refusal_reason(request.space, choice.candidate)}"
        console.print(
            f"[bold yellow]refused-{number}[/bold yellow] {escape(f'{told}: {worst}{by}')}"
        )
    if not request.states and request.space.guarantee is not Guarantee.NONE:
        console.print(f"[yellow]{NOT_CUT}[/yellow]")
    for filesystem, reason in excluded_filesystems(request.space).items():
        console.print(f"[yellow]left out[/yellow] {escape(f'{filesystem}: {reason}')}")
    if advice.over_limits:
        console.print(escape(over_limits(advice, request)))
    for candidate, why in advice.failed.items():
        told = settings_label(request.space.settings(candidate))
        console.print(f"[yellow]not measured[/yellow] {escape(f'{told}: {why}')}")
    whole = len(request.space.candidates)
    among = "" if request.space.guarantee is Guarantee.NONE else " that the manuals allow"
    console.print(f"{whole:,} settings{among}; {advice.measured} measured, refused ones with them")


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
    table = new_table(
        ("cheapest so far", "left"), ("commit", "right"), ("p99", "right"),
        ("after power cuts", "left"),
    )  # fmt: skip
    for candidate in (*going, *refused):
        found, choice = scores[candidate], judged.get(candidate)
        table.add_row(
            escape(settings_label(space.settings(candidate))),
            text.duration(found.commit_ns),
            text.duration(found.p99_ns),
            escape(survival_words(choice)) if choice else "not tested yet",
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
