"""Token buckets, by a clock that the test sets."""

from __future__ import annotations

from jojlab.fleet.server.access import Buckets, ServerLimits


def test_a_burst_then_the_rate() -> None:
    buckets = Buckets(rate_per_s=2, burst=10)
    assert [buckets.wait_s("a", 5, 0) for _ in range(2)] == [0, 0]
    assert buckets.wait_s("a", 5, 0) == 2.5
    assert buckets.wait_s("b", 5, 0) == 0
    assert buckets.wait_s("a", 5, 2.4) > 0
    assert buckets.wait_s("a", 5, 2.5) == 0


def test_more_than_a_burst_passes_when_the_bucket_is_full() -> None:
    buckets = Buckets(rate_per_s=1, burst=10)
    assert buckets.wait_s("a", 15, 0) == 0
    assert buckets.wait_s("a", 15, 1) == 14
    assert buckets.wait_s("a", 15, 15) == 0


def test_the_time_for_an_upload_grows_with_it() -> None:
    limits = ServerLimits(upload_seconds=30, slowest_bytes_per_s=1000)
    assert limits.upload_deadline_s(60_000) == 90
