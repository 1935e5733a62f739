"""What is known of each device, as `joj fleet devices` lists it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from jojlab.fleet.store.dataset import held_by, live_units
from jojlab.fleet.store.devices import Device, devices
from jojlab.fleet.store.objects import Store
from jojlab.fleet.store.quarantine import quarantined


@dataclass
class Listed:
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


def listed(store: Store) -> list[Listed]:
    """Return the devices by name."""
    apart = Counter(each.device for each in quarantined(store))
    found = {each.name: Listed(each.name, each, apart[each.name]) for each in devices(store)}
    for unit in live_units(store):
        each = found.setdefault(unit.device, Listed(unit.device, None, apart[unit.device]))
        each.segments += len(held_by(store, unit))
        each.days.append(unit.day)
    return [found[name] for name in sorted(found)]


def _time(seconds: int | None) -> str | None:
    if seconds is None:
        return None
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M")
