"""The words about drawn scripts: no more than was judged."""

from __future__ import annotations

from collections import Counter

from jojlab.campaign.generated import SQL
from jojlab.report.generated import short_lines
from jojlab.trace.power_cuts import TornBlock


def test_no_harm_is_said_of_what_was_judged() -> None:
    torn = Counter({TornBlock.SUPERBLOCK: 2})
    assert short_lines(SQL, 9, 50, None, None, torn, 3) == (
        "No harm against the manuals in 9 scripts, up to 50 states each; that proves nothing safe.",
        "Not counted: a torn superblock in 2 states; no script avoids it.",
        "Failed, and so not judged: 3 cases.",
    )
    assert len(short_lines(SQL, 1000, 1000, None, None, Counter(), 0)) == 1
