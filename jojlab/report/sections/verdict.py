"""The first screen of a study of several experiments: what is reproduced, and the errors."""

from __future__ import annotations

from html import escape
from urllib.parse import quote

from jojlab.analysis.run.summary import RunSummary
from jojlab.analysis.study.verdicts import PartVerdict, Verdicts, verdicts
from jojlab.report.sections import experiment
from jojlab.report.sections.elements import paragraph, section
from jojlab.report.words import statements, text


def verdict(summary: RunSummary) -> str:
    """Return the section, or nothing where no part has a published statement."""
    found = verdicts(summary.parts)
    if not (found.whole.orderings or found.whole.errors or found.anchors):
        return ""
    return section(
        "answer",
        "In short",
        f'<div class="cards">{_orderings(found)}{_predictions(found)}{_anchor(found)}</div>',
        _table(found),
        paragraph(
            "An ordering is a statement of the paper about which case is faster. It is reproduced "
            "if it holds in every case that it covers. An error is ours / theirs − 1; where the "
            "paper printed a change, it is the error of the ratio. Where ours differs, the part "
            "explains why, as far as a measurement shows it."
        ),
        *(paragraph(str(note)) for note in summary.experiment.get("notes", ())),
    )


def _card(title: str, big: str, line: str) -> str:
    return (
        f'<div class="card"><h3>{escape(title)}</h3><p class="big">{escape(big)}</p>'
        f"<p>{escape(line)}</p></div>"
    )


def _orderings(found: Verdicts) -> str:
    whole = found.whole
    if not whole.orderings:
        return ""
    return _card(
        "Does its ranking hold?",
        f"{whole.reproduced} of {whole.orderings} orderings",
        "of the paper are reproduced in every case that they cover",
    )


def _predictions(found: Verdicts) -> str:
    middle = found.whole.median_error
    if middle is None:
        return ""
    return _card(
        "Are its numbers reproduced?",
        f"median error {text.percent(middle)}",
        f"{len(found.whole.errors)} predictions, none of them fitted: {found.close} within 10 %, "
        f"half within {text.percent(middle)}; numbers of the paper that are not available: "
        f"{found.missing}",
    )


def _anchor(found: Verdicts) -> str:
    cards = [
        _card(
            "What the device is fitted to",
            f"{statements.ours(anchor, point)} for {statements.theirs(anchor)}",
            f"{statements.title(anchor)}: the only fitted number ({statements.error(point)})",
        )
        for anchor, point in found.anchors
    ]
    return "".join(cards)


def _table(found: Verdicts) -> str:
    head = "".join(
        f"<th{side}>{title}</th>"
        for title, side in (
            ("experiment", ""),
            ("orderings reproduced", ' class="n"'),
            ("predictions", ' class="n"'),
            ("median error", ' class="n"'),
        )
    )
    rows = "".join(_row(part) for part in found.parts)
    return (
        f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody>'
        "</table></div>"
    )


def _row(part: PartVerdict) -> str:
    middle = part.median_error
    cells = (
        f"{part.reproduced} of {part.orderings}" if part.orderings else "–",
        str(len(part.errors)) if part.errors else "–",
        "–" if middle is None else text.percent(middle),
    )
    name = f'<a href="#{escape(quote(experiment.anchor_of(part.name)))}">{escape(part.name)}</a>'
    numbers = "".join(f'<td class="n">{cell}</td>' for cell in cells)
    return f"<tr><td>{name}</td>{numbers}</tr>"
