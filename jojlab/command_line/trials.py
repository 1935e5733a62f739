"""The power cuts of several runs that belong together: the cases of a command, and then runs that
are like them but for one thing, or scripts that are drawn until one does harm.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

import click

from jojlab.analysis.run.summary import CaseSummary
from jojlab.analysis.run.trials import fault_outcome, fixed_syncs, sync_need
from jojlab.campaign.campaign import Campaign
from jojlab.campaign.generated import ScriptKind, Steps
from jojlab.campaign.power_cuts import exclusion_reason, verdicts
from jojlab.campaign.trials import (
    CaseTrial,
    fault_refusals,
    fault_trials,
    runs_program,
    sync_trials,
    untried_sites,
)
from jojlab.command_line.campaigns import begin_campaign
from jojlab.experiment.cases import Case, refuse_alone
from jojlab.experiment.plan import plan
from jojlab.experiment.read import Experiment, apply
from jojlab.foundation.document import conform
from jojlab.foundation.signals import SignalReceived
from jojlab.lab.job import Options
from jojlab.model.filesystem import TornBlock
from jojlab.report import faults as fault_words
from jojlab.report import sync_needs
from jojlab.report.generated import HarmedScript
from jojlab.report.progress import run_progress
from jojlab.trace.power_cuts import FaultKind, PowerCuts

# By case_id, what power cuts left of each seed.
Answers = dict[str, list[Any]]


@dataclass(frozen=True)
class PowerCutJudge:
    """Cuts the power of cases like a campaign's; `failures` has reasons by case and seed."""

    campaign: Campaign
    states: int
    failures: dict[str, str] = field(default_factory=dict)

    def answers(self, cases: Sequence[Case], title: str) -> Answers:
        """Return what power cuts left of the cases; SignalReceived says what is kept of it."""
        planned, options = self.campaign.planned, self.campaign.lab.options
        experiment = replace(planned.experiment, cases=tuple(cases))
        campaign = replace(self.campaign, planned=planned._replace(experiment=experiment))
        if not options.cluster and (estimate := campaign.estimate_power_cuts(self.states)):
            click.echo(estimate, err=True)
        found: Answers = {}
        try:
            with run_progress(title, campaign.steps, "verdict") as watcher:
                for step, answer in campaign.power_cut_answers(self.states, watcher):
                    watcher.note_finished(step)
                    if answer is None:
                        self.failures[f"{step.case_id}, seed {step.seed}"] = step.failure
                    else:
                        found.setdefault(step.case_id, []).append(answer)
        except KeyboardInterrupt as error:
            kept, guests = campaign.judged_guests(self.states)
            if not kept:
                raise SignalReceived(error, "nothing was judged yet") from None
            way = "" if options.use_cache else " without --no-cache"
            raise SignalReceived(
                error,
                f"what {kept} of {guests} guests judged is kept",
                f"the same command{way} goes on from there",
            ) from None
        return found


_OwnTrial = TypeVar("_OwnTrial", bound=CaseTrial)


def _answer_trials(
    judge: PowerCutJudge,
    whole: Sequence[Case],
    cases: Sequence[CaseSummary],
    answers: Answers,
    trials: Callable[[Case, Sequence[PowerCuts]], Iterable[_OwnTrial]],
    title: str,
) -> list[tuple[CaseSummary, list[PowerCuts], list[tuple[_OwnTrial, list[PowerCuts]]]]]:
    """Return each case that was judged, its answers, and its trials with theirs."""
    bases = {
        each.case_id: [conform(it, PowerCuts) for it in answers[each.case_id]] for each in cases
    }
    known = [case for case in whole if case.case_id in bases]
    tried = [trial for case in known for trial in trials(case, bases[case.case_id])]
    title = f"{judge.states:,} states of each case {title}"
    found = judge.answers([trial.case for trial in tried], title) if tried else {}
    return [
        (
            case,
            bases[case.case_id],
            [
                (trial, [conform(it, PowerCuts) for it in found[trial.case.case_id]])
                for trial in tried
                if trial.base.case_id == case.case_id and trial.case.case_id in found
            ],
        )
        for case in cases
    ]


def sync_needs_of(
    judge: PowerCutJudge, whole: Sequence[Case], cases: Sequence[CaseSummary], answers: Answers
) -> sync_needs.Needs:
    """Run the cases without each of their syncs; return what was seen, for each that was judged."""
    tried = _answer_trials(judge, whole, cases, answers, sync_trials, "without each of its syncs")
    return [
        (
            case,
            [
                sync_need(trial.site, base, found, runs_program=runs_program(trial.case))
                for trial, found in own
            ]
            + fixed_syncs(base),
        )
        for case, base, own in tried
    ]


def faults_of(
    judge: PowerCutJudge,
    whole: Sequence[Case],
    cases: Sequence[CaseSummary],
    answers: Answers,
    kinds: Sequence[FaultKind],
) -> list[fault_words.CaseFaults]:
    """Run the cases with each error beneath; return what came of it, for each that was judged."""
    own_trials = partial(fault_trials, kinds=kinds)
    return [
        fault_words.CaseFaults(
            case,
            [
                fault_outcome(trial.kind, trial.name, base, found, _usual_end(trial.case))
                for trial, found in own
            ],
            untried_sites(base) if "sync-error" in kinds else (),
            fault_refusals(case.case, kinds),
        )
        for case, base, own in _answer_trials(
            judge, whole, cases, answers, own_trials, "after each error"
        )
    ]


def _usual_end(case: Case) -> str:
    """Return how a program or SQLite's transactions should end, as the agent words it
    (ProgramEnd::words, and `ended` of agent/src/workload/fault.rs).
    """
    if not runs_program(case):
        return "no transaction failed"
    return f"exit code {case.settings['expected_exit_code']}"


@dataclass(frozen=True)
class ScriptSearch:
    """The scripts of a kind that are drawn and judged, under settings of the user's; `failures` has
    the reason of each case that has no answer, `torn_blocks` counts the states that a torn block of
    the filesystem's own made unmountable, which no script avoids.
    """

    kind: ScriptKind
    settings: Sequence[str]
    states: int
    options: Options
    failures: dict[str, str] = field(default_factory=dict)
    torn_blocks: Counter[TornBlock] = field(default_factory=Counter)

    def find_harm(self, scripts: Sequence[Steps]) -> list[CaseSummary | None]:
        """Return of each script a case in which it did harm that the manuals rule out."""
        with TemporaryDirectory() as place:
            folders = [
                str(self.kind.write(Path(place) / f"script-{number}", each))
                for number, each in enumerate(scripts)
            ]
            fixed = {"workload": self.kind.workload}
            question = f"Which {self.kind.step}s does a power cut harm?"
            where = "joj verify durability --generate"
            drawn = Experiment(
                "generated", question, (1,), fixed, {self.kind.field: tuple(folders)}, where=where
            )
            planned = plan(apply(drawn, self.settings).expand())
            cases = [
                replace(case, skip=case.skip or exclusion_reason(case))
                for case in planned.experiment.cases
            ]
            refuse_alone(cases, where)
            experiment = replace(planned.experiment, cases=tuple(cases))
            campaign = begin_campaign(planned._replace(experiment=experiment), self.options)
            judge = PowerCutJudge(campaign, self.states, self.failures)
            answers = judge.answers(cases, f"{self.states:,} states of {len(scripts)} scripts")
            found: list[CaseSummary] = []
            for judged in verdicts(cases, answers):
                if judged.durability is None:
                    continue
                torn_blocks = judged.durability.torn_blocks
                self.torn_blocks.update(torn_blocks)
                if judged.is_refuted and judged.durability.harmful > sum(torn_blocks.values()):
                    found.append(judged)
            # The folder is gone soon.
            named = {it.case[self.kind.field]: it for it in reversed(found)}
            return [
                replace(it, case_id=it.case_id.replace(folder, "script"))
                if (it := named.get(folder))
                else None
                for folder in folders
            ]

    def first(self, count: int, batch: int) -> HarmedScript | None:
        """Return the first drawn script that is harmed, with the fewest of its steps, or None."""
        scripts = list(self.kind.scripts(count))
        for begin in range(0, count, batch):
            some = scripts[begin : begin + batch]
            for place, case in enumerate(self.find_harm(some)):
                if case is None:
                    continue
                cases = {some[place]: case}

                def is_harmed(
                    shorter: Sequence[Steps], cases: dict[Steps, CaseSummary] = cases
                ) -> list[bool]:
                    found = self.find_harm(shorter)
                    cases.update({each: it for each, it in zip(shorter, found, strict=True) if it})
                    return [it is not None for it in found]

                least = self.kind.fewest(some[place], is_harmed)
                return HarmedScript(begin + place + 1, len(some[place]), least, cases[least])
        return None
