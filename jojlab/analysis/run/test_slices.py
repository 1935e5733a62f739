"""Tests that what is read in slices of requests is what is read at once, whatever their size."""

from pathlib import Path

import pytest

from jojlab.analysis.run.summary import Depth, findings
from jojlab.trace import sql as engine
from jojlab.trace.dataset import Dataset
from tests.captures import make_run


@pytest.mark.parametrize("requests", [1, 7, 50])
def test_slices_put_together_are_the_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, requests: int
) -> None:
    run = make_run(tmp_path / "run", seeds=[1, 2], transactions=3)
    whole = findings(Dataset.from_runs(run), Depth.TRAFFIC)
    monkeypatch.setattr(engine, "_SLICE_REQUESTS", requests)
    assert findings(Dataset.from_runs(run), Depth.TRAFFIC) == whole
