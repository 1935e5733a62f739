"""Tests that what the agent reports of a job becomes the right error."""

from __future__ import annotations

import pytest

from jojlab.foundation.errors import GuestError, UseError
from jojlab.lab.workers import _check


@pytest.mark.parametrize(
    "raw",
    [None, b"", b"{}", b"[]", b"\xff", b"[" * 100_000, b'{"status": "no"}', b'{"status": 0}'],
)
def test_a_report_that_cannot_be_read_is_told(raw: bytes | None) -> None:
    with pytest.raises(GuestError, match=r"outcome\.json is missing or damaged"):
        _check(raw)


def test_wrong_use_is_told_apart_from_a_case_that_failed() -> None:
    _check(b'{"status": "ok"}')
    with pytest.raises(UseError, match="no such workload"):
        _check(b'{"status": "error", "kind": "use", "message": "no such workload"}')
    with pytest.raises(GuestError, match="failed in the guest: disk full"):
        _check(b'{"status": "error", "kind": "machine", "message": "disk full"}')
