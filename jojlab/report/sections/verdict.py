"""The first screen of a study of several experiments: what is reproduced, and the errors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple
from urllib.parse import quote

from jojlab.analysis.run.summary import RunSummary
from jojlab.analysis.study.verdicts import PartVerdict, Verdicts, verdicts
from jojlab.report.sections import experiment
from jojlab.report.sections.template import Section, render
from jojlab.report.words import statements, text


class Card(NamedTuple):
    """One answer: a question, the answer in large, and a line about it."""

    title: str
    big: str
    line: str


def verdict(summary: RunSummary) -> Section | None:
    """Return the section, or None where no part has a published statement."""
    found = verdicts(summary.parts)
    if not (found.whole.orderings or found.whole.errors or found.anchors):
        return None
    html = render(
        "report/sections/verdict.html",
        cards=[*_orderings(found), *_predictions(found), *_anchors(found)],
        parts=[_row(part) for part in found.parts],
        notes=summary.notes,
    )
    return Section("answer", html)


def _orderings(found: Verdicts) -> Iterator[Card]:
    whole = found.whole
    if whole.orderings:
        yield Card(
            "Does its ranking hold?",
            f"{whole.reproduced} of {whole.orderings} orderings",
            "of the paper are reproduced in every case that they cover",
        )


def _predictions(found: Verdicts) -> Iterator[Card]:
    middle = found.whole.median_error
    if middle is not None:
        yield Card(
            "Are its numbers reproduced?",
            f"median error {text.percent(middle)}",
            f"{len(found.whole.errors)} predictions, none of them fitted: {found.close} within "
            f"10 %, half within {text.percent(middle)}; numbers of the paper that are not "
            f"available: {found.missing}",
        )


def _anchors(found: Verdicts) -> Iterator[Card]:
    for anchor, point in found.anchors:
        yield Card(
            "What the device is fitted to",
            f"{statements.ours(anchor, point)} for {statements.theirs(anchor)}",
            f"{statements.title(anchor)}: the only fitted number ({statements.error(point)})",
        )


def _row(part: PartVerdict) -> dict[str, Any]:
    middle = part.median_error
    return {
        "name": part.name,
        "link": quote(experiment.anchor_of(part.name)),
        "cells": (
            f"{part.reproduced} of {part.orderings}" if part.orderings else "–",
            str(len(part.errors)) if part.errors else "–",
            "–" if middle is None else text.percent(middle),
        ),
    }
