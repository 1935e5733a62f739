"""Opens a report in Chromium and returns what a script of the test found there."""

from __future__ import annotations

import base64
import hashlib
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.ended import HANG_S

needs_browser = pytest.mark.skipif(not shutil.which("chromium"), reason="no chromium here")


def title_in_browser(
    folder: Path, page: str, script: str, columns: int = 1200, fragment: str = ""
) -> str:
    """Open the page in a window so wide; the title that `script` sets in the end."""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    page = page.replace("script-src ", f"script-src 'sha256-{digest}' ", 1)
    head, end = page.rsplit("</body>", 1)
    (folder / "page.html").write_text(f"{head}<script>{script}</script></body>{end}")
    answer = subprocess.run(
        [
            "chromium", "--headless", "--no-sandbox", "--disable-gpu",
            "--virtual-time-budget=60000", f"--window-size={columns},800",
            f"--user-data-dir={folder}/profile", "--dump-dom",
            f"file://{folder}/page.html{fragment}",
        ],
        capture_output=True, text=True, timeout=HANG_S,
    )  # fmt: skip
    title = re.search("<title>(.*?)</title>", answer.stdout)
    assert title, answer.stderr[-500:]
    return title[1]
