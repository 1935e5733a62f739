import base64
import hashlib
import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
import vl_convert
from markupsafe import escape

from jojlab.analysis.run.summary import RunSummary, summarise
from jojlab.foundation.errors import DataError, MachineError
from jojlab.model.hazards import WAL_NORMAL, Harm, Hazard
from jojlab.report.answer import answer_lines
from jojlab.report.page import report_html, write_report
from jojlab.report.shared import vega
from tests.captures import make_run
from tests.hostile_run import HOSTILE, hostile_run
from tests.power_cut_answers import cut, states

WAL = "filesystem=ext4,journal_mode=wal"


@pytest.fixture(scope="module")
def summary(tmp_path_factory: pytest.TempPathFactory) -> RunSummary:
    folder = tmp_path_factory.mktemp("html") / "run"
    return summarise(make_run(folder, seeds=[1, 2], transactions=10))


@pytest.fixture(scope="module")
def page(summary: RunSummary) -> str:
    return report_html(summary, "runs/first look")


def charts_of(page: str) -> dict[str, dict[str, Any]]:
    found = re.search(r'<script type="application/json" id="charts">(.*?)</script>', page, re.S)
    assert found
    charts: dict[str, dict[str, Any]] = json.loads(found[1])
    return charts


def text_of(page: str) -> str:
    return page[: page.index('<script type="application/json"')]


def test_every_chart_has_a_place_and_can_be_drawn(page: str) -> None:
    charts = charts_of(page)
    assert set(charts) == set(re.findall(r'<div class="chart" id="([^"]+)"', page))
    assert len(charts) == 2 + 2  # throughput, latency; a commit of each case
    for name, spec in charts.items():
        drawn = vl_convert.vegalite_to_svg(spec)
        assert drawn.startswith("<svg"), name
    drawn = vl_convert.vegalite_to_svg(charts["commit-chart-0"])
    assert ">20 KiB descriptor, 4 × copy</text>" in drawn
    assert drawn.count(">flush</text>") == 2


def test_time_and_bytes_of_each_case_stand_in_one_chart(page: str) -> None:
    section = text_of(page).split('id="multiples"')[1].split("</section>")[0]
    assert re.findall(r'class="pair" data-case="[^"]*journal_mode=(\w+)"', section) == [
        "truncate",
        "wal",
    ]
    # The longest bar is as wide as the panel; 68 KiB and the deferred 0.4 are its parts.
    assert 'class="time" style="width:100.00%"' in section
    widths = [float(w) for w in re.findall(r"width:([\d.]+)%;background", section)]
    assert sum(widths[: len(widths) // 2 + 1]) > 100 > max(widths)
    for words in ("68.4 KiB", "database", "rollback journal", "WAL", "filesystem journal"):
        assert words in section


def test_a_page_fetches_nothing(page: str) -> None:
    assert not re.search(r'(src|href)\s*=\s*"?(https?:)?//', page)
    assert not re.search(r"@import|url\(", page[: page.index("</style>")])
    assert "default-src 'none'" in page
    assert page.count("vegaEmbed = vegaEmbed") <= 1
    assert len(page) < 2_000_000


def test_numbers_and_the_commands_for_them_are_there(page: str) -> None:
    shown = text_of(page)
    assert "68.4 KiB" in shown
    assert "deferred of it, to checkpoints and to the sync at the end: 0.1 requests" in shown
    assert '<code class="ask">joj show &#39;runs/first look&#39; --json</code>' in shown
    assert f"--case {WAL}" in shown
    assert "journal_mode off keeps no transaction" in shown
    assert "databases.main.journal_mode" in shown


def test_the_same_summary_gives_the_same_bytes(summary: RunSummary, page: str) -> None:
    assert report_html(summary, "runs/first look") == page


def test_a_complete_run_has_no_banner(page: str) -> None:
    assert 'class="banner' not in page


def test_a_failed_case_is_told_on_the_page(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", seeds=[1], transactions=2)
    run.mark(WAL, "failed", "the guest <b>panicked</b>")
    shown = text_of(report_html(summarise(run), "run"))
    assert "Cases without a result" in shown
    assert "the guest &lt;b&gt;panicked&lt;/b&gt;" in shown


def test_a_case_that_lacks_a_seed_is_not_without_an_answer(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", seeds=[1, 2], transactions=2)
    del run.case(WAL).captures[1]
    run.mark(WAL, "failed", "seed 2: the guest panicked")
    shown = text_of(report_html(summarise(run), "run"))
    assert "Cases that lack a seed" in shown
    assert "1 of 2 seeds" in shown
    assert "Cases without a result" not in shown


def test_a_run_without_captures_has_a_report(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", seeds=[1], transactions=1)
    for case in run.cases:
        case.captures, case.status, case.reason = [], "failed", "the disk was full"
    page = report_html(summarise(run), "run")
    assert charts_of(page) == {}
    assert text_of(page).count("the disk was full") >= 3


def test_every_chart_is_vega_lite(summary: RunSummary, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vega, "VALIDATE", True)
    specs = charts_of(report_html(summary, "run"))
    assert specs
    for spec in specs.values():
        named = set(re.findall(r'"data": {"name": "(\w+)"', json.dumps(spec)))
        assert named
        assert named == set(spec["datasets"])


def test_published_values_stand_beside_ours(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", seeds=[1], transactions=10)
    run.experiment["published"] = [
        {"case": {"journal_mode": "truncate"}, "figure": "bytes_per_commit", "value": 72,
         "unit": "KB", "source": "a paper", "place": "Fig. 3"},
        {"case": {"journal_mode": "persist"}, "figure": "throughput_tps", "value": 30,
         "unit": "rows/s", "source": "it"},
        {"case": {"journal_mode": "wal"}, "against": {"journal_mode": "truncate"},
         "figure": "bytes_per_commit", "holds": "below", "says": "WAL writes less", "source": "it"},
        {"case": {"journal_mode": "wal"}, "figure": "ops", "status": "missing", "source": "it"},
    ]  # fmt: skip
    shown = text_of(report_html(summarise(run), "run"))
    assert "a paper, Fig. 3" in shown
    assert '<td class="n">72 KB</td><td class="n">68.4 KiB</td>' in shown
    assert '<td class="n">30 rows/s</td><td class="n">–</td><td class="n">–</td>' in shown
    assert "<td>WAL writes less</td><td>reproduced</td>" in shown
    assert '<td class="n">not available</td>' in shown


class Elements(HTMLParser):
    """Collects the elements, attributes and scripts of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.scripts: list[str] = []
        self.addresses: list[str] = []
        self._in_script = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}
        self.addresses += [value or "" for name, value in attrs if name in ("href", "src")]
        self._in_script = tag == "script" and ("type", "module") in attrs

    def handle_data(self, data: str) -> None:
        if self._in_script:
            self.scripts.append(data)

    def handle_endtag(self, tag: str) -> None:
        self._in_script = False


@pytest.mark.parametrize("composed", [False, True])
def test_no_text_of_a_run_folder_becomes_part_of_the_page(tmp_path: Path, composed: bool) -> None:
    good, bad = Elements(), Elements()
    good.feed(report_html(summarise(make_run(tmp_path / "good", seeds=[1], transactions=3)), "r"))
    page = report_html(summarise(hostile_run(tmp_path / "bad", composed=composed)), HOSTILE)
    bad.feed(page)
    assert composed or f"/test.db{escape(HOSTILE)}" in page
    assert HOSTILE[:3] not in page.replace("&#39;", "")
    assert "alert(2)&lt;/script" in page
    assert bad.tags <= good.tags | {"ul", "li", "strong"}
    assert bad.attributes <= good.attributes | {"role"}
    assert all(address.startswith("#") for address in bad.addresses)
    assert len(bad.scripts) == len(good.scripts) == 1


def test_the_policy_lets_run_only_the_pages_own_script(page: str) -> None:
    found = Elements()
    found.feed(page)
    digest = base64.b64encode(hashlib.sha256(found.scripts[0].encode()).digest()).decode()
    [policy] = re.findall(r'Content-Security-Policy" content="([^"]+)"', page)
    rules = dict(rule.split(" ", 1) for rule in policy.split("; "))
    assert rules["script-src"] == f"'sha256-{digest}'"
    assert rules["default-src"] == "'none'"
    assert rules["base-uri"] == "'none'"


def test_names_cannot_end_the_script(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", seeds=[1], transactions=1)
    run.cases[0].case["journal_mode"] = "</script><script>alert(1)"
    page = report_html(summarise(run), "run")
    assert "<script>alert" not in page
    assert any("alert(1)" in json.dumps(spec) for spec in charts_of(page).values())


def test_a_report_that_cannot_be_written_is_told(summary: RunSummary, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(MachineError, match="cannot be written"):
        write_report(tmp_path / "file" / "report.html", summary, "run")


def test_the_first_screen_is_the_short_answer(summary: RunSummary, page: str) -> None:
    first = text_of(page).split('id="answer"')[1].split("</section>")[0]
    for line in answer_lines(summary):
        assert f"<p>{escape(line)}</p>" in first


def test_a_risk_is_said_once_and_marked_where_it_holds(summary: RunSummary) -> None:
    risky = tuple(
        replace(case, hazards=(Hazard(Harm.COMMITS, WAL_NORMAL),)) for case in summary.cases
    )
    shown = text_of(report_html(replace(summary, cases=risky), "run"))
    assert shown.count(WAL_NORMAL.sentence) == 1
    assert "at risk: last commits" in shown.split('id="overview"')[1]


def test_the_page_shows_the_counts_of_a_memory_model(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", seeds=[1], transactions=2)
    assert "memory-model" not in report_html(summarise(run), "run")
    counts: dict[str, float] = {
        name: 7 for name in ("loads", "stores", "bytes", "micro_tlb_misses", "walk_levels")
    }
    counts |= {"l1_misses": 5, "l2_misses": 4, "added_ns": 3e6}
    part = {"all": counts, "buffers": {"sbuf": counts}, "functions": {}}
    cases = [
        {"case_id": entry.case_id, "seeds": {"1": {"mount": part, "commit": part}}}
        for entry in run.cases
    ]
    model = {"core": "arm11", "title": "A core", "sources": ["a manual"], "cases": cases}
    (run.path / "memory-model-arm11.json").write_text(json.dumps(model))
    page = text_of(report_html(summarise(run), "run"))
    assert "memory-model-arm11.json of the run folder" in page
    assert "A core; while transactions ran, one seed" in page
    assert "a manual" in page
    assert "3.000 ms" in page  # of the commits alone
    assert page.count("sbuf") == 1
    (run.path / "memory-model-arm11.json").write_text("{}")
    with pytest.raises(DataError, match=r"memory-model-arm11\.json"):
        summarise(run)


def test_the_page_of_file_writes_speaks_of_operations(summary: RunSummary) -> None:
    cases = tuple(replace(case, case={"workload": "file-write"}) for case in summary.cases)
    page = report_html(replace(summary, cases=cases), "run")
    assert "One operation takes" in text_of(page)
    assert "COMMIT" not in text_of(page).split('id="bill"')[0]
    assert "of one operation with its sync" in json.dumps(charts_of(page)["histogram-chart"])


def test_the_page_shows_survival_by_the_moment_of_the_cut(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", seeds=[1], transactions=2)
    untested = text_of(report_html(summarise(run), "run"))
    assert "power cuts were not tested (--durability)" in untested
    assert '<section id="safety">' not in untested
    assert "<rect" not in untested
    cut(run, WAL, states(harmless=38, lost=2))
    page = text_of(report_html(summarise(run), "run"))
    assert "1 proven unsafe, 1 not tested" in page.split("<section id=")[1]
    assert "contradiction: the manuals rule this harm out" in page
    assert 'aria-label="wal: states by the moment of the power cut. Harm in 2' in page
    assert "Harm in 2 of 2 states cut just after a commit returned and 0 of 38" in page
    assert page.count('fill="#E69F00"') == 1
    assert "2 lost</title>" in page
    assert "their share is not the probability" in page
    assert "It is not the" in page
    assert "Not modelled: bits that rot" in page
