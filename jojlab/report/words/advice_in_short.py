"""The first lines of an advice: what to do, what that gains, and for what it holds.

Gets the choices and what was asked (jojlab/advise); computes nothing.
"""

from __future__ import annotations

from jojlab.advise.advice import Advice, Choice, speed_up
from jojlab.advise.asked import Asked
from jojlab.analysis.run.answer import MEANS
from jojlab.analysis.run.guarantee import Guarantee
from jojlab.analysis.run.risks import Harm
from jojlab.report.words import hazards, text
from jojlab.report.words.advice import NOT_CUT, survives

_NONE = "no settings that were measured keep the guarantee and the limits"


def in_short(advice: Advice, asked: Asked) -> dict[str, str]:
    """Return a line each of `do`, `gain` and `holds`; without an answer there is no gain."""
    if not advice.answers:
        return {"do": _NONE, "holds": _holds(asked)}
    assert advice.present
    first = advice.answers[0]
    return {
        "do": _do(first, asked),
        "gain": _gain(first, advice.present, asked),
        "holds": f"{_holds(asked)}; {_kept(first, asked)}",
    }


def _do(first: Choice, asked: Asked) -> str:
    changed = asked.space.differences(first.candidate)
    if not changed:
        return (
            "change nothing: of the settings that were measured, none that keeps the guarantee "
            "and the limits is cheaper by 1 %"
        )
    told = (
        f"{name} = {new or 'none'} (now {old or 'none'})" for name, (old, new) in changed.items()
    )
    return f"{', '.join(told)}; answer-1 has the lines to paste"


def _gain(first: Choice, present: Choice, asked: Asked) -> str:
    now, then = present.score, first.score
    by = " by the row" * ("statements" in asked.space.differences(first.candidate))
    if first.candidate == present.candidate:
        return f"none: a commit takes {text.duration(now.commit_ns)} as it is"
    ratio = speed_up(first, present)
    told = f"{text.times(ratio)} times as fast{by}: a commit takes "
    if ratio < 1:
        times = text.times(1 / ratio) if ratio else "many"
        told = f"none: {_loses(present, asked)} costs {times} times as much{by}: a commit takes "
    return (
        f"{told}{text.duration(then.commit_ns)} in place of {text.duration(now.commit_ns)}, p99 "
        f"{text.duration(then.p99_ns)} in place of {text.duration(now.p99_ns)}, and sends "
        f"{text.size(then.bytes)} to the device in place of {text.size(now.bytes)}"
    )


def _loses(present: Choice, asked: Asked) -> str:
    """Say why what the present settings do is no choice."""
    space = asked.space
    harms = {each.kind for each in space.ruled_out_by(present.candidate)}
    if harms and harms <= {Harm.COMMITS, Harm.WRITES, Harm.NAMES}:
        return "your present settings may lose commits; keeping them"
    if harms:
        risked = hazards.short(space.ruled_out_by(present.candidate))
        return f"your present settings put at risk: {risked}; keeping that safe"
    if present.breaks(space.guarantee, but_torn_blocks=True):
        return "your present settings broke the guarantee after a power cut; keeping it"
    return "your present settings exceed the limits; what keeps them"


def _holds(asked: Asked) -> str:
    """For which app, device, regimes, seeds and limits."""
    present = asked.space.settings(asked.space.own)
    # What is free to choose or stands in the line of the present settings is no condition.
    named = {"workload", "regime", *MEANS - {"kernel"}, *asked.space.values}
    more = [f"{name}={value}" for name, value in asked.given.items() if name not in named]
    shares = [
        f"{text.digits(share * 100)} % {regime}" for regime, share in asked.shares.items() if regime
    ]
    limits = asked.limits
    seeds = ", ".join(str(seed) for seed in asked.seeds)
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


def _kept(first: Choice, asked: Asked) -> str:
    guarantee = asked.space.guarantee
    if guarantee is Guarantee.NONE:
        return "a power cut may do anything (--guarantee none)"
    if not asked.states:
        return NOT_CUT
    if asked.space.present["workload"] == "replay":
        return (
            f"by the manuals, what its syncs promised survives, and after power cuts "
            f"{survives(first)}; what its commits lose is not known"
        )
    return f"{guarantee} by the manuals, and after power cuts {survives(first)}"
