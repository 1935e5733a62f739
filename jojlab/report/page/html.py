"""Writes a run's report: one HTML file with its style, charts and script inside, no network.

Gets a RunSummary; the same summary gives the same bytes.
"""

from __future__ import annotations

import shlex
from pathlib import Path
from urllib.parse import quote

from markupsafe import Markup

from jojlab.analysis.run.summary import RunSummary
from jojlab.report.page.file import page_policy, script_json, vega_script, write_page
from jojlab.report.sections import experiment
from jojlab.report.sections.answer import short_answer
from jojlab.report.sections.bill import bill
from jojlab.report.sections.commits import commits
from jojlab.report.sections.compare import case_data, compare
from jojlab.report.sections.memory import memory
from jojlab.report.sections.method import method
from jojlab.report.sections.overview import overview, warnings
from jojlab.report.sections.safety import safety
from jojlab.report.sections.template import Section, Specs, render
from jojlab.report.sections.times import latency, throughput
from jojlab.report.sections.traffic import kinds, places
from jojlab.report.sections.verdict import verdict
from jojlab.report.words import text

_FOLDER = Path(__file__).parent
_SCRIPTS = ("lba_tools.js", "lba.js", "fit.js", "cases.js", "compare.js", "page.js")
_INDEX = {
    "answer": "In short",
    "overview": "At a glance",
    "compare": "Compare",
    "safety": "Is it safe?",
    "figure": "In one picture",
    "published": "Published",
    "memory": "Memory",
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
    write_page(path, report_html(summary, run))


def report_html(summary: RunSummary, run: str) -> str:
    """Return the whole page."""
    run = shlex.quote(run)
    specs: Specs = {}
    pictures: Specs = {}
    if summary.is_composed:
        sections = [verdict(summary)]
        sections += [experiment.whole(part, summary, run, specs) for part in summary.parts]
    else:
        sections = _one_experiment(summary, run, specs, pictures)
    body = [section for section in (*sections, method(summary, run)) if section]
    own = [(_FOLDER / name).read_text(encoding="utf-8") for name in _SCRIPTS]
    script = "\n".join([vega_script(), *own])
    seeds = len(summary.seeds)
    # Markup is what must not be escaped: files of jojlab, its policy, JSON that ends no element.
    return render(
        "report/page/page.html",
        policy=page_policy(script),
        title=summary.question or summary.name,
        name=summary.name,
        style=Markup((_FOLDER / "page.css").read_text(encoding="utf-8")),
        shown=sum(bool(case.figures.seeds or case.traffic) for case in summary.cases),
        cases=len(summary.cases),
        each=f", {seeds} seed{'s' if seeds != 1 else ''} each" if summary.measured else "",
        clocks=text.clocks(summary.clocks),
        index=_index(summary, body),
        warnings=warnings(summary),
        sections=body,
        cases_data=script_json(case_data(summary)),
        charts=script_json(specs),
        pictures=script_json(pictures),
        script=Markup(script),
    )


def _index(summary: RunSummary, sections: list[Section]) -> list[tuple[str, str]]:
    """Return where the page's index leads, and the words of the link."""
    parts = {experiment.anchor(part): part.name for part in summary.parts}
    titles = {"answer": _INDEX["answer"]} | parts | _INDEX
    there = {section.name for section in sections}
    return [(quote(name), title) for name, title in titles.items() if name in there]


def _one_experiment(
    summary: RunSummary, run: str, specs: Specs, pictures: Specs
) -> list[Section | None]:
    """Return the sections of a run of one experiment."""
    shown = [case for case in summary.cases if case.figures.seeds or case.traffic]
    found = [short_answer(summary, run)]
    # Of a run without transactions, such as an imported trace, there are no figures to glance at.
    if summary.measured or not shown:
        found += [overview(summary, run), compare(summary)]
    found.append(safety(summary, run))
    for part in summary.parts:
        found += [experiment.pictures(part, summary, specs), experiment.published(part)]
    found.append(memory(summary))
    if summary.measured:
        found += [throughput(summary, run, specs), latency(summary, run, specs)]
    if any(case.bill for case in summary.measured):
        found += [bill(summary, run, specs), commits(summary, run, specs)]
    return [*found, kinds(summary, run, specs), places(summary, run, pictures)]
