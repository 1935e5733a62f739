"""Configures how Sphinx makes the site and the man pages of these documents: `make docs`, `make
man`.

Pages of reference are written from the code into docs/reference first, and into no repository.
"""

from __future__ import annotations

import shutil
from importlib.metadata import version as version_of
from pathlib import Path

from jojlab.manual import command_pages, table_pages

project = "jojlab"
release = version_of("jojlab")
copyright = "the authors of jojlab"  # Sphinx reads this name
extensions = ["myst_parser"]
smartquotes = False  # they make one dash of the two of an option
myst_enable_extensions = ["deflist"]
myst_heading_anchors = 3
html_theme = "furo"
html_title = f"jojlab {release}"
html_show_sphinx = False
html_copy_source = False
# The notebook is run by a test, and shown where notebooks are.
exclude_patterns = ["examples"]

_reference = Path(__file__).parent / "reference"
shutil.rmtree(_reference, ignore_errors=True)
_reference.mkdir()
_commands = command_pages()
for _page in (*_commands, *table_pages()):
    (_reference / f"{_page.file}.md").write_text(_page.text, encoding="utf-8")
(_reference / "commands.md").write_text(
    "# Commands\n\n```{toctree}\n:maxdepth: 1\n\n"
    + "".join(f"{page.file}\n" for page in _commands)
    + "```\n",
    encoding="utf-8",
)
man_pages = [
    (f"reference/{page.file}", page.file, page.summary, ["the authors of jojlab"], 1)
    for page in _commands
]
