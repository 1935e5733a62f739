"""The devices of a fleet: their tokens, of which only hashes are stored, and their list.

A token is DEVICE.SECRET. The secret is 256 random bits, so that its SHA-256 is as hard to turn back
as a slow hash would be; it alone is stored.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import secrets
from collections import Counter
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

import msgspec

from jojlab.fleet.store.dataset import live_units, segment_hashes
from jojlab.fleet.store.objects import Store
from jojlab.fleet.store.quarantine import list_quarantine
from jojlab.foundation.errors import DataError, UseError

_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,62}")
_TOKEN = re.compile(r"(?P<device>[a-z0-9][a-z0-9-]{0,62})\.(?P<secret>[A-Za-z0-9_-]{43})")
_FOLDER = "devices"


@dataclass(frozen=True)
class Device:
    """One device; times are in seconds since 1970. `revoked_s` is None while it may send."""

    name: str
    secret_sha256: str
    enrolled_s: int
    revoked_s: int | None = None


def parse_token(text: str) -> tuple[str, str] | None:
    """Return the device and the secret of a token; None if the text is none."""
    found = _TOKEN.fullmatch(text)
    return (found["device"], found["secret"]) if found else None


def is_secret_of(device: Device, secret: str) -> bool:
    """Return whether it is the device's secret; takes as long for each wrong one."""
    return hmac.compare_digest(_hash_secret(secret), device.secret_sha256)


def read_device(store: Store, name: str) -> Device | None:
    """Return a device; None if none has this name. Raises DataError where its object is damaged."""
    contents = store.read_bytes(_key(name))
    if contents is None:
        return None
    try:
        return msgspec.json.decode(contents, type=Device)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise DataError(
            f"{store.path(_key(name))}: {error}", "delete it, and enrol the device again"
        ) from error


def enrol(store: Store, name: str, now_s: int) -> str:
    """Enrol a device, and return its token, which is not stored."""
    if not _NAME.fullmatch(name):
        raise UseError(
            f"a device cannot be named {name!r}",
            "a to z, 0 to 9 and -, at most 63 of them, the first no -",
        )
    if (known := read_device(store, name)) is not None:
        state = "is enrolled" if known.revoked_s is None else "was revoked"
        raise UseError(f"{name} {state} already", "name the device otherwise")
    secret = secrets.token_urlsafe(32)
    _write(store, Device(name, _hash_secret(secret), now_s))
    return f"{name}.{secret}"


def revoke(store: Store, name: str, now_s: int) -> Device:
    """Revoke a device's token for good, and return the device."""
    device = read_device(store, name) if _NAME.fullmatch(name) else None
    if device is None:
        raise UseError(f"no device {name!r}", "joj fleet devices lists them")
    if device.revoked_s is None:
        device = replace(device, revoked_s=now_s)
        _write(store, device)
    return device


def devices(store: Store) -> list[Device]:
    """Return all devices by name."""
    found = (read_device(store, name) for name in device_names(store))
    return [device for device in found if device is not None]


def device_names(store: Store) -> list[str]:
    """Return the names of all devices, in order; none of their objects is read."""
    names = [
        each.key.removeprefix(f"{_FOLDER}/").removesuffix(".json")
        for each in store.objects(_FOLDER)
    ]
    return [name for name in sorted(names) if _NAME.fullmatch(name)]


def _hash_secret(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


def _key(name: str) -> str:
    return f"{_FOLDER}/{name}.json"


def _write(store: Store, device: Device) -> None:
    store.put_bytes(_key(device.name), json.dumps(asdict(device)).encode() + b"\n")


@dataclass
class DeviceListing:
    """A device, and what it has sent. Data without a device are those of a made fleet."""

    name: str
    device: Device | None
    quarantined: int = 0
    segments: int = 0
    days: list[str] = field(default_factory=list)

    def record(self) -> dict[str, Any]:
        """Return the columns of the list; times are in UTC."""
        return {
            "device": self.name,
            "enrolled": _time(self.device.enrolled_s if self.device else None),
            "revoked": _time(self.device.revoked_s if self.device else None),
            "segments": self.segments,
            "first_day": min(self.days, default=None),
            "last_day": max(self.days, default=None),
            "quarantined": self.quarantined,
        }


def device_listings(store: Store) -> list[DeviceListing]:
    """Return the devices by name."""
    apart = Counter(each.device for each in list_quarantine(store))
    found = {each.name: DeviceListing(each.name, each, apart[each.name]) for each in devices(store)}
    for unit in live_units(store):
        each = found.setdefault(unit.device, DeviceListing(unit.device, None, apart[unit.device]))
        each.segments += len(segment_hashes(store, unit))
        each.days.append(unit.day)
    return [found[name] for name in sorted(found)]


def _time(seconds: int | None) -> str | None:
    if seconds is None:
        return None
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M")
