"""Fills the templates of a page, which stand beside the code that calls them (bill.html, bill.py),
and writes the page with its policy and its scripts.

Jinja2 escapes every value; only what a template rendered is HTML. elements.html has the macros that
all sections are made of.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

from markupsafe import Markup

from jojlab.analysis.run.summary import CaseSummary
from jojlab.foundation.cache import Cache
from jojlab.foundation.errors import whole_file
from jojlab.foundation.lazy import jinja2, vl_convert

# The charts (Vega-Lite) or pictures of a page, by the name of their place.
Specs = dict[str, dict[str, Any]]


class NotedCell(NamedTuple):
    """A cell of a table with small text below it, line by line, and the style of that.

    `value` is the number that the column is sorted by; `link` the id that the text leads to.
    """

    text: str
    small: str
    style: str = ""
    value: float | None = None
    link: str = ""


Cell = str | NotedCell


def case_anchor(case_id: str) -> str:
    """Return the id of the place of a case on the page: its permanent link, without the `#`."""
    return f"case-{case_id}"


def case_ids(cases: Iterable[CaseSummary]) -> list[str]:
    """Return the ids of the cases that the rows of a table are of."""
    return [case.case_id for case in cases]


class Section(NamedTuple):
    """A section of the page; `name` is the id that the page's index points at."""

    name: str
    html: Markup

    @classmethod
    def render(cls, name: str, template: str, /, **values: Any) -> Section:
        """Return the section that jojlab/report/TEMPLATE.html makes of `values`."""
        return cls(name, render(f"report/{template}.html", **values))


def render(template: str, **values: Any) -> Markup:
    """Return what a template ("report/bill.html") makes of `values`."""
    return Markup(_environment().get_template(template).render(values))


@cache
def _environment() -> jinja2.Environment:
    return jinja2.Environment(
        loader=jinja2.PackageLoader("jojlab", ""),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def write_page(path: Path, page: str) -> None:
    """Write a page to `path`, atomically; raises MachineError where that cannot be."""
    with whole_file(path, "name another file with --out") as stream:
        stream.write(page.encode())


def page_policy(script: str) -> Markup:
    """Return the page's Content-Security-Policy: whatever a table holds, it fetches nothing and
    runs no script but its own, which is named by its hash (CSP Level 3, 2.3.1). Charts are drawn
    by an interpreter of Vega's expressions (page.js: `ast`), so that nothing is evaluated.
    """
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode("ascii")
    return Markup(
        f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )


@cache
def vega_script() -> str:
    """Return Vega, Vega-Lite and Vega-Embed in one script (from the package, not the network).

    Bundling takes longer than the rest of a report: it is done once for a version of the package.
    """

    def bundle(folder: Path) -> None:
        script = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")
        (folder / "vega.js").write_text(str(script), encoding="utf-8")

    entry = Cache.default().entry("vega", version("vl-convert-python"), bundle)
    return (entry / "vega.js").read_text(encoding="utf-8")


def script_json(specs: Mapping[str, Any]) -> Markup:
    """Return JSON that cannot end the script element it stands in."""
    return Markup(json.dumps(specs).replace("<", r"\u003c"))
