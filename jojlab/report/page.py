"""Writes a run's report: one HTML file with its style, charts and script inside, no network.

Gets a RunSummary; the same summary gives the same bytes.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from markupsafe import Markup

from jojlab.analysis.run.compare import flatten
from jojlab.analysis.run.summary import RunSummary
from jojlab.analysis.study.parts import Part
from jojlab.foundation.printable import plural
from jojlab.report import experiment
from jojlab.report.answer import answer_section
from jojlab.report.bill import bill_section, statements_section
from jojlab.report.case_charts import multiples_section
from jojlab.report.commits import commits_section
from jojlab.report.comparison import case_data, compare_section
from jojlab.report.durability_section import safety
from jojlab.report.experiment import verdict_section
from jojlab.report.latency import latency_section, throughput_section
from jojlab.report.live_trace import live_section
from jojlab.report.memory_model import memory_section
from jojlab.report.overview import figures_section, overview, warnings
from jojlab.report.shared import text
from jojlab.report.shared.template import (
    Section,
    Specs,
    page_policy,
    render,
    script_json,
    vega_script,
    write_page,
)
from jojlab.report.traffic import kinds_section, places_section

_FOLDER = Path(__file__).parent
_SCRIPTS = ("lba_tools.js", "lba.js", "fit.js", "cases.js", "compare.js", "page.js")


def method_section(summary: RunSummary, run: str) -> Section:
    """Say what made the numbers: configuration read back, fingerprint, settings, other cases."""
    return Section.render(
        "method",
        "method",
        clocks=text.clocks(summary.clocks),
        configurations=[
            (case.label, _flat(case.configuration))
            for case in summary.measured_cases
            if case.configuration
        ],
        absent=[(c.label, f"{c.status}: {c.reason}") for c in summary.cases if c.status != "ok"],
        settings=_flat(summary.experiment.get("settings", {})),
        fingerprint=_flat(summary.fingerprint),
        memory_models=[f"memory-model-{model.core}.json" for model in summary.memory_models],
        run=run,
        same="   # the same on any machine" if summary.clocks == ("virtual",) else "",
    )


def _flat(values: Mapping[str, Any]) -> list[tuple[str, str]]:
    return [
        (name, value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
        for name, value in flatten(values).items()
    ]


class ReportPage(NamedTuple):
    """A run, its folder as commands name it, and the charts and pictures of its sections."""

    summary: RunSummary
    run: str
    specs: Specs
    pictures: Specs

    @property
    def has_overview(self) -> bool:
        """Return whether there are figures to glance at: an imported trace has none."""
        cases = self.summary.cases
        shown = any(case.figures.seeds or case.traffic for case in cases)
        return bool(self.summary.measured_cases) or not shown

    @property
    def has_bill(self) -> bool:
        """Return whether a bill of some case is known."""
        return any(case.bill for case in self.summary.measured_cases)


class SectionKind(NamedTuple):
    """A section that the page of one experiment may have: its id, the words that lead to it in the
    page's index, and what makes it, or None where the run has nothing for it.
    """

    name: str
    title: str
    make: Callable[[ReportPage], Section | None]


# In the order of the page. A section is a module and a row.
SECTIONS = (
    SectionKind("answer", "In short", lambda page: answer_section(page.summary, page.run)),
    SectionKind("processes", "Processes", lambda page: live_section(page.summary, page.run)),
    SectionKind("multiples", "Time and bytes", lambda page: multiples_section(page.summary)),
    SectionKind(
        "commit", "One commit", lambda page: commits_section(*page[:3]) if page.has_bill else None
    ),
    SectionKind(
        "overview",
        "At a glance",
        # Of one case the answer has said it.
        lambda page: (
            overview(page.summary, page.run)
            if page.has_overview and len(page.summary.cases) > 1
            else None
        ),
    ),
    SectionKind("safety", "Is it safe?", lambda page: safety(page.summary, page.run)),
    SectionKind(
        "figure",
        "Notes",
        lambda page: experiment.pictures_section(only_part(page), page.summary, page.specs),
    ),
    SectionKind(
        "published", "Published", lambda page: experiment.published_section(only_part(page))
    ),
    SectionKind("memory", "Memory", lambda page: memory_section(page.summary)),
    SectionKind(
        "compare",
        "Compare",
        lambda page: compare_section(page.summary) if page.has_overview else None,
    ),
    SectionKind(
        "throughput",
        "Throughput",
        lambda page: throughput_section(*page[:3]) if page.summary.measured_cases else None,
    ),
    SectionKind(
        "latency",
        "Latency",
        lambda page: latency_section(*page[:3]) if page.summary.measured_cases else None,
    ),
    SectionKind(
        "bill", "The bill", lambda page: bill_section(*page[:2]) if page.has_bill else None
    ),
    SectionKind(
        "figures",
        "All figures",
        lambda page: (
            figures_section(page.summary, page.run) if page.summary.measured_cases else None
        ),
    ),
    SectionKind(
        "statements", "Statements", lambda page: statements_section(page.summary, page.run)
    ),
    SectionKind("kinds", "Kinds of I/O", lambda page: kinds_section(*page[:3])),
    SectionKind(
        "places", "Over time", lambda page: places_section(page.summary, page.run, page.pictures)
    ),
    SectionKind("method", "Method", lambda page: method_section(page.summary, page.run)),
)


def only_part(page: ReportPage) -> Part:
    """Return the one experiment of a run that is not composed of several."""
    [part] = page.summary.parts
    return part


def write_report(path: Path, summary: RunSummary, run: str) -> None:
    """Write the report to `path`, atomically; `run` is the folder as the commands name it."""
    write_page(path, report_html(summary, run))


def report_html(summary: RunSummary, run: str) -> str:
    """Return the whole page."""
    run = shlex.quote(run)
    page = ReportPage(summary, run, specs={}, pictures={})
    if summary.is_composed:
        parts = summary.parts
        sections = [verdict_section(summary)]
        sections += [experiment.experiment_section(part, *page[:3]) for part in parts]
        sections.append(method_section(summary, run))
    else:
        sections = [kind.make(page) for kind in SECTIONS]
    body = [section for section in sections if section]
    own = [(_FOLDER / name).read_text(encoding="utf-8") for name in _SCRIPTS]
    script = "\n".join([vega_script(), *own])
    # Markup is what must not be escaped: files of jojlab, its policy, JSON that ends no element.
    return render(
        "report/page.html",
        policy=page_policy(script),
        title=summary.question or summary.name,
        name=summary.name,
        lead=_lead(summary),
        style=Markup((_FOLDER / "page.css").read_text(encoding="utf-8")),
        index=_index(summary, body),
        warnings=warnings(summary),
        sections=body,
        cases_data=script_json(case_data(summary)),
        charts=script_json(page.specs),
        pictures=script_json(page.pictures),
        script=Markup(script),
    )


def _lead(summary: RunSummary) -> str:
    """Return what was measured, and by which clock; a live trace is of no cases and no seeds."""
    clocks = text.clocks(summary.clocks)
    if any(case.live for case in summary.cases):
        return clocks
    shown = sum(bool(case.figures.seeds or case.traffic) for case in summary.cases)
    words = f"{summary.name}: {shown} of {plural(len(summary.cases), 'case')}"
    words += f", {plural(len(summary.seeds), 'seed')} each" if summary.measured_cases else ""
    return f"{words}. {clocks}"


def _index(summary: RunSummary, sections: list[Section]) -> list[tuple[str, str]]:
    """Return where the page's index leads, and the words of the link."""
    titles = {kind.name: kind.title for kind in SECTIONS}
    parts = {experiment.anchor(part.name): part.name for part in summary.parts}
    titles = {"answer": titles["answer"]} | parts | titles
    there = {section.name for section in sections}
    return [(quote(name), title) for name, title in titles.items() if name in there]
