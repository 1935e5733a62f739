"""What the server counts, as /metrics shows it in the text format of Prometheus."""

from __future__ import annotations

from collections.abc import Callable

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    disable_created_metrics,
)

NO_SUCH_PATH = "no-such-path"  # or no such method

# Answers that are errors, by reason: all words that can stand there, so that all begin at 0.
REASONS = (
    *("no-token", "wrong-token", "revoked", "too-many-wrong-tokens", "rate", "too-many-uploads"),
    *("no-length", "bad-name", "too-large", "too-slow", "broken-off", "wrong-hash", "busy"),
    *("not-a-segment", "too-large-decoded", "not-parquet", "wrong-schema", "bad-value"),
    *("killed-its-worker", "store", NO_SUCH_PATH),
)


class Metrics:
    """Counters since the server started."""

    def __init__(self, ended_connections: Callable[[], float]) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        self.stored = self._counter("segments_stored", "Segments that were stored")
        self.known = self._counter("segments_known", "Segments that were there already")
        self.stored_bytes = self._counter("stored_bytes", "Bytes of stored segments")
        self.rows = self._counter("rows", "Rows of stored segments", "table")
        self.refused = self._counter("refused", "Uploads refused", "reason")
        self.not_kept = self._counter(
            "quarantine_full", "Refused segments that quarantine had no room for"
        )
        ended = Gauge(
            "joj_fleet_ended_connections",
            "Connections without a request that were ended to make room",
            registry=self.registry,
        )
        ended.set_function(ended_connections)
        self.compactions = self._counter("compactions", "Compactions that ended", "how")
        self.uploads = Gauge("joj_fleet_uploads", "Uploads in progress", registry=self.registry)
        self.quarantine_bytes = Gauge(
            "joj_fleet_quarantine_bytes", "Room of quarantine that is taken", registry=self.registry
        )
        self.check_seconds = Histogram(
            "joj_fleet_check_seconds",
            "Time that checking a segment took, with waiting",
            registry=self.registry,
        )
        self.put_seconds = Histogram(
            "joj_fleet_put_seconds",
            "Time until a checked segment was durable",
            registry=self.registry,
        )
        for reason in REASONS:
            self.refused.labels(reason)
        for how in ("well", "badly"):
            self.compactions.labels(how)

    def _counter(self, name: str, meaning: str, *labels: str) -> Counter:
        return Counter(f"joj_fleet_{name}", meaning, labels, registry=self.registry)
