"""Fills the report's templates, which stand beside the code that calls them: NAME.html for NAME.py.

Jinja2 escapes every value; only what a template rendered is HTML. elements.html has the macros that
all sections are made of.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

# The charts (Vega-Lite) or pictures of a page, by the name of their place.
Specs = dict[str, dict[str, Any]]


class Noted(NamedTuple):
    """A cell of a table with small text below it, line by line, and the style of that.

    `value` is the number that the column is sorted by; `link` the id that the text leads to.
    """

    text: str
    small: str
    style: str = ""
    value: float | None = None
    link: str = ""


Cell = str | Noted


def case_anchor(case_id: str) -> str:
    """Return the id of the place of a case on the page: its permanent link, without the `#`."""
    return f"case-{case_id}"


class Section(NamedTuple):
    """A section of the page; `name` is the id that the page's index points at."""

    name: str
    html: Markup


def render(template: str, **values: Any) -> Markup:
    """Return what a template ("report/sections/bill.html") makes of `values`."""
    return Markup(_environment().get_template(template).render(values))


@cache
def _environment() -> Environment:
    return Environment(
        loader=PackageLoader("jojlab", ""),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
