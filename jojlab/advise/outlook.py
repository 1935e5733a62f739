"""What will a search cost? Told before it begins."""

from __future__ import annotations

from jojlab.advise.advice import MOST_REFUSED
from jojlab.advise.request import AdviceRequest
from jojlab.advise.search import KEPT, first_round, neighbours
from jojlab.analysis.run.risks import Guarantee
from jojlab.campaign.campaign import USUAL_CASE_S, USUAL_STATE_S, format_duration
from jojlab.foundation.printable import plural


def outlook(asked: AdviceRequest, jobs: int) -> str:
    """Say how many settings are to be measured and how many states judged, and how long `jobs`
    guests at a time take for that where each case is a usual one.
    """
    space, regimes = asked.space, len(asked.shares)
    first = first_round(space)
    most = len(first) + KEPT * (len(neighbours(space, first[-1])) + 1)
    most = min(most, len({space.own, *space.candidates}))
    promised = space.guarantee is not Guarantee.NONE
    cut = asked.answers + 1 + MOST_REFUSED if promised and asked.states else 0
    judged = cut * regimes * asked.states
    # An answer whose run has too few states is judged twice more, by four thirds as many each; of a
    # recording once, by twice as many.
    again = 8 / 3 * asked.answers * regimes * asked.states if cut else 0
    seconds = (most * regimes * USUAL_CASE_S + (judged + again) * USUAL_STATE_S) / jobs
    among = f" that the manuals allow for {space.guarantee}" if promised else ""
    states = f"; then {cut * regimes} times {asked.states:,} states after power cuts" if cut else ""
    if promised and not cut:
        states = "; no power is cut (--states 0)"
    return (
        f"{len(space.candidates):,} settings{among}; {len(first)} in the first round, some {most} "
        f"in all, each in {' and '.join(filter(None, asked.shares)) or 'one run'}{states}: "
        f"by {USUAL_CASE_S:g} s for a usual case and {USUAL_STATE_S:g} s a state some "
        f"{format_duration(seconds)} on {plural(jobs, 'core')}, longer where the app's own run is, "
        "less what the cache has; Ctrl-C keeps what is finished"
    )
