"""The manual: the site is built without a warning, every command has its page and man page, and the
notebook runs on a run.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from jojlab.manual import command_pages, table_pages
from tests.command.conftest import CHECKOUT
from tests.hangs import HANG_S

DOCS = CHECKOUT / "docs"


def sphinx(builder: str, out: Path) -> None:
    """Build the documents; a warning is an error, such as a link to no page or heading."""
    command = [sys.executable, "-m", "sphinx", "-W", "-q", "-b", builder, "-d", out / "read"]
    answer = subprocess.run(
        [*map(str, command), str(DOCS), str(out / builder)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert answer.returncode == 0, answer.stdout + answer.stderr


@pytest.mark.full
def test_the_site_has_every_page_and_every_link_leads_somewhere(tmp_path: Path) -> None:
    sphinx("html", tmp_path)
    site = tmp_path / "html"
    for page in (*command_pages(), *table_pages()):
        assert (site / "reference" / f"{page.file}.html").is_file(), page.name
    text = re.sub("<.*?>", "", (site / "reference" / "joj-verify-durability.html").read_text())
    assert "joj verify durability first-look" in text
    assert "--states" in text
    assert "length_bytes" in (site / "reference" / "columns.html").read_text()
    assert (site / "tutorial.html").is_file()
    # Nothing of the site is fetched from another one when it is read.
    for page_file in site.glob("*.html"):
        assert 'src="http' not in page_file.read_text(), page_file.name
    sphinx("man", tmp_path)
    manual = (tmp_path / "man" / "joj-bill.1").read_text()
    assert "journal\\-mode" in manual
    assert len(list((tmp_path / "man").glob("*.1"))) == len(command_pages())


def test_the_notebook_runs_on_a_run(finished_run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RUN", str(finished_run))
    notebook = nbformat.read(DOCS / "examples" / "tables.ipynb", 4)  # type: ignore[no-untyped-call]
    NotebookClient(notebook, timeout=HANG_S).execute()
    shown = [
        output["data"]["text/plain"]
        for cell in notebook.cells
        if cell.cell_type == "code"
        for output in cell.outputs
        if "data" in output
    ]
    [case] = (finished_run / "captures").iterdir()
    assert case.name in shown[0]
    assert any("fs-journal" in text and "p99_us" in text for text in shown)
