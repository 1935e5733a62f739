"""The page as a browser shows it: narrow and wide, dark and light."""

from __future__ import annotations

from pathlib import Path

import pytest

from jojlab.analysis.run.summary import summarise
from jojlab.report.page import report_html
from tests.browser import Look, needs_browser, title_in_browser
from tests.captures import make_run

COLUMNS = (390, 1280)
# WCAG 2.1, 1.4.3: text has a contrast of 4.5, large text of 3.
MEASURE = """
  setTimeout(() => {
    const dark = matchMedia("(prefers-color-scheme: dark)").matches;
    const channel = (value) => {
      const part = value / 255;
      return part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
    };
    const light = (colour) => {
      const [red, green, blue] = colour.match(/[0-9.]+/g).map(Number);
      return 0.2126 * channel(red) + 0.7152 * channel(green) + 0.0722 * channel(blue);
    };
    const behind = (part) => {
      for (let each = part; each; each = each.parentElement) {
        const colour = getComputedStyle(each).backgroundColor;
        if (colour !== "transparent" && !colour.endsWith(", 0)")) return colour;
      }
      return dark ? "rgb(18 18 18)" : "rgb(255 255 255)";
    };
    const pale = [];
    for (const part of document.querySelectorAll("h1, h2, h3, p, li, td, th, a, summary, code")) {
      const box = part.getBoundingClientRect();
      if (!part.textContent.trim() || !box.width) continue;
      const style = getComputedStyle(part);
      const [one, other] = [light(style.color), light(behind(part))];
      const contrast = (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
      if (contrast < (parseFloat(style.fontSize) >= 24 ? 3 : 4.5)) {
        pale.push(`${part.tagName} ${part.textContent.trim().slice(0, 20)} ${contrast.toFixed(1)}`);
      }
    }
    const root = document.documentElement;
    const wide = root.scrollWidth - root.clientWidth;
    document.title = `${innerWidth}|${dark}|${wide}|${pale.slice(0, 5).join("; ")}`;
    document.body.textContent = "";
  }, 1500);
"""


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    run = make_run(tmp_path_factory.mktemp("shots") / "run", seeds=[1], transactions=10)
    return report_html(summarise(run), "run")


@needs_browser
@pytest.mark.parametrize("look", list(Look))
@pytest.mark.parametrize("columns", COLUMNS)
def test_the_page_fits_and_its_text_is_read(
    page: str, tmp_path: Path, columns: int, look: Look
) -> None:
    told = title_in_browser(tmp_path, page, MEASURE, columns, look=look)
    assert told == f"{columns}|{str(look is Look.DARK).lower()}|0|"
