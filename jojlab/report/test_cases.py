"""Filter, sort, links and the comparison of two cases, in a real browser."""

import re
from pathlib import Path

import pytest

from jojlab.analysis.run.summary import summarise
from jojlab.report.page import report_html
from tests.browser import needs_browser, title_in_browser
from tests.captures import make_run

TRUNCATE, WAL = (f"filesystem=ext4,journal_mode={mode}" for mode in ("truncate", "wal"))
# Runs when the charts of the page are there; `ended` sets what the test reads.
READY = """
  const seen = (part) => part.getClientRects().length > 0;
  const shown = (kind) => [...document.querySelectorAll(kind)].filter(seen);
  const type = (box, text) => {
    box.value = text;
    box.dispatchEvent(new Event("input", { bubbles: true }));
  };
  const later = (what) => setTimeout(what, 1500);
  const ended = (...told) => {
    document.title = told.join("|");
    document.body.textContent = "";
  };
"""


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    run = make_run(tmp_path_factory.mktemp("cases") / "run", seeds=[1], transactions=10)
    return report_html(summarise(run), "run")


@needs_browser
def test_cases_are_filtered_in_tables_parts_and_charts(page: str, tmp_path: Path) -> None:
    script = """
      later(() => {
        const box = document.querySelector(".filter input");
        const rows = () => shown("#overview tbody tr").length;
        const bars = () => new Set([...document.querySelectorAll(
          "#throughput-chart .role-axis-label text")].map((word) => word.textContent));
        const before = [rows(), shown("#bill details").length];
        type(box, "ext4 -wal -off");
        later(() => {
          const words = [...bars()].filter((word) => /truncate|wal/.test(word));
          const after = [rows(), shown("#bill details").length, shown("#commit details").length,
            document.querySelector(".filter [role=status]").textContent, words, location.hash];
          type(box, "");
          ended(...before, ...after, rows(), location.hash);
        });
      });
    """
    assert title_in_browser(tmp_path, page, READY + script) == (
        "3|2|1|1|1|1 of 3 cases|truncate|#?filter=ext4+-wal+-off|3|"
    )


@needs_browser
def test_cases_are_sorted_by_keys_and_the_order_is_in_the_address(
    page: str, tmp_path: Path
) -> None:
    script = """
      later(() => {
        const names = () => shown("#overview tbody tr").map((row) => row.cells[0].textContent);
        const before = names(), head = [...document.querySelectorAll("#overview th")]
          .findIndex((cell) => cell.textContent.startsWith("commit p50"));
        const button = document.querySelectorAll("#overview th")[head].querySelector("button");
        button.focus();
        const focused = document.activeElement === button;
        button.click();
        const up = names();
        button.click();
        const state = button.closest("th").getAttribute("aria-sort");
        ended(before, up, names(), focused, state, location.hash === `#?sort=${head + 1}&down=1`);
      });
    """
    told = title_in_browser(tmp_path, page, READY + script).split("|")
    before, up, down = (re.findall("truncate|wal|off", names) for names in told[:3])
    assert before == ["truncate", "wal", "off"]
    assert up == ["wal", "truncate", "off"]
    assert down == ["truncate", "wal", "off"]
    assert told[3:] == ["true", "descending", "true"]


@needs_browser
@pytest.mark.parametrize("columns", [400, 1200])
def test_a_link_opens_its_case(page: str, tmp_path: Path, columns: int) -> None:
    [address] = set(re.findall(r'<a href="(#case-[^"]*wal[^"]*)"', page))
    script = """
      later(() => {
        const open = [...document.querySelectorAll("#bill details[open]")];
        const top = open[0].getBoundingClientRect().top;
        ended(open.map((part) => part.dataset.case), -5 < top && top < 400);
      });
    """
    told = title_in_browser(tmp_path, page, READY + script, columns, fragment=address)
    assert told == f"{WAL}|true"


@needs_browser
def test_two_cases_stand_beside_each_other(page: str, tmp_path: Path) -> None:
    script = """
      later(() => {
        const [first, second] = document.querySelectorAll(".compare select");
        const total = () => [...document.querySelector(".compare tr.total").cells]
          .map((cell) => cell.textContent).join(" ");
        const told = [first.value, second.value, total()];
        second.value = first.value;
        second.dispatchEvent(new Event("change"));
        const same = total();
        document.querySelector(".compare button").click();
        const scrolls = document.documentElement.scrollWidth > innerWidth;
        ended(...told, same, location.hash.includes("second="), scrolls);
      });
    """
    fragment = f"#?first={WAL}&second={TRUNCATE}".replace("=ext4", "%3Dext4")
    told = title_in_browser(tmp_path, page, READY + script, 400, fragment)
    # tests/captures.py: 3 writes of 28 KiB, or 7 writes, 2 flushes and 68 KiB.
    assert told == (f"{WAL}|{TRUNCATE}|total   3 9 +6 28 68 +40|total   3 3 0 28 28 0|true|false")


@needs_browser
@pytest.mark.parametrize("columns", [390, 1280])
def test_the_page_does_not_scroll_sideways(page: str, tmp_path: Path, columns: int) -> None:
    """Neither the page nor the answer, the chart or the table of cases does, in any part of it."""
    script = """
      later(() => {
        const wide = [...document.querySelectorAll("#answer *, #multiples *, #overview .ask")]
          .filter((part) => part.getBoundingClientRect().right > innerWidth)
          .map((part) => part.outerHTML.slice(0, 80));
        const table = document.querySelector("#overview .scroll");
        const isWide = innerWidth > 800 && table.scrollWidth > table.clientWidth;
        ended(document.documentElement.scrollWidth > innerWidth, isWide, ...wide);
      });
    """
    assert title_in_browser(tmp_path, page, READY + script, columns) == "false|false"
