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
    """A cell of a table with small text below it, line by line, and the style of that."""

    text: str
    small: str
    style: str = ""


Cell = str | Noted


class Section(NamedTuple):
    """A section of the page; `name` is the id that the page's index points at."""

    name: str
    html: Markup


def render(template: str, **values: Any) -> Markup:
    """Return what a template ("sections/bill.html") makes of `values`."""
    return Markup(_environment().get_template(template).render(values))


@cache
def _environment() -> Environment:
    return Environment(
        loader=PackageLoader("jojlab.report", ""),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
