"""The bill that was accepted last: kept beside the budgets, so that a broken one can say what grew.

It is JSON, sorted and with a line for each line of the bill, for a repository to keep and compare.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from jojlab.analysis.commit.bill import BillLine, lines_of
from jojlab.analysis.run.summary import RunSummary
from jojlab.foundation.document import checked
from jojlab.foundation.errors import MachineError, UseError


class AcceptedCase(msgspec.Struct, frozen=True):
    """One case: the fields that it had, its figures, and the lines of its bill."""

    settings: dict[str, str | int]
    figures: dict[str, int | float]
    lines: list[BillLine]


class Accepted(msgspec.Struct, frozen=True):
    """The cases by their names, and the hash of the image that measured them."""

    image: str
    cases: dict[str, AcceptedCase]


def accept(summary: RunSummary) -> Accepted:
    """Return what a run says of its cases."""
    return Accepted(
        image_of(summary.fingerprint),
        {
            case.case_id: AcceptedCase(
                dict(case.case), dict(case.figures.median), list(lines_of(case.bill))
            )
            for case in summary.measured
            if case.bill
        },
    )


def image_of(fingerprint: Mapping[str, Any]) -> str:
    """Return the hash of what measured a run; empty where none is known."""
    return str(fingerprint.get("image", ""))


def read_accepted(path: Path) -> Accepted | None:
    """Return the accepted bill, None where none is kept; UseError for one that cannot be read."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise UseError(f"{path}: cannot be read: {error.strerror}", "make it readable") from error
    except (ValueError, RecursionError) as error:
        raise UseError(f"{path}: not JSON: {error}", "joj gate --accept writes it again") from error
    return checked(document, Accepted, str(path), "joj gate --accept writes it again")


def write_accepted(path: Path, accepted: Accepted) -> None:
    """Keep an accepted bill; MachineError where that cannot be written."""
    text = json.dumps(msgspec.to_builtins(accepted), indent=1, sort_keys=True, ensure_ascii=False)
    try:
        path.write_text(text + "\n", encoding="utf-8")
    except OSError as error:
        raise MachineError(f"{path}: cannot be written: {error.strerror}", "make room") from error
