"""Decides who may send: tokens, and how much of what one sender may use."""

from __future__ import annotations

import time
from collections import OrderedDict

from jojlab.fleet.server.limits import Buckets, ServerLimits
from jojlab.fleet.store.devices import Device, is_secret_of, parse_token, read_device
from jojlab.fleet.store.objects import Store

DEVICE_SECONDS = 5.0  # how long a device is believed to be what its object said
_REMEMBERED = 10_000


class Denied(Exception):
    """A request is answered with an error: its status, the word of the reason, when to retry."""

    def __init__(self, status: int, reason: str, retry_after_s: float | None = None) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason
        self.retry_after_s = retry_after_s


class Gate:
    """Knows tokens and what each sender used lately."""

    def __init__(self, store: Store, limits: ServerLimits) -> None:
        self._store = store
        self._limits = limits
        self._devices: OrderedDict[str, tuple[float, Device | None]] = OrderedDict()
        self._bytes = Buckets(limits.device_bytes_per_s, limits.device_burst_bytes)
        self._requests = Buckets(limits.device_requests_per_s, limits.device_burst_requests)
        self._wrong = Buckets(limits.wrong_tokens_per_s, limits.burst_wrong_tokens)

    def admit(self, authorization: str | None, address: str) -> str:
        """Return the device that the token belongs to. Reads the store; raises Denied."""
        if authorization is None:
            raise Denied(401, "no-token")
        scheme, _, token = authorization.partition(" ")
        parsed = parse_token(token.strip())
        if scheme.lower() != "bearer" or parsed is None:
            raise self._wrong_token(address)
        name, secret = parsed
        device = self._device(name)
        if device is None or not is_secret_of(device, secret):
            raise self._wrong_token(address)
        if device.revoked_s is not None:
            raise Denied(403, "revoked")
        return name

    def take(self, device: str, length_bytes: int) -> None:
        """Count a request of this length; raises Denied if the device has to wait."""
        now_s = time.monotonic()
        wait_s = self._requests.wait_s(device, 1, now_s)
        if not wait_s:
            wait_s = self._bytes.wait_s(device, length_bytes, now_s)
        if wait_s:
            raise Denied(429, "rate", wait_s)

    def _device(self, name: str) -> Device | None:
        now_s = time.monotonic()
        since_s, device = self._devices.get(name, (-DEVICE_SECONDS, None))
        if now_s - since_s >= DEVICE_SECONDS:
            device = read_device(self._store, name)
            self._devices[name] = (now_s, device)
            self._devices.move_to_end(name)
            if len(self._devices) > _REMEMBERED:
                self._devices.popitem(last=False)
        return device

    def _wrong_token(self, address: str) -> Denied:
        wait_s = self._wrong.wait_s(address, 1, time.monotonic())
        return (
            Denied(429, "too-many-wrong-tokens", wait_s) if wait_s else Denied(401, "wrong-token")
        )
