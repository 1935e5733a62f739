"""The scripts of experiments/app-replay are those that its program makes."""

from __future__ import annotations

import runpy
from collections import Counter
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[2] / "experiments/app-replay"


def test_the_scripts_are_made_and_have_the_published_rates() -> None:
    program = runpy.run_path(str(FOLDER / "make_scripts.py"))
    for app in program["APPS"]:
        text = (FOLDER / f"{app.name}.mobigen").read_text()
        assert text == program["make_scripts"](app, program["SEED"])
        calls = Counter(line.split()[2] for line in text.splitlines())
        for name, published in (("write", app.writes), ("pwrite", app.pwrites)):
            assert abs(calls[name] * program["SHARE"] / published - 1) < 0.02, name
        # A journal, its directory and the database; or the database alone.
        synced = 3 * (app.transactions // 10) + (app.transactions + app.bare_syncs) // 10
        assert calls["fsync"] == synced - app.transactions // 10
