"""The tables of a live trace: the same rows in the terminal and on the page."""

import io
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from jojlab.analysis.run.summary import CaseSummary, summarise
from jojlab.analysis.traffic.live import EVERYBODY, FileWrites, LiveTrace, ProcessIo
from jojlab.report.live_trace import print_live_trace
from jojlab.report.page import report_html
from jojlab.report.shared.console import QuietConsole
from tests.browser import needs_browser, title_in_browser
from tests.captures import live_capture, make_run, run_of

PROCESSES = (
    ProcessIo("app", True, write_bytes=8192, writes=2),
    ProcessIo("trimmer", True, discard_bytes=4096),
    ProcessIo("other", False, read_bytes=4096, reads=1),
)


def live_case(**program: Any) -> CaseSummary:
    live = LiveTrace(1, 2, 8192, None, None, PROCESSES)
    return CaseSummary("live", "trace", {}, "ok", "", live=live, programs={0: program})


def printed_lines(case: CaseSummary) -> list[str]:
    """Return the lines that a terminal shows, columns separated by two blanks."""
    stream = io.StringIO()
    print_live_trace(QuietConsole(file=stream, width=100, highlight=False), case)
    return [re.sub("  +", "  ", line.strip()) for line in stream.getvalue().splitlines()]


def database(path: str, commits: int, **modes: int) -> dict[str, Any]:
    found = {"path": path, "commits": commits, "journal_modes": modes, "write_bytes": 4096}
    return {**found, "page_bytes": 1024 if commits > 1 else None}


@pytest.mark.parametrize(
    ("command", "others"), [(["/bin/app"], "other processes"), ([], "the tracer")]
)
def test_processes_of_a_live_trace_have_a_row_where_they_moved_data(
    command: list[str], others: str
) -> None:
    assert EVERYBODY not in command
    names = [line.split("  ")[0] for line in printed_lines(live_case(command=command))]
    pace = f"{'app' if command else EVERYBODY} made 0 flushes a second"
    assert names == ["process", "app", others, "not known whose", pace]


def test_terminal_and_page_have_the_same_rows(tmp_path: Path) -> None:
    databases = [database("/a<b.db", 2, wal=2), database("/x.db", 3, delete=1, wal=2)]
    databases += [database(f"/{number}.db", 1, none=1) for number in range(8)]
    case = live_case(command=["app"], database_files=databases)
    assert case.live
    case = replace(case, live=replace(case.live, commits=2, traced_ns=500_000_000))
    written = (
        FileWrites("file", "/a<b", 2048, 4096),
        FileWrites("file", "/mapped", None, 2048),
        FileWrites("fs-journal", None, None, 2048),
    )
    assert case.live
    case = replace(case, case={"command": "app"}, live=replace(case.live, files=written))
    lines = printed_lines(case)
    assert lines[4] == "app made 4 commits a second and 0 flushes a second"
    assert lines[5:10] == [
        "written by calls  sent  ratio  file",
        "2 KiB  4 KiB  2  /a<b",
        "not known  2 KiB  not known  /mapped",
        "–  2 KiB  –  the filesystem's journal",
        "8 KiB  8 KiB  1  in all",
    ]
    assert "2 KiB  4 KiB  not known  /a<b" in printed_lines(replace(case, case={}))
    assert lines[10:13] == [
        "commits  journal mode  pages  write calls  database",
        "3  wal 2, delete 1  1 KiB  4 KiB  /x.db",
        "2  wal  1 KiB  4 KiB  /a<b.db",
    ]
    assert lines[13] == "1  no file  not seen  4 KiB  /0.db"
    assert lines[-1] == "2 commits more in 2 further databases"
    summary = summarise(make_run(tmp_path / "run", seeds=[1], transactions=2))
    assert 'id="processes"' not in report_html(summary, "run")
    page = report_html(replace(summary, cases=(case, *summary.cases[1:])), "run")
    for row in (["app", "8 KiB", "2", "0 KiB", "0"], ["/a&lt;b.db", "wal", "2", "1 KiB", "4 KiB"]):
        cells = [f">{cell}</td>" for cell in row]
        assert re.search("".join(f"<td[^>]*{re.escape(cell)}" for cell in cells), page)
    assert re.search("/mapped.*not known.*2 KiB.*not known", page, re.DOTALL)
    assert '<p class="soft">app made 4 commits a second and 0 flushes a second.</p>' in page
    assert '<p class="soft">2 commits more in 2 further databases.</p>' in page
    assert '<a href="#processes">Processes</a>' in page


def test_the_page_of_a_live_trace_has_no_seeds_and_no_table_of_its_one_case(tmp_path: Path) -> None:
    page = report_html(summarise(run_of(tmp_path, live_capture())), "run")
    assert '<p class="lead">Live: real time on real hardware.</p>' in page
    assert 'id="overview"' not in page
    assert "/bin/app: 10 commits of SQLite" in page
    assert "seed 1: " not in page.split('<script type="application/json"')[0]


@needs_browser
def test_the_tables_of_a_live_trace_fit_a_phone(tmp_path: Path) -> None:
    script = """
      setTimeout(() => {
        const wide = [...document.querySelectorAll("#processes .scroll")]
          .filter((part) => part.scrollWidth > part.clientWidth)
          .map((part) => part.textContent.trim().slice(0, 20));
        document.title = `${innerWidth}|${wide.join("; ")}`;
        document.body.textContent = "";
      }, 1000);
    """
    page = report_html(summarise(run_of(tmp_path, live_capture())), "run")
    assert title_in_browser(tmp_path, page, script, 390) == "390|"
