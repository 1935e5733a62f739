"""Ctrl-C in the middle of a run: nothing is lost that was finished, and nothing is left behind."""

from __future__ import annotations

import json
import os
import signal

from tests.command.conftest import Lab, read_until
from tests.hangs import await_end

# A case that ends soon, and one that is running when the key is pressed.
ASKED = (
    "run", "first-look", "--jobs=1", "--set=transactions=11,97", "--set=seeds=1",
    "--set=filesystem=ext4", "--set=journal_mode=truncate", "--set=regime=fresh",
    "--set=sync_call=fsync",
)  # fmt: skip


def test_an_interrupted_run_keeps_its_finished_cases(lab: Lab) -> None:
    with lab.start(*ASKED) as joj:
        said = read_until("[1/2]", joj)
        os.killpg(joj.pid, signal.SIGINT)
        _, rest = await_end(joj)
    assert joj.returncode == 130, said + rest
    assert "interrupted; what was finished is kept: joj show runs/first-look" in rest
    assert "the same command goes on from there" in rest
    assert "Traceback" not in rest
    assert lab.guests() == []
    assert list((lab.cache / "work").iterdir()) == []

    shown = lab.joj_here("show", "runs/first-look", "--json")
    assert shown.returncode == 4
    cases = json.loads(shown.stdout)["cases"]
    assert [case["status"] for case in cases] == ["ok", "pending"]
    told = lab.joj_here("show", "runs/first-look").stdout
    assert "pending transactions 97: the run ended before it" in told

    again = lab.joj_here(*ASKED)
    assert again.returncode == 0, again.stderr
    assert "2 captures (1 from the cache)" in again.stderr
    compared = lab.joj_here("diff", "runs/first-look", "runs/first-look-2")
    assert "0 of" in compared.stdout
    assert "only in the second run: 97" in compared.stdout
    assert compared.returncode == 1
