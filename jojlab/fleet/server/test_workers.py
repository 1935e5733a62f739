"""Tests what becomes of a segment whose worker dies."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from jojlab.fleet.server.workers import DIED, Workers
from jojlab.fleet.store.segment import BadSegment


def check(folder: Path) -> None:
    workers = Workers(1)
    try:
        workers.check(folder / "segment.tar", folder)
    finally:
        workers.close()


def test_a_worker_that_cannot_start_refuses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(OSError, match="did not start"):
        check(tmp_path)


def test_a_segment_that_kills_two_workers_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "worker"
    program.write_text(
        f"#!/bin/sh\necho >>{tmp_path}/started\necho '{{}}'\nread line\nkill -9 $$\n"
    )
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(program))
    with pytest.raises(BadSegment) as refused:
        check(tmp_path)
    assert refused.value.reason == DIED
    assert (tmp_path / "started").read_text() == "\n\n"
