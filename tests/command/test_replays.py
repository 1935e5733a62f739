"""joj run with a recorded script: its contents are part of the case, and what it lacks is told."""

from __future__ import annotations

import json

import pytest

from jojlab.trace.run_folder import RunFolder
from tests.command.conftest import Lab
from tests.mobigen import (
    CALLS,
    LEFT_OUT,
    LEFT_OUT_REASONS,
    NO_SCRIPT,
    NO_SCRIPT_REASON,
    SCRIPT,
    WRITTEN_BYTES,
)

TOML = """
question = "What does this app cost?"
[case]
workload = "replay"
recording = "script"
[matrix]
filesystem = ["ext4", "f2fs"]
"""


@pytest.mark.full
def test_the_contents_of_a_script_decide_whether_it_runs_again(lab: Lab) -> None:
    (lab.folder / "app.toml").write_text(TOML)
    for script, cached in ((SCRIPT, 0), (SCRIPT, 2), (SCRIPT.replace("8192", "12288"), 0)):
        (lab.folder / "script").write_text(script)
        answer = lab.joj_here("run", "app.toml")
        assert answer.returncode == 0, answer.stderr + answer.stdout
        assert f"2 captures ({cached} from the cache)" in answer.stderr
    first, _, changed = sorted((lab.folder / "runs").iterdir())
    manifests = [capture.manifest for _, _, capture in RunFolder.open(first).captures()]
    for manifest in manifests:
        assert manifest["replay"]["calls"] == CALLS
        assert manifest["replay"]["written_bytes"] == WRITTEN_BYTES
        assert manifest["replay"]["otherwise"] == {}
        assert manifest["case"]["recording"] == "/inputs/recording"
    shown = json.loads(lab.joj_here("show", first, "--json").stdout)
    assert [case["case"]["recording"] for case in shown["cases"]] == ["script"] * 2
    assert (
        lab.joj_here("show", first, "--hash").stdout
        != lab.joj_here("show", changed, "--hash").stdout
    )


def test_calls_that_are_left_out_are_told_everywhere(lab: Lab) -> None:
    (lab.folder / "app.toml").write_text(TOML)
    (lab.folder / "script").write_text(SCRIPT + LEFT_OUT)
    answer = lab.joj_here("run", "app.toml", "--set=filesystem=ext4")
    assert answer.returncode == 4, answer.stderr
    [(_, _, capture)] = RunFolder.open(lab.folder / "runs/app").captures()
    assert capture.is_incomplete
    report = (lab.folder / "runs/app/report.html").read_text()
    for reason in LEFT_OUT_REASONS:
        assert reason in capture.manifest["incomplete_reasons"]
        assert reason in " ".join(answer.stdout.split())
        assert reason in report
    assert lab.joj_here("show", "runs/app").returncode == 4


def test_a_script_that_is_none_fails_its_case_with_the_line(lab: Lab) -> None:
    (lab.folder / "script").write_text(NO_SCRIPT)
    answer = lab.joj_here("bill", "--workload", "replay", "--recording", "script")
    assert answer.returncode == 3
    assert NO_SCRIPT_REASON in answer.stderr
