import base64
import json
import re
import zlib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jojlab.analysis.run.summary import summarise
from jojlab.analysis.traffic.lba_picture import COLUMNS, LbaPicture
from jojlab.report.page import report_html
from jojlab.report.shared import vega
from jojlab.report.shared.console import QuietConsole
from jojlab.report.traffic import DELTA, characterisation_cells, lba_data, print_kinds
from jojlab.trace.imports.trace_file import import_trace
from tests.browser import needs_browser, title_in_browser
from tests.captures import make_run


def unpack(text: str, columns: tuple[str, ...], count: int) -> dict[str, list[int]]:
    """Unpack numbers as lba.js does."""
    data = iter(zlib.decompress(base64.b64decode(text)))

    def one() -> int:
        value = shift = 0
        while True:
            byte = next(data)
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return -(value + 1) // 2 if value % 2 else value // 2

    result: dict[str, list[int]] = {}
    for name in columns:
        before, column = 0, []
        for _ in range(count):
            value = one() + (before if name in DELTA else 0)
            before = value
            column.append(value)
        result[name] = column
    assert next(data, None) is None
    return result


POINTS = st.lists(st.tuples(*[st.integers(-1, 1 << 48)] * len(COLUMNS)), max_size=20)
FLUSHES = st.lists(st.tuples(st.integers(0, 1 << 50), st.integers(0, 1 << 40)), max_size=5)


@given(POINTS, FLUSHES)
def test_packed_points_of_a_picture_can_be_unpacked(points: list[Any], flushes: list[Any]) -> None:
    columns = {name: [point[i] for point in points] for i, name in enumerate(COLUMNS)}
    beside = {name: [f[i] for f in flushes] for i, name in enumerate(("begin_us", "service_us"))}
    picture = LbaPicture("a", 1, "d", 0, 9, (), (), (), len(points), False, columns, beside)
    data = lba_data(picture)
    assert unpack(data["points"], COLUMNS, len(points)) == columns
    assert unpack(data["flushes"], COLUMNS[:2], len(flushes)) == beside


def test_the_report_has_kinds_and_pictures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vega, "VALIDATE", True)
    run = make_run(tmp_path / "run", seeds=[1], transactions=10)
    page = report_html(summarise(run, with_traffic=True), "run")
    found = re.search(r'<script type="application/json" id="pictures">(.*?)</script>', page, re.S)
    assert found
    pictures = json.loads(found[1])
    places = re.findall(r'<div class="lba" id="([^"]+)"', page)
    assert list(pictures) == places == ["lba-0", "lba-1"]
    assert pictures["lba-0"]["files"][0][0] == "/test.db-journal"
    for attribute in ("file_kind", "block_type", "sync", "pattern", "size"):
        assert f'<div class="chart" id="write-{attribute}-chart"' in page
    assert 'id="read-' not in page
    assert len(page) < 2_000_000


def test_a_run_without_transactions_is_shown(tmp_path: Path) -> None:
    lines = [
        f"  8,0 0 {3 * n + k} 0.{1000 * n + k:09d} 7 {action}  RS {8 * n} + 8 [{last}]\n"
        for n in range(50)
        for k, (action, last) in enumerate([("Q", "x"), ("D", "x"), ("C", "0")])
    ]
    (tmp_path / "trace").write_text("".join(lines))
    run, _ = import_trace(tmp_path / "trace", tmp_path / "run")
    summary = summarise(run, with_traffic=True)
    page = report_html(summary, "run")
    shown = page[: page.index('<script type="application/json"')]
    assert "1 of 1 case. " in shown
    assert "At a glance" not in shown
    assert 'id="read-pattern-chart"' in shown
    assert 'id="lba-0"' in shown
    kinds = summary.cases[0].traffic
    assert kinds
    [sequential, random] = characterisation_cells(kinds.kinds)[3:5]
    assert sequential[1] == "sequential"
    assert sequential[6:8] == ["49", "98.0 %"]
    assert random[1] == "random"
    assert random[6] == "1"
    console = QuietConsole(width=200, record=True, file=(tmp_path / "out").open("w"))
    print_kinds(console, "trace", kinds.kinds)
    assert "50 reads of 200 KiB" in console.export_text()


@needs_browser
def test_a_browser_draws_zooms_and_tells(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", seeds=[1], transactions=10)
    page = report_html(summarise(run, with_traffic=True), "run")
    script = """
      const wait = setInterval(() => {
        const picture = document.querySelector(".lba").picture;
        if (!picture) return;
        clearInterval(wait);
        const told = [picture.points.sector.length, picture.flushes.begin_us.length];
        const whole = picture.t1 - picture.t0, canvas = picture.canvas;
        canvas.focus();
        const box = canvas.getBoundingClientRect();
        canvas.dispatchEvent(new WheelEvent("wheel", { deltaY: -1, cancelable: true,
          clientX: box.left + 400, clientY: box.top + 200 }));
        told.push(Math.round(100 * (picture.t1 - picture.t0) / whole));
        picture.reset();
        picture.draw();
        const at = picture.zoneOf(picture.points.sector[0]);
        picture.ask(picture.x(picture.points.begin_us[0]), picture.y(at, picture.points.sector[0]));
        told.push(picture.tip.textContent.split("\\n")[0]);
        document.title = told.join("|");
        document.body.textContent = "";
      }, 50);
    """
    # 10 commits of 3 data writes, descriptor and 4 copies, descriptor and 3, two commit blocks,
    # and one block at the end.
    told = title_in_browser(tmp_path, page, script)
    assert told == "141|20|80|write: rollback journal"


@needs_browser
def test_a_narrow_page_is_no_wider_than_its_window(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", seeds=[1], transactions=10)
    page = report_html(summarise(run, with_traffic=True), "run")
    script = """
      const wait = setInterval(() => {
        const open = [...document.querySelectorAll(".chart")].filter(
          (chart) => !chart.closest("details:not([open])"));
        if (!open.every((chart) => chart.querySelector("svg"))) return;
        clearInterval(wait);
        const widest = Math.max(...open.map((chart) => chart.getBoundingClientRect().right));
        const inside = widest <= document.body.getBoundingClientRect().right;
        const scrolls = document.documentElement.scrollWidth > innerWidth;
        const cut = open.filter((chart) => chart.scrollWidth > chart.clientWidth + 1);
        const seen = [...document.querySelectorAll("#commit .mark-text text")]
          .filter((word) => word.style.visibility !== "hidden")
          .map((word) => word.getBoundingClientRect()).filter((box) => box.width);
        const over = seen.some((box, place) => seen.slice(0, place).some((other) =>
          box.left < other.right && other.left < box.right
          && box.top < other.bottom - 2 && other.top < box.bottom - 2));
        document.title = `${open.length > 3}|${inside}|${scrolls}|${cut.map((c) => c.id)}|`
          + `${seen.length > 4}|${over}`;
        document.body.textContent = "";
      }, 50);
    """
    assert title_in_browser(tmp_path, page, script, columns=500) == "true|true|false||true|false"
