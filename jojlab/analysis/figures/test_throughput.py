"""Every latency is in the bin that holds it, those at the edges too."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest

from jojlab.analysis.figures.throughput import COARSE_NS, FINE_NS, histograms
from jojlab.trace.dataset import Dataset
from tests.captures import CaptureBuilder, run_of


@pytest.mark.parametrize("edges_ns", [COARSE_NS, FINE_NS])
def test_every_latency_is_in_its_bin(tmp_path: Path, edges_ns: tuple[int, ...]) -> None:
    latencies_ns = [1, 99, 10**12, 7 * 10**12]
    latencies_ns += [edge + step for edge in edges_ns for step in (-1, 0, 1)]
    builder = CaptureBuilder({"journal_mode": "wal"}, 1)
    begin_ns = 0
    for latency_ns in latencies_ns:
        builder.add_transaction("commit", "insert", begin_ns, begin_ns, begin_ns + latency_ns)
        begin_ns += latency_ns
    [bins] = histograms(Dataset.from_runs(run_of(tmp_path, builder)), edges_ns).values()
    last = len(edges_ns) - 2
    wanted = Counter(min(max(bisect_right(edges_ns, n) - 1, 0), last) for n in latencies_ns)
    assert sum(each.count for each in bins) == len(latencies_ns)
    assert {edges_ns.index(each.begin_ns): each.count for each in bins if each.count} == wanted
    assert all(one.end_ns == other.begin_ns for one, other in pairwise(bins))
