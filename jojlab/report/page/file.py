"""What every page is made of beside its text: its policy, its scripts, its file."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import os
from collections.abc import Mapping
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import vl_convert
from markupsafe import Markup

from jojlab.foundation.cache import Cache
from jojlab.foundation.errors import MachineError


def write_page(path: Path, page: str) -> None:
    """Write a page to `path`, atomically; raises MachineError where that cannot be."""
    temporary = path.with_name(f".{path.name}.partial")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_text(page, encoding="utf-8")
        os.replace(temporary, path)
    except OSError as error:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise MachineError(
            f"{path}: cannot write: {error.strerror or error}", "name another file with --out"
        ) from error


def page_policy(script: str) -> Markup:
    """Return the page's Content-Security-Policy: whatever a table holds, it fetches nothing and
    runs no script but its own, which is named by its hash (CSP Level 3, 2.3.1). Charts are drawn
    by an interpreter of Vega's expressions (page.js: `ast`), so that nothing is evaluated.
    """
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode("ascii")
    return Markup(
        f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )


@cache
def vega_script() -> str:
    """Return Vega, Vega-Lite and Vega-Embed in one script (from the package, not the network).

    Bundling takes longer than the rest of a report: it is done once for a version of the package.
    """

    def bundle(folder: Path) -> None:
        script = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")
        (folder / "vega.js").write_text(str(script), encoding="utf-8")

    entry = Cache.default().entry("vega", version("vl-convert-python"), bundle)
    return (entry / "vega.js").read_text(encoding="utf-8")


def script_json(specs: Mapping[str, Any]) -> Markup:
    """Return JSON that cannot end the script element it stands in."""
    return Markup(json.dumps(specs).replace("<", r"\u003c"))
