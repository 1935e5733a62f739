"""Which settings may an app choose? The values of each field, and the combinations that can run and
that the manuals allow for a guarantee.

Reads the app's present settings and what is fixed; gives candidates.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import product

from jojlab.analysis.run.guarantee import Guarantee
from jojlab.analysis.run.risks import Harm, hazards
from jojlab.experiment.cases import complete, impossible
from jojlab.experiment.fields import ALL_SQLITE, FILESYSTEMS, NO_DEVICE, SQLITE, Value

# A choice: a value of each field that may be chosen, in the order of the space.
Candidate = tuple[tuple[str, Value], ...]

# What a journal does depends on these together; the other fields change its cost one by one.
STRUCTURE = ("filesystem", "journal_mode", "synchronous", "batch_atomic_write", "statements")

_OF_SQLITE: Mapping[str, tuple[Value, ...]] = {
    "journal_mode": ("delete", "truncate", "persist", "wal", "memory", "off"),
    "synchronous": ("extra", "full", "normal", "off"),
    "batch_atomic_write": ("off", "on"),
    "sync_call": ("fsync", "fdatasync"),
    "page_size_bytes": (1024, 4096, 8192, 16384),
    "wal_autocheckpoint_pages": (100, 1000, 4000),
    "locking_mode": ("normal", "exclusive"),
}
# What a filesystem can be made or mounted with that may make a commit cheaper.
_MKFS: Mapping[str, tuple[str, ...]] = {"ext4": ("-O fast_commit",)}
_MOUNT: Mapping[str, tuple[str, ...]] = {
    "ext4": ("lazytime", "nobarrier"),
    "btrfs": ("nobarrier",),
    "nilfs2": ("nobarrier",),
    "f2fs": ("fsync_mode=nobarrier",),
}
# Rows that one transaction may change where they may wait for one another.
_BATCHES = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)


@dataclass(frozen=True)
class Space:
    """`present` are the app's settings, in full; `values` are those that each field may have, the
    present one first.
    """

    present: Mapping[str, Value]
    values: Mapping[str, tuple[Value, ...]]
    guarantee: Guarantee

    @property
    def own(self) -> Candidate:
        """The present settings."""
        return tuple((name, self.present[name]) for name in self.values)

    def settings(self, candidate: Candidate) -> dict[str, Value]:
        """Return all fields of a candidate's case."""
        return {**self.present, **dict(candidate)}

    def can_run(self, candidate: Candidate) -> bool:
        """Whether the lab can run it, and each of its settings has a meaning."""
        settings = self.settings(candidate)
        return not impossible(complete(settings)) and not self._idle(settings)

    def is_allowed(self, candidate: Candidate) -> bool:
        """Whether the manuals allow it for the guarantee."""
        if self.guarantee is Guarantee.NONE:
            return True
        allowed = {Harm.COMMITS} if self.guarantee is Guarantee.CONSISTENT else set[Harm]()
        return all(each.kind in allowed for each in hazards(self.settings(candidate)))

    @cached_property
    def candidates(self) -> tuple[Candidate, ...]:
        """Every combination that can run and is allowed: the full matrix."""
        return tuple(
            each for each in self.combinations(tuple(self.values)) if self.is_allowed(each)
        )

    def combinations(self, fields: tuple[str, ...]) -> Iterator[Candidate]:
        """Yield every combination of some fields that can run; the others are the present ones."""
        own = dict(self.own)
        axes = [self.values[name] if name in fields else (own[name],) for name in self.values]
        for values in product(*axes):
            candidate = self._valid(tuple(zip(self.values, values, strict=True)))
            if self.can_run(candidate):
                yield candidate

    def changed(self, candidate: Candidate, name: str, value: Value) -> Candidate:
        """Return a candidate with another value of one field."""
        return self._valid(tuple((n, value if n == name else v) for n, v in candidate))

    def differences(self, candidate: Candidate) -> dict[str, tuple[Value, Value]]:
        """Return the fields in which it is not as the present settings, with both values."""
        own = dict(self.own)
        return {name: (own[name], value) for name, value in candidate if value != own[name]}

    def _valid(self, candidate: Candidate) -> Candidate:
        """Return it with options that its filesystem has: those of another have no meaning."""
        filesystem = str(dict(candidate).get("filesystem", self.present["filesystem"]))
        same = filesystem == self.present["filesystem"]
        found = []
        for name, value in candidate:
            own = str(self.present.get(name, ""))
            if name == "mkfs_options" and value not in (own if same else "", *_added(
                    own if same else "", _MKFS.get(filesystem, ()), " ")):  # fmt: skip
                value = own if same else ""
            base = own if same else "noatime"
            if name == "mount_options" and value not in (
                base, *_added(base, _MOUNT.get(filesystem, ()), ",")
            ):  # fmt: skip
                value = base
            found.append((name, value))
        return tuple(found)

    def _idle(self, settings: Mapping[str, Value]) -> bool:
        """Whether a setting that differs from the present one changes nothing."""
        if "journal_mode" not in settings:
            return False
        is_wal = settings["journal_mode"] == "wal"
        frames = settings["wal_autocheckpoint_pages"] != self.present["wal_autocheckpoint_pages"]
        batch = settings["batch_atomic_write"] == "on" and (
            is_wal or settings["journal_mode"] == "off"
        )
        return (frames and not is_wal) or batch


def space(
    present: Mapping[str, Value],
    fixed: frozenset[str],
    guarantee: Guarantee,
    *,
    most_rows: int = 0,
    journal_device: str = "",
) -> Space:
    """Return the settings that an app with the `present` ones may choose; `fixed` names fields that
    stay as they are. `most_rows` may wait for one transaction; 0: as many as now.
    """
    values: dict[str, tuple[Value, ...]] = {"filesystem": FILESYSTEMS}
    if present["workload"] in ALL_SQLITE:
        values |= _OF_SQLITE
    if most_rows and present["workload"] in SQLITE:
        values["statements"] = tuple(rows for rows in _BATCHES if rows <= most_rows)
    mkfs, mount = str(present["mkfs_options"]), str(present["mount_options"])
    values["mkfs_options"] = tuple(
        words for added in _MKFS.values() for words in _added(mkfs, added, " ")
    )
    bases = dict.fromkeys((mount, "noatime"))
    values["mount_options"] = tuple(
        words for base in bases for added in _MOUNT.values() for words in _added(base, added, ",")
    )
    if journal_device:
        values["journal_device"] = (NO_DEVICE, journal_device)
    chosen = {
        name: tuple(dict.fromkeys((present[name], *own)))
        for name, own in values.items()
        if name not in fixed
    }
    return Space(present, chosen, guarantee)


def _added(own: str, added: tuple[str, ...], sign: str) -> tuple[str, ...]:
    """Return the options with each of some more."""
    return tuple(sign.join(filter(None, (own, each))) for each in added)
