"""Opens a report in Chromium and returns what a script of the test found there."""

from __future__ import annotations

import base64
import enum
import hashlib
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.hangs import HANG_S

needs_browser = pytest.mark.skipif(not shutil.which("chromium"), reason="no chromium here")


# A window of Chromium is no narrower; a frame may be.
_LEAST_COLUMNS = 500
_FRAME = """<title></title><iframe src="{address}" width="{columns}" height="800" frameborder="0">
</iframe><script>addEventListener("message", (told) => {{ document.title = told.data; }});</script>
"""
_TELL = """new MutationObserver((changes) => parent.postMessage(changes[0].target.textContent, "*"))
.observe(document.querySelector("title"), {childList: true});"""


class Look(enum.Enum):
    """The colours that a browser is told to prefer, by Chromium's numbers."""

    DARK = 0
    LIGHT = 1


def title_in_browser(
    folder: Path,
    page: str,
    script: str,
    columns: int = 1200,
    fragment: str = "",
    look: Look = Look.LIGHT,
) -> str:
    """Open the page in a window so wide; the title that `script` sets in the end."""
    address = f"file://{folder}/page.html{fragment}"
    if columns < _LEAST_COLUMNS:
        script = f"{_TELL}{script}"
        (folder / "frame.html").write_text(_FRAME.format(address=address, columns=columns))
        address = f"file://{folder}/frame.html"
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    page = page.replace("script-src ", f"script-src 'sha256-{digest}' ", 1)
    head, end = page.rsplit("</body>", 1)
    (folder / "page.html").write_text(f"{head}<script>{script}</script></body>{end}")
    answer = subprocess.run(
        [
            "chromium", "--headless", "--no-sandbox", "--disable-gpu",
            f"--blink-settings=preferredColorScheme={look.value}",
            "--virtual-time-budget=60000", f"--window-size={columns},800",
            f"--user-data-dir={folder}/profile", "--dump-dom",
            address,
        ],
        capture_output=True, text=True, timeout=HANG_S,
    )  # fmt: skip
    title = re.search("<title>(.*?)</title>", answer.stdout)
    assert title, answer.stderr[-500:]
    return title[1]
