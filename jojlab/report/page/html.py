"""Writes a run's report: one HTML file with its style, charts and script inside, no network.

Gets a RunSummary; the same summary gives the same bytes.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import os
import shlex
from functools import cache
from html import escape
from importlib.metadata import version
from pathlib import Path
from typing import Any
from urllib.parse import quote

import vl_convert

from jojlab.analysis.run.summary import RunSummary
from jojlab.foundation.cache import Cache
from jojlab.foundation.errors import MachineError
from jojlab.report.sections import experiment
from jojlab.report.sections.answer import short_answer
from jojlab.report.sections.bill import bill
from jojlab.report.sections.commits import commits
from jojlab.report.sections.elements import Specs
from jojlab.report.sections.method import method
from jojlab.report.sections.overview import overview, warnings
from jojlab.report.sections.times import latency, throughput
from jojlab.report.sections.traffic import kinds, places
from jojlab.report.sections.verdict import verdict
from jojlab.report.words import text

_FOLDER = Path(__file__).parent
_SCRIPTS = ("lba_tools.js", "lba.js", "fit.js", "page.js")
# What charts draw over the bars of cases that put something at risk (charts/vega.py: HATCH).
_HATCH = (
    '<svg width="0" height="0" aria-hidden="true" style="position:absolute"><defs>'
    '<pattern id="hatch" width="6" height="6" patternUnits="userSpaceOnUse">'
    '<path d="M-1 1l2-2M0 6l6-6M5 7l2-2" stroke="var(--paper)" stroke-width="1.6"/>'
    "</pattern></defs></svg>\n"
)
_INDEX = {
    "answer": "In short",
    "overview": "At a glance",
    "figure": "In one picture",
    "published": "Published",
    "throughput": "Throughput",
    "latency": "Latency",
    "bill": "The bill",
    "commit": "One commit",
    "kinds": "Kinds of I/O",
    "places": "Over time",
    "method": "Method",
}


def write_report(path: Path, summary: RunSummary, run: str) -> None:
    """Write the report to `path`, atomically; `run` is the folder as the commands name it."""
    page = report_html(summary, run)
    temporary = path.with_name(f".{path.name}.partial")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_text(page, encoding="utf-8")
        os.replace(temporary, path)
    except OSError as error:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise MachineError(
            f"{path}: cannot write: {error.strerror or error}", "name another file with --out"
        ) from error


def report_html(summary: RunSummary, run: str) -> str:
    """Return the whole page."""
    run = shlex.quote(run)
    specs: Specs = {}
    pictures: Specs = {}
    shown = [case for case in summary.cases if case.figures.seeds or case.traffic]
    if summary.is_composed:
        body = verdict(summary)
        body += "".join(experiment.whole(part, summary, run, specs) for part in summary.parts)
    else:
        body = _one_experiment(summary, run, specs, pictures)
    body += method(summary, run)
    head = _head(summary, len(shown), body)
    own = [(_FOLDER / name).read_text(encoding="utf-8") for name in _SCRIPTS]
    script = "\n".join([_vega(), *own])
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_policy(script)}">\n'
        f"<title>{escape(summary.question or summary.name)}</title>\n"
        f"<style>\n{(_FOLDER / 'page.css').read_text(encoding='utf-8')}</style>\n</head>\n<body>\n"
        f"{_HATCH}{head}{warnings(summary)}{body}\n"
        f"<footer>jojlab, {escape(summary.name)}. The command below each "
        "number reproduces it.</footer>\n"
        f'<script type="application/json" id="charts">{_json(specs)}</script>\n'
        f'<script type="application/json" id="pictures">{_json(pictures)}</script>\n'
        f'<script type="module">{script}</script>\n</body>\n</html>\n'
    )


def _policy(script: str) -> str:
    """Return the page's Content-Security-Policy: whatever a table holds, it fetches nothing and
    runs no script but its own, which is named by its hash (CSP Level 3, 2.3.1). Charts are drawn
    by an interpreter of Vega's expressions (page.js: `ast`), so that nothing is evaluated.
    """
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode("ascii")
    return (
        f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )


def _one_experiment(summary: RunSummary, run: str, specs: Specs, pictures: Specs) -> str:
    """Return the sections of a run of one experiment."""
    shown = [case for case in summary.cases if case.figures.seeds or case.traffic]
    # Of a run without transactions, such as an imported trace, there are no figures to glance at.
    body = short_answer(summary, run)
    body += overview(summary, run) if summary.measured or not shown else ""
    for part in summary.parts:
        body += experiment.pictures(part, summary, specs)
        body += experiment.published(part)
    if summary.measured:
        body += throughput(summary, run, specs)
        body += latency(summary, run, specs)
    if any(case.bill for case in summary.measured):
        body += bill(summary, run, specs)
        body += commits(summary, run, specs)
    body += kinds(summary, run, specs)
    body += places(summary, run, pictures)
    return body


def _head(summary: RunSummary, shown: int, body: str) -> str:
    seeds = len(summary.seeds)
    each = f", {seeds} seed{'s' if seeds != 1 else ''} each" if summary.measured else ""
    parts = {experiment.anchor(part): part.name for part in summary.parts}
    index = {"answer": _INDEX["answer"]} | parts | _INDEX
    links = "".join(
        f'<a href="#{escape(quote(name))}">{escape(title)}</a>'
        for name, title in index.items()
        if f'<section id="{escape(name)}">' in body
    )
    clocks = text.clocks(summary.clocks)
    return (
        f"<header><h1>{escape(summary.question or summary.name)}</h1>"
        f'<p class="lead">{escape(summary.name)}: {shown} of {len(summary.cases)} '
        f"case{'s' if len(summary.cases) != 1 else ''}{each}. {escape(clocks)}</p>"
        f"<nav>{links}</nav></header>"
    )


@cache
def _vega() -> str:
    """Return Vega, Vega-Lite and Vega-Embed in one script (from the package, not the network).

    Bundling takes longer than the rest of a report: it is done once for a version of the package.
    """

    def bundle(folder: Path) -> None:
        script = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")
        (folder / "vega.js").write_text(str(script), encoding="utf-8")

    entry = Cache.default().entry("vega", version("vl-convert-python"), bundle)
    return (entry / "vega.js").read_text(encoding="utf-8")


def _json(specs: dict[str, dict[str, Any]]) -> str:
    """Return JSON that cannot end the script element it stands in."""
    return json.dumps(specs).replace("<", r"\u003c")
