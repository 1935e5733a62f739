"""Decides who may send, and how much: tokens, and the limits of each sender.

Clocks are arguments, in seconds of a clock that nobody sets.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from dataclasses import dataclass

from jojlab.fleet.store.devices import Device, is_secret_of, parse_token, read_device
from jojlab.fleet.store.objects import Store

# Senders that are remembered: beyond that, the one that was seen least recently starts anew.
_MOST_LEVELS = 100_000


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
        """Return how many seconds the head of a request may take."""
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
        if len(self._levels) > _MOST_LEVELS:
            self._levels.popitem(last=False)
        return max(0.0, missing / self._rate_per_s)


DEVICE_SECONDS = 5.0  # how long a device is believed to be what its object said
_MOST_DEVICES = 10_000


class AccessDenied(Exception):
    """A request is answered with an error: its status, the word of the reason, when to retry."""

    def __init__(self, status: int, reason: str, retry_after_s: float | None = None) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason
        self.retry_after_s = retry_after_s


class AccessControl:
    """Knows tokens and what each sender used lately."""

    def __init__(self, store: Store, limits: ServerLimits) -> None:
        self._store = store
        self._limits = limits
        self._devices: OrderedDict[str, tuple[float, Device | None]] = OrderedDict()
        self._bytes = Buckets(limits.device_bytes_per_s, limits.device_burst_bytes)
        self._requests = Buckets(limits.device_requests_per_s, limits.device_burst_requests)
        self._wrong = Buckets(limits.wrong_tokens_per_s, limits.burst_wrong_tokens)

    async def admit(self, authorization: str | None, address: str) -> str:
        """Return the device that the token belongs to. Raises AccessDenied."""
        if authorization is None:
            raise AccessDenied(401, "no-token")
        scheme, _, token = authorization.partition(" ")
        parsed = parse_token(token.strip())
        if scheme.lower() != "bearer" or parsed is None:
            raise self._wrong_token(address)
        name, secret = parsed
        device = await self._device(name)
        if device is None or not is_secret_of(device, secret):
            raise self._wrong_token(address)
        if device.revoked_s is not None:
            raise AccessDenied(403, "revoked")
        return name

    def count_request(self, device: str, length_bytes: int) -> None:
        """Count a request of this length; raises AccessDenied if the device has to wait."""
        now_s = time.monotonic()
        wait_s = self._requests.wait_s(device, 1, now_s)
        if not wait_s:
            wait_s = self._bytes.wait_s(device, length_bytes, now_s)
        if wait_s:
            raise AccessDenied(429, "rate", wait_s)

    async def _device(self, name: str) -> Device | None:
        now_s = time.monotonic()
        since_s, device = self._devices.get(name, (-DEVICE_SECONDS, None))
        if now_s - since_s >= DEVICE_SECONDS:
            device = await asyncio.to_thread(read_device, self._store, name)
            self._devices[name] = (now_s, device)
            self._devices.move_to_end(name)
            if len(self._devices) > _MOST_DEVICES:
                self._devices.popitem(last=False)
        return device

    def _wrong_token(self, address: str) -> AccessDenied:
        wait_s = self._wrong.wait_s(address, 1, time.monotonic())
        return (
            AccessDenied(429, "too-many-wrong-tokens", wait_s)
            if wait_s
            else AccessDenied(401, "wrong-token")
        )
