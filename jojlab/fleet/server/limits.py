"""What one sender may use: bytes and requests a second, wrong tokens, uploads at once.

Clocks are arguments, in seconds of a clock that nobody sets.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

# Senders that are remembered: beyond that, the one that was seen least recently starts anew.
_REMEMBERED = 100_000


@dataclass(frozen=True)
class ServerLimits:
    """The limits of a server, as the options of `joj fleet serve` set them."""

    device_bytes_per_s: float = 8 << 20
    device_burst_bytes: float = 256 << 20
    device_requests_per_s: float = 10.0
    device_burst_requests: float = 100.0
    wrong_tokens_per_s: float = 1.0  # of one address
    burst_wrong_tokens: float = 20.0
    uploads: int = 64
    device_uploads: int = 4
    connections: int = 512
    # The whole request must come within these and the time that its length takes at the rate.
    upload_seconds: float = 30.0
    slowest_bytes_per_s: float = 16 << 10
    quarantine_bytes: int = 1 << 30

    @property
    def head_seconds(self) -> float:
        """How long the head of a request may take."""
        return min(10.0, self.upload_seconds)

    def upload_deadline_s(self, length_bytes: int) -> float:
        """Return how long a body of this length may take."""
        return self.upload_seconds + length_bytes / self.slowest_bytes_per_s


class Buckets:
    """A token bucket (Turner 1986) for each sender: `rate_per_s` on average, `burst` at once."""

    def __init__(self, rate_per_s: float, burst: float) -> None:
        self._rate_per_s = rate_per_s
        self._burst = burst
        self._levels: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def wait_s(self, sender: str, amount: float, now_s: float) -> float:
        """Take `amount` and return 0, or take nothing and return the seconds until it is there.

        More than `burst` at once is taken when the bucket is full.
        """
        level, then_s = self._levels.pop(sender, (self._burst, now_s))
        level = min(self._burst, level + (now_s - then_s) * self._rate_per_s)
        missing = min(amount, self._burst) - level
        if missing <= 0:
            level -= amount
        self._levels[sender] = (level, now_s)
        if len(self._levels) > _REMEMBERED:
            self._levels.popitem(last=False)
        return max(0.0, missing / self._rate_per_s)
