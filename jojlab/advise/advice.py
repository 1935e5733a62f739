"""Measures candidates in the lab and cuts the power of the best. Cases are jobs of a campaign, and
those in the cache are not run again. Gives the cheapest candidates that keep the guarantee and the
limits in every state that was judged, and those that were refused.
"""

from __future__ import annotations

import contextlib
import math
import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from jojlab.advise.request import AdviceRequest
from jojlab.advise.search import KEPT, Score, first_round, keeps, neighbours, ranking, score, search
from jojlab.advise.space import Candidate, experiment
from jojlab.analysis.commit.bill import LineDelta, grown_lines, lines_of, per_row
from jojlab.analysis.run.durability import Durability
from jojlab.analysis.run.risks import Guarantee, broken_states
from jojlab.analysis.run.summary import CaseSummary, RunSummary, summarise
from jojlab.campaign.campaign import USUAL_CASE_S, Campaign, format_duration, usual_state_s
from jojlab.campaign.images import Images, images_of
from jojlab.campaign.jobs import RunProgress
from jojlab.campaign.power_cuts import Answer, run_requests, verdicts
from jojlab.experiment.plan import Plan, plan
from jojlab.foundation.cache import Cache
from jojlab.foundation.errors import JojError, UseError
from jojlab.foundation.printable import plural
from jojlab.lab.job import Options
from jojlab.lab.lab import Lab
from jojlab.model.field import Value
from jojlab.trace.run_folder import RunFolder

# Shows the progress of so many steps under a title, each of which makes one unit.
ProgressMaker = Callable[[str, int, str], AbstractContextManager[RunProgress]]
# Statements that are named as a possible cause.
MOST_NAMED = 3
# Refused candidates whose power is cut, so that the state is known that breaks them.
MOST_REFUSED = 2
# States that show whether power cuts of the app can be judged at all, where that is in doubt.
FEW_STATES = 20
# How many times as long a run is made, at most, that has too few distinct states.
MOST_LONGER = 32


@dataclass(frozen=True)
class Choice:
    """A candidate, what it costs, and what power cuts left of it by regime; `why` says why that is
    not known. `manual_refuses`: the manuals do not give the guarantee with these settings.
    `incomplete` says why its measured runs do not count in full.
    """

    candidate: Candidate
    score: Score
    judged: Mapping[str, CaseSummary] = field(default_factory=dict)
    why: str = ""
    manual_refuses: bool = False
    incomplete: tuple[str, ...] = ()

    @property
    def durability_by_regime(self) -> dict[str, Durability]:
        """Return what power cuts left, by regime."""
        return {regime: case.durability for regime, case in self.judged.items() if case.durability}

    def breaks(self, guarantee: Guarantee, *, but_torn_blocks: bool) -> bool:
        """Return whether a state was found that breaks the guarantee; `but_torn_blocks`: another
        than one that a torn block of the filesystem's own made unmountable.
        """
        return any(
            broken_states(each, guarantee)
            > (sum(each.torn_blocks.values()) if but_torn_blocks else 0)
            for each in self.durability_by_regime.values()
        )


@dataclass
class Advice:
    """The result of a search. `measured` counts candidates, `run_folder` has the choices'
    captures.
    """

    present: Choice | None = None
    answers: list[Choice] = field(default_factory=list)
    refused: list[Choice] = field(default_factory=list)
    measured: int = 0
    failed: dict[Candidate, str] = field(default_factory=dict)
    over_limits: int = 0
    # Of those over the limits: that of the lowest p99, or of the least wear.
    closest: tuple[Candidate, Score] | None = None
    run: RunFolder | None = None

    @property
    def choices_by_name(self) -> Iterator[tuple[str, Choice]]:
        """The choices by the names that they have in the run folder."""
        if self.present:
            yield "present", self.present
        for word, choices in (("answer", self.answers), ("refused", self.refused)):
            for number, each in enumerate(choices, 1):
                yield f"{word}-{number}", each

    @property
    def incomplete(self) -> dict[str, list[str]]:
        """Return why measured runs do not count in full: the names of the choices by each
        reason.
        """
        found: dict[str, list[str]] = {}
        for name, each in self.choices_by_name:
            for reason in each.incomplete:
                found.setdefault(reason, []).append(name)
        return found


class Adviser:
    """Carries a search out. `scores` are of all that was measured, kept when it is interrupted;
    `under_way` is the step that it has begun last. `announce` hears of each answer when it stands.
    """

    def __init__(
        self,
        request: AdviceRequest,
        lab: Lab,
        work: Path,
        show_progress: ProgressMaker,
        make_images: Callable[[Plan, Cache], Images] = images_of,
        make_native: Callable[[Plan, Cache, Options], Mapping[str, str]] = lambda *_: {},
        announce: Callable[[Choice], None] = lambda answer: None,
    ) -> None:
        self.asked, self.space = request, request.space
        self.lab, self.work, self.shown = lab, work, show_progress
        self._make_images, self._make_native, self._announce = make_images, make_native, announce
        self.scores: dict[Candidate, Score] = {}
        self.advice = Advice()
        self.under_way = ""
        self._incomplete: dict[Candidate, dict[str, None]] = {}
        self._rounds = 0

    def find(self, out: Path) -> Advice:
        """Search, cut the power of the best, and put them into the run folder `out`."""
        advice = self.advice
        self.choose(self.search())
        tempting = self._tempting(advice.answers[0]) if advice.answers and self._cuts else []
        named = {"present": self.space.own}
        named |= {f"refused-{number}": each for number, each in enumerate(tempting, 1)}
        advice.present, *refused = self.judge_choices(named, " and ".join(named))
        advice.refused += refused
        named = {name: each.candidate for name, each in advice.choices_by_name}
        campaign = self._campaign(self._plan(named))
        with self._step("the choices, from the cache", campaign.steps, "capture") as watcher:
            advice.run = campaign.run(out, watcher)
        if self._cuts:
            campaign.take_known_power_cuts(advice.run, self.asked.drawn_states)
        return advice

    def search(self) -> list[Candidate]:
        """Measure what is worth a case; return those within the limits, cheapest first."""
        # Alone at first: what is wrong with the app is said before all its settings fail by it.
        self.measure([self.space.own], "the app as it is now")
        if self.space.own not in self.scores:
            why = self.advice.failed.get(self.space.own, "a figure is missing")
            raise UseError(
                f"the app as it is now could not be measured: {why}",
                "joj bill with the same fields shows more",
            )
        self.advice.present = self._choice(self.space.own)
        if self._cuts and self.asked.doubtful:
            self._refuse_unjudged(min(FEW_STATES, self.asked.drawn_states))
        costs = search(self.space, self.measure)
        kept = {each: cost for each, cost in costs.items() if self.keeps(each)}
        over = [each for each in self.scores if each not in kept]
        self.advice.over_limits = len(over)
        self.advice.closest = min(
            ((each, self.scores[each]) for each in over if self.space.is_allowed(each)),
            key=lambda each: each[1].p99_ns if self.asked.limits.p99_ns else each[1].nand_bytes,
            default=None,
        )
        return ranking(self.space, kept)

    def choose(self, ranked: Sequence[Candidate]) -> None:
        """Cut the power of the cheapest, until there are as many answers as are asked for: of as
        many as are missing at a time, each of which is judged in any case.
        """
        left = [(f"candidate-{number}", each) for number, each in enumerate(ranked, 1)]
        while left and (missing := self.asked.answers - len(self.advice.answers)):
            named, left = dict(left[:missing]), left[missing:]
            is_unjudged = False
            for choice in self.judge_choices(named, f"the cheapest {len(named)}", enough=True):
                is_unjudged |= bool(choice.why)
                if self._is_refused(choice):
                    self.advice.refused.append(choice)
                else:
                    self.advice.answers.append(choice)
                    self._announce(choice)
            if is_unjudged:
                self._refuse_unjudged(self.asked.drawn_states)

    def _refuse_unjudged(self, states: int) -> None:
        """Raise UseError where no state of the app as it is now can be judged: what is wrong with
        the app is so with all its settings.
        """
        title = f"the app as it is now: {states:,} states after power cuts in each regime"
        asked = [(self._plan({"present": self.space.own}), states)]
        why = "".join(why for _, _, why in self._cut(asked, title))
        if not why:
            return
        doubtful = "; ".join(str(each) for each in self.asked.doubtful[:MOST_NAMED])
        named = f" (these may be why: {doubtful})" if doubtful else ""
        raise UseError(
            f"no power cut can test the app as it is now: {why}{named}",
            "mend that, or give --guarantee none, or --states 0",
        )

    def measure(
        self, candidates: Sequence[Candidate], title: str = ""
    ) -> Mapping[Candidate, float]:
        """Return the time of a row, in ns, of those that could be measured. Without a title it is
        one round more of the search.
        """
        self._rounds += not title
        named = {str(number): each for number, each in enumerate(candidates)}
        planned = self._plan(named)
        folder = self.work / f"round-{self._rounds}"
        title = title or f"round {self._rounds}, {len(candidates)} settings"
        campaign = self._campaign(planned)
        with self._step(title, campaign.steps, "capture") as watcher:
            try:
                run = campaign.run(folder, watcher)
            except KeyboardInterrupt:
                # What has ended by now is found. There is no run folder before the first guest.
                with contextlib.suppress(JojError):
                    self._take_scores(RunFolder.open(folder), planned, named)
                raise
        found = self._take_scores(run, planned, named)
        shutil.rmtree(folder, ignore_errors=True)
        return found

    def _take_scores(
        self, run: RunFolder, planned: Plan, candidates: Mapping[str, Candidate]
    ) -> Mapping[Candidate, float]:
        """Take the scores of a round; return the time of a row, in ns, of those that have one."""
        summary = summarise(run, figures_only=True, cache=self.lab.cache)
        figures: dict[str, dict[str, Mapping[str, float]]] = {}
        by_id = {case.case_id: case for case in planned.experiment.cases}
        for case in summary.cases:
            name = by_id[case.case_id].variant
            reasons = self._incomplete.setdefault(candidates[name], {})
            reasons.update(dict.fromkeys(case.missing.in_words))
            if case.figures.median:
                regime = str(case.case.get("regime", "")) if "" not in self.asked.shares else ""
                figures.setdefault(name, {})[regime] = case.figures.median
            elif case.status == "failed":
                self.advice.failed[candidates[name]] = case.reason
        found = {}
        for name, candidate in candidates.items():
            if figures.get(name, {}).keys() >= self.asked.shares.keys():
                rows = int(self.space.settings(candidate).get("statements", 1))
                self.scores[candidate] = score(figures[name], self.asked.shares, rows)
                found[candidate] = self.scores[candidate].row_ns
        self.advice.measured = len(self.scores)
        return found

    def keeps(self, candidate: Candidate) -> bool:
        """Return whether what was measured of a candidate is within the limits."""
        found = self.scores.get(candidate)
        return found is not None and keeps(found, self.asked.limits, self.asked.flash)

    def _is_refused(self, choice: Choice) -> bool:
        """Return whether it broke the guarantee, or could not be tested for it.

        On its own filesystem the app risks those torn blocks already, whatever its settings.
        """
        guarantee = self.space.guarantee
        filesystems = {
            self.space.settings(each)["filesystem"] for each in (choice.candidate, self.space.own)
        }
        breaks = choice.breaks(guarantee, but_torn_blocks=len(filesystems) == 1)
        return guarantee is not Guarantee.NONE and (bool(choice.why) or breaks)

    def _tempting(self, answer: Choice) -> list[Candidate]:
        """Return cheaper settings that the manuals refuse, one field from the answer: as many as
        their power is cut of.
        """
        space = self.space
        tempting = [
            near for _, near in space.neighbours(answer.candidate) if not space.is_allowed(near)
        ]
        new = [each for each in tempting if each not in self.scores]
        if new:
            self.measure(new)
        known = [each for each in tempting if each in self.scores]
        known.sort(key=lambda each: self.scores[each].row_ns)
        most = max(0, MOST_REFUSED - len(self.advice.refused))
        return [each for each in known[:most] if self.scores[each].row_ns < answer.score.row_ns]

    def _choice(self, candidate: Candidate) -> Choice:
        """Return a measured candidate, its power not cut."""
        return Choice(
            candidate,
            self.scores[candidate],
            manual_refuses=not self.space.is_allowed(candidate),
            incomplete=tuple(self._incomplete.get(candidate, ())),
        )

    @property
    def _cuts(self) -> bool:
        """Return whether power cuts are asked for."""
        return self.space.guarantee is not Guarantee.NONE and self.asked.states > 0

    def judge_choices(
        self, candidates: Mapping[str, Candidate], title: str, *, enough: bool = False
    ) -> Iterator[Choice]:
        """Cut the power of candidates by name in every regime, of several at a time; yield each in
        their order once it stands. With `enough`, that of longer runs too, where nothing is broken
        and the own one has fewer distinct states than are asked for.
        """
        choices = {name: self._choice(each) for name, each in candidates.items()}
        if not self._cuts:
            yield from choices.values()
            return
        states = self.asked.drawn_states
        asked = [(self._plan(candidates), states)]
        title = f"{title}: {states:,} states after power cuts in each regime"
        # Of each that was cut, the longer runs that there may be, by regime.
        longer: dict[str, dict[str, Iterator[tuple[Plan, int]]]] = {}
        wanted: dict[str, list[tuple[Plan, int]]] = {}
        while asked:
            for name, judged, why in self._cut(asked, title):
                known = choices[name]
                both = {**known.judged, **judged}
                choices[name] = choice = replace(known, judged=both, why=known.why or why)
                if enough and name not in longer:
                    own = choice.durability_by_regime.items()
                    longer[name] = {
                        regime: iter(self._longer(choice.candidate, name, regime, found.states))
                        for regime, found in own
                    }
                wanted[name] = self._missing(choice, longer.get(name, {}))
                # In order: whoever comes before another stands before it.
                while choices and wanted.get(first := next(iter(choices))) == []:
                    yield choices.pop(first)
            asked = [each for plans in wanted.values() for each in plans]
            wanted = {name: plans for name, plans in wanted.items() if not plans}
            title = f"more states where there were too few: {plural(len(asked), 'run')}"
        yield from choices.values()

    def _missing(
        self, choice: Choice, longer: Mapping[str, Iterator[tuple[Plan, int]]]
    ) -> list[tuple[Plan, int]]:
        """Return the next longer run of each regime that has fewer states than are asked for."""
        if self._is_refused(choice):
            return []
        found = choice.durability_by_regime
        short = [each for each in longer if found[each].states < self.asked.states]
        return [plan for regime in short if (plan := next(longer[regime], None))]

    def _cut(
        self, plans: Sequence[tuple[Plan, int]], title: str
    ) -> Iterator[tuple[str, dict[str, CaseSummary], str]]:
        """Cut the power of planned candidates, each of which has one plan or more, with the states
        of each case. Yield the name of each once all its cases have ended, what power cuts left of
        it, by regime, and why that is not known of one.
        """
        campaigns = [(self._campaign(planned), states) for planned, states in plans]
        requests = [
            each for campaign, states in campaigns for each in campaign.power_cut_requests(states)
        ]
        cases = [case for campaign, _ in campaigns for case in campaign.cases]
        names = {case.case_id: case.variant for case in cases}
        left = Counter(case.variant for each in requests for case, _ in each.answers)
        answers: dict[str, list[Answer]] = {}
        whys: dict[str, str] = {}
        with self._step(title, left.total(), "verdict") as watcher:
            for step, answer in run_requests(requests, self.lab, watcher):
                watcher.note_finished(step)
                name = names[step.case_id]
                if answer is None:
                    whys[name] = step.failure
                else:
                    answers.setdefault(step.case_id, []).append(answer)
                left[name] -= 1
                if not left[name]:
                    found = verdicts([case for case in cases if case.variant == name], answers)
                    judged = {str(case.case.get("regime", "")): case for case in found}
                    yield name, judged, whys.get(name, "")

    def _longer(
        self, candidate: Candidate, name: str, regime: str, states: int
    ) -> list[tuple[Plan, int]]:
        """Return the plans of longer runs, where its own has `states` distinct states and more are
        asked for, and how many to ask of each: a run as long as seems enough, then a longer one.
        """
        asked, regimes = self.asked.states, (regime,) if regime else ()
        own = int(self.space.settings(candidate).get("transactions", 0))
        # States grow less than a run does: some are those of its beginning and of its end.
        times = {min(MOST_LONGER, more * asked / max(states, 1)) for more in (2, 8)}
        plans = []
        for length in sorted({math.ceil(own * each) for each in times} - {0}):
            # Its device may have no room for it.
            with contextlib.suppress(UseError):
                longer = self._plan({name: candidate}, regimes, {"transactions": length})
                # A quarter are second cuts, and may leave what is known: of so many the others are
                # enough (choose() in agent/src/lab/power_cut/states.rs).
                plans.append((longer, math.ceil(asked * 4 / 3)))
        # As many more draws as states are missing, in each round of them.
        return plans or [(self._plan({name: candidate}, regimes), 2 * asked)]

    def _plan(
        self,
        candidates: Mapping[str, Candidate],
        regimes: Sequence[str] | None = None,
        changed: Mapping[str, Value] | None = None,
    ) -> Plan:
        """Return the plan of some candidates by name, in every regime that counts or in some, with
        some fields `changed`.
        """
        if regimes is None:
            regimes = tuple(regime for regime in self.asked.shares if regime)
        settings = {**self.asked.settings, **(changed or {})}
        seeds, notes = self.asked.seeds, self.asked.notes
        return plan(experiment(self.space, settings, tuple(regimes), candidates, seeds, notes))

    @cached_property
    def images(self) -> Images:
        """The images that all candidates run in, made before the first of them."""
        return self._make_images(self._plan({"present": self.space.own}), self.lab.cache)

    @cached_property
    def native(self) -> Mapping[str, str]:
        """The builds of User Mode Linux that judge in place of guests, if that is asked for."""
        planned = self._plan({"present": self.space.own})
        return self._make_native(planned, self.lab.cache, self.lab.options) if self._cuts else {}

    def _campaign(self, planned: Plan) -> Campaign:
        return Campaign(planned, self.images, self.lab, self.native)

    @contextlib.contextmanager
    def _step(self, title: str, steps: int, unit: str) -> Iterator[RunProgress]:
        """Yield who is notified of the progress of a step, each of whose cases and seeds makes one
        unit.
        """
        self.under_way = title
        with self.shown(title, steps, unit) as watcher:
            yield watcher


def speed_up(choice: Choice, other: Choice) -> float:
    """Return how many times as fast a row is as with another choice."""
    return other.score.row_ns / choice.score.row_ns if choice.score.row_ns else math.inf


def bill_savings(summary: RunSummary, request: AdviceRequest) -> dict[str, tuple[LineDelta, ...]]:
    """Return the lines by the names that the choices have in the run, in the commonest regime.

    `line` is the present one, `before` that of the choice, both of one row.
    """
    regime = max(request.shares, key=lambda each: request.shares[each])
    bills = {
        case.case_id.removesuffix(f"-{regime}"): (case.bill, int(case.case.get("statements", 1)))
        for case in summary.cases
        if case.bill and case.case_id.endswith(regime)
    }
    if "present" not in bills:
        return {}
    lines = {name: per_row(lines_of(bill), rows) for name, (bill, rows) in bills.items()}
    return {
        name: tuple(filter(_is_less, grown_lines("latency_ns_p50", lines["present"], own)))
        for name, own in lines.items()
        if name != "present"
    }


def _is_less(each: LineDelta) -> bool:
    """Return whether the choice needs no more of a line: fewer requests of more bytes save
    nothing.
    """
    now, chosen = each.line, each.before
    return chosen is None or (now.requests >= chosen.requests and now.bytes >= chosen.bytes)


def outlook(request: AdviceRequest, options: Options) -> str:
    """Say how many settings are to be measured and how many states judged, and how long that takes
    where each case is a usual one.
    """
    state_s, jobs = usual_state_s(native=options.native), options.jobs
    space, regimes = request.space, len(request.shares)
    first = first_round(space)
    most = len(first) + KEPT * (len(neighbours(space, first[-1])) + 1)
    most = min(most, len({space.own, *space.candidates}))
    promised = space.guarantee is not Guarantee.NONE
    cut = request.answers + 1 + MOST_REFUSED if promised and request.states else 0
    judged = cut * regimes * request.drawn_states
    seconds = ((most + cut) * regimes * USUAL_CASE_S + judged * state_s) / jobs
    among = f" that the manuals allow for {space.guarantee}" if promised else ""
    states = (
        f"; then {cut * regimes} times {request.drawn_states:,} states after power cuts"
        if cut
        else ""
    )
    if promised and not cut:
        states = "; no power is cut (--states 0)"
    return (
        f"{len(space.candidates):,} settings{among}; {len(first)} in the first round, some {most} "
        f"in all, each in {' and '.join(filter(None, request.shares)) or 'one run'}{states}: "
        f"by {USUAL_CASE_S:g} s for a usual case and {state_s:g} s a state some "
        f"{format_duration(seconds)} on {plural(jobs, 'core')}, longer where the app's own run is, "
        "or has too few states, less what the cache has; Ctrl-C keeps what is finished"
    )
