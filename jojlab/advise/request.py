"""The request to an adviser: how the app is now, what may change, what must hold, and what is
shown.

Reads the fields and limits that a user gives; refuses what no search could answer.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Set
from dataclasses import dataclass, replace

from jojlab.advise.search import Flash, Limits
from jojlab.advise.space import Space, experiment, space
from jojlab.analysis.run.risks import Guarantee
from jojlab.campaign.power_cuts import exclusion_reason, observation_before_run
from jojlab.device.profile import EMULATED, read_profile
from jojlab.experiment.cases import Case, complete, impossible, refuse_useless
from jojlab.experiment.input_files import recorded_settings
from jojlab.experiment.plan import plan, refuse_devices
from jojlab.foundation.errors import UseError
from jojlab.foundation.printable import nearest, plural
from jojlab.model.field import Value
from jojlab.model.fields import field_named
from jojlab.model.filesystems import BLOCK_FILESYSTEMS, with_external_journal
from jojlab.model.workloads import with_group, workload_of
from jojlab.model.workloads.program import SQLITE_CHECK
from jojlab.model.workloads.sqlite import ROWS, SQLITE
from jojlab.recording.sql_text import ScriptFacts, Unrepeatable, script_facts

# States that are drawn for each eighth of those that are asked for.
_DRAWN_EIGHTHS = 9
# Share of commits in the regime `reopened` where nothing is said.
REOPENED = 0.1


@dataclass(frozen=True)
class AdviceRequest:
    """`settings` are the fields that the user gave; `shares` of commits are made in each regime, ""
    where the workload has none. `states` are judged of each answer, in each regime and seed.
    `doubtful` are statements of its scripts that may write other rows in a second run.
    """

    space: Space
    settings: Mapping[str, Value]
    shares: Mapping[str, float]
    seeds: tuple[int, ...]
    limits: Limits
    flash: Flash
    states: int
    answers: int
    doubtful: tuple[Unrepeatable, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def drawn_states(self) -> int:
        """The states to draw, so that as many as are asked for are distinct.

        A second cut may leave what is known: 23 of 1,000, at most, left less than were asked for
        in docs/power-cuts.md. A longer run for so few would cost as much again.
        """
        return -(-self.states * _DRAWN_EIGHTHS // 8)


def given_fields(texts: list[str]) -> dict[str, Value]:
    """Return the fields of KEY=VALUE; UseError for one that is given twice, or as a list."""
    settings: dict[str, Value] = {}
    for each in texts:
        name, equals, text = each.partition("=")
        if not equals:
            raise UseError(f"{each}: no value", f"KEY=VALUE, as filesystem={BLOCK_FILESYSTEMS[0]}")
        if name in settings:
            raise UseError(f"{each}: {name} is given twice", "give it once")
        try:
            settings[name] = field_named(name, each).parse(text, each)
        except UseError:
            if "," not in text:
                raise
            raise UseError(
                f"{each}: an app has one {name} now", "give it; advice chooses among the others"
            ) from None
    return settings


def advice_request(
    settings: Mapping[str, Value],
    fixed: Set[str],
    guarantee: str,
    *,
    reopened_share: float | None = None,
    limits: Limits | None = None,
    cycles: int = 3000,
    most_rows: int = 0,
    journal_device: str = "",
    states: int = 1000,
    answers: int = 3,
) -> AdviceRequest:
    """Return what is asked of an app with the fields `settings`, those in `fixed` unchanged.

    Raises UseError where that cannot be measured, or no power cut can test it. Without a
    `reopened_share` a tenth of the commits are made in the regime `reopened`.
    """
    names = [each.value for each in Guarantee]
    if guarantee not in names:
        raise UseError(
            f"--guarantee {guarantee}: no guarantee{nearest(guarantee, names)}",
            f"one of: {', '.join(names)}",
        )
    limits = limits or Limits()
    for option, number in (
        ("--reopened-share", reopened_share or 0),
        ("--p99-ms", limits.p99_ns),
        ("--years", limits.years),
        ("--commits-a-day", limits.commits_a_day),
    ):
        if not math.isfinite(number):
            raise UseError(f"{option} {number}: no finite number", "give a number; 0: no limit")
    wanted = Guarantee(guarantee)
    recorded, note = recorded_settings(settings)
    settings = {**recorded, **settings}
    present = complete(settings)
    refuse_useless(settings, [present["workload"]], "joj advise")
    _refuse_emulated("device", str(present["device"]))
    if wanted is not Guarantee.NONE and (why := exclusion_reason(Case("present", present))):
        raise UseError(f"no power cut can test it: {why}", "give --guarantee none")
    if wanted is not Guarantee.NONE and present.get("check") == SQLITE_CHECK:
        raise UseError(
            "of a program power cuts can test the rows of its last commit alone",
            "name a check of yours: --set check=PROGRAM; or give --guarantee none",
        )
    if journal_device:
        _refuse_journal_device(journal_device, present, fixed)
    if most_rows and (not workload_of(present).has(ROWS) or "statements" in fixed):
        why = f"is of {', '.join(with_group(ROWS))}, and the workload is {present['workload']}"
        if workload_of(present).has(ROWS):
            why = f"chooses `statements`, which --fixed statements={present['statements']} keeps"
        raise UseError(f"--most-rows {why}", "leave out --most-rows")
    shares = _shares(settings, present, reopened_share)
    for regime in shares:
        if why := impossible({**present, **({"regime": regime} if regime else {})}):
            raise UseError(
                f"the app as it is now cannot be measured: {why}",
                "give that field by --set, or change it; joj list fields has all",
            )
    found = space(present, frozenset(fixed), wanted, most_rows=most_rows,
                  journal_device=journal_device)  # fmt: skip
    # What a plan refuses, such as a folder that is not there, is said before anything is run.
    planned = plan(
        experiment(found, settings, tuple(filter(None, shares)), {"present": found.own}, (1,))
    )
    case = planned.experiment.cases[0]
    facts = script_facts(case.inputs["scripts"]) if "scripts" in case.inputs else ScriptFacts()
    if wanted is not Guarantee.NONE and states and facts.unrepeatable:
        raise UseError(
            f"no power cut can test it: a second run writes other rows than "
            f"{facts.unrepeatable[0]}{_more(facts.unrepeatable)}",
            "give the values as arguments, or --guarantee none, or --states 0",
        )
    if facts.attached:
        observation = observation_before_run(case)
        found = replace(found, schemas=(*found.schemas, *facts.attached), observation=observation)
    bytes_ = int(read_profile(str(present["device"])).model["capacity_bytes"])
    flash = Flash(bytes_, cycles)
    notes = (note,) if note else ()
    doubtful = facts.doubtful
    return AdviceRequest(
        found, settings, shares, (1,), limits, flash, states, answers, doubtful, notes
    )


def _more(statements: tuple[Unrepeatable, ...]) -> str:
    return f", and {plural(len(statements) - 1, 'statement')} more" if len(statements) > 1 else ""


def _shares(
    settings: Mapping[str, Value], present: Mapping[str, Value], reopened: float | None
) -> dict[str, float]:
    """Return the share of the commits that each regime has."""
    if not workload_of(present).has(SQLITE):
        if reopened is not None:
            raise UseError(
                f"--reopened-share: workload {present['workload']} has no regimes", "drop it"
            )
        return {"": 1.0}
    if "regime" in settings:
        if reopened is not None:
            raise UseError(
                "--reopened-share shares commits out among regimes, and "
                f"regime={settings['regime']} counts one alone",
                "give one of them",
            )
        return {str(settings["regime"]): 1.0}
    reopened = REOPENED if reopened is None else reopened
    shares = {"steady": 1 - reopened, "reopened": reopened}
    return {regime: share for regime, share in shares.items() if share}


def _refuse_emulated(word: str, device: str) -> None:
    if device in EMULATED:
        raise UseError(
            f"{word} {device} is measured in real time, and its power cannot be cut",
            "name a modelled device: joj list devices",
        )


def _refuse_journal_device(name: str, present: Mapping[str, Value], fixed: Set[str]) -> None:
    """Refuse a journal's device that no candidate could have."""
    if "journal_device" in fixed:
        raise UseError(
            f"--journal-device {name}: --fixed journal_device={present['journal_device']} stays",
            "give one of them",
        )
    _refuse_emulated("--journal-device", name)
    profile = read_profile(name)
    filesystems = with_external_journal()
    if "filesystem" in fixed:
        filesystems = (str(present["filesystem"]),)
    reasons = []
    for filesystem in filesystems:
        settings = complete({**present, "filesystem": filesystem, "journal_device": name})
        profiles = {str(settings["device"]): read_profile(str(settings["device"])), name: profile}
        reasons.append(impossible(settings) or refuse_devices(settings, profiles))
    if all(reasons):
        raise UseError(f"--journal-device {name}: {reasons[0]}", "drop it, or name another")
