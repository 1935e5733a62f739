"""Two runs of a whole experiment at once on one empty cache: no case of either fails."""

from __future__ import annotations

from pathlib import Path

from jojlab.trace.run_folder import RunFolder
from tests.command.conftest import Lab
from tests.hangs import await_end

_READY_MADE = ("packages", "kernels", "modules")


def test_no_case_of_two_runs_at_once_fails(lab: Lab, tmp_path: Path) -> None:
    empty = Lab(lab.folder, tmp_path / "cache")
    empty.cache.mkdir()
    for kind in _READY_MADE:
        (empty.cache / kind).symlink_to(lab.cache / kind)
    runs = [
        empty.start("run", "first-look", "--set=seeds=1", f"--out=run-{number}")
        for number in range(2)
    ]
    for joj in runs:
        _, said = await_end(joj)
        assert joj.returncode == 0, said
    for number in range(2):
        run = RunFolder.open(lab.folder / f"run-{number}")
        reasons = {case.case_id: case.reason for case in run.cases if case.status != "ok"}
        assert run.cases
        assert reasons == {}
    assert list((empty.cache / "work").iterdir()) == []
