"""joj run with a recorded script: its contents are part of the case, and what it lacks is told."""

from __future__ import annotations

import json

from jojlab.trace.run_folder import RunFolder
from tests.command.conftest import Lab

TOML = """
question = "What does this app cost?"
[case]
workload = "replay"
script   = "script"
[matrix]
filesystem = ["ext4", "f2fs"]
"""
SCRIPT = """\
1 0 open "/data/app/x.db" O_RDWR|O_CREAT|O_LARGEFILE 53
1 100 pread 53 4096 4096
1 200 pwrite 53 8192 1024
2 300 open /data/data O_WRONLY|O_CREAT|O_TRUNC|O_LARGEFILE 36
2 400 write 36 4
1 600 fsync 53 0
1 700 access "/data/app/x.db-wal" -1
1 20000 close 53 0
"""
LEFT_OUT = "1 20100 ioctl 53 1\n2 20200 write 99 10\n"


def test_the_contents_of_a_script_decide_whether_it_runs_again(lab: Lab) -> None:
    (lab.folder / "app.toml").write_text(TOML)
    for script, cached in ((SCRIPT, 0), (SCRIPT, 2), (SCRIPT.replace("8192", "12288"), 0)):
        (lab.folder / "script").write_text(script)
        answer = lab.inside("run", "app.toml")
        assert answer.returncode == 0, answer.stderr + answer.stdout
        assert f"2 captures ({cached} from the cache)" in answer.stderr
    first, _, changed = sorted((lab.folder / "runs").iterdir())
    manifests = [capture.manifest for _, _, capture in RunFolder.open(first).captures()]
    for manifest in manifests:
        assert manifest["replay"]["calls"] == 8
        assert manifest["replay"]["written_bytes"] == 1028
        assert manifest["replay"]["otherwise"] == {}
        assert manifest["case"]["script"] == "/inputs/script"
    shown = json.loads(lab.inside("show", first, "--json").stdout)
    assert [case["case"]["script"] for case in shown["cases"]] == ["script"] * 2
    assert (
        lab.inside("show", first, "--hash").stdout != lab.inside("show", changed, "--hash").stdout
    )


def test_calls_that_are_left_out_are_told_everywhere(lab: Lab) -> None:
    (lab.folder / "app.toml").write_text(TOML)
    (lab.folder / "script").write_text(SCRIPT + LEFT_OUT)
    answer = lab.inside("run", "app.toml", "--set=filesystem=ext4")
    assert answer.returncode == 4, answer.stderr
    reasons = (
        "1 calls of ioctl left out: such calls are not replayed",
        "1 calls of write left out: its descriptor is one that the script does not open",
    )
    [(_, _, capture)] = RunFolder.open(lab.folder / "runs/app").captures()
    assert capture.incomplete
    report = (lab.folder / "runs/app/report.html").read_text()
    for reason in reasons:
        assert reason in capture.manifest["incomplete_reasons"]
        assert reason in " ".join(answer.stdout.split())
        assert reason in report
    assert lab.inside("show", "runs/app").returncode == 4


def test_a_script_that_is_none_fails_its_case_with_the_line(lab: Lab) -> None:
    (lab.folder / "script").write_text("1 0 close 3\n1 1 pwrite 3 x 10\n")
    answer = lab.inside("bill", "--workload", "replay", "--script", "script")
    assert answer.returncode == 3
    assert 'line 2, offset: "x" is no whole number' in answer.stderr
