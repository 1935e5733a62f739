"""Which settings may an app choose? The values of each field, and the combinations that can run and
that the manuals allow for a guarantee.

Reads the app's present settings and what is fixed; gives candidates, and the experiment that
measures some of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product

from jojlab.analysis.run.risks import Guarantee, hazards
from jojlab.experiment.cases import complete, impossible
from jojlab.experiment.read import Experiment
from jojlab.experiment.variants import Variant
from jojlab.model.field import Value
from jojlab.model.filesystem import NO_DEVICE
from jojlab.model.filesystems import (
    BLOCK_FILESYSTEMS,
    FILESYSTEMS,
    RAW_NAND_FILESYSTEMS,
    filesystem_of,
)
from jojlab.model.hazards import Harm, Hazard, Observation
from jojlab.model.workloads import workload_of
from jojlab.model.workloads.sqlite import ROLLBACK_MODES, ROWS, SQLITE

# A choice: a value of each field that may be chosen, in the order of the space.
Candidate = tuple[tuple[str, Value], ...]

# What a commit writes and waits for depends on these together: fdatasync halves a WAL's commit on
# ext4, and hardly changes that of TRUNCATE. The other fields change its cost one by one.
STRUCTURE = (
    "filesystem", "journal_mode", "synchronous", "batch_atomic_write", "sync_call", "statements",
)  # fmt: skip

_OF_SQLITE: Mapping[str, tuple[Value, ...]] = {
    "journal_mode": ("delete", "truncate", "persist", "wal", "memory", "off"),
    "synchronous": ("extra", "full", "normal", "off"),
    "batch_atomic_write": ("off", "on"),
    "sync_call": ("fsync", "fdatasync"),
    "page_size_bytes": (1024, 4096, 8192, 16384),
    "wal_autocheckpoint_pages": (100, 1000, 4000),
    "locking_mode": ("normal", "exclusive"),
    "checkpoint_when_closed": ("on", "off"),
    "vfs": ("none", "wal", "redo"),
}
MAIN = "main"
# Rows that one transaction may change where they may wait for one another.
_BATCHES = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)


@dataclass(frozen=True)
class Space:
    """`present` are the app's settings, in full; `values` are those that each field may have, the
    present one first; options depend on the filesystem, and are told by values_of(). `schemas` are
    the names of the databases that a connection has open.
    """

    present: Mapping[str, Value]
    values: Mapping[str, tuple[Value, ...]]
    guarantee: Guarantee
    schemas: tuple[str, ...] = (MAIN,)
    # What the scripts say beside the fields.
    observation: Observation = field(default_factory=Observation)

    @property
    def own(self) -> Candidate:
        """The present settings."""
        return tuple((name, self.present[name]) for name in self.values)

    def settings(self, candidate: Candidate) -> dict[str, Value]:
        """Return all fields of a candidate's case."""
        return {**self.present, **dict(candidate)}

    def can_run(self, candidate: Candidate) -> bool:
        """Return whether the lab can run it, and each of its settings has a meaning."""
        settings = self.settings(candidate)
        return not impossible(complete(settings)) and not self._is_idle(settings)

    def is_allowed(self, candidate: Candidate) -> bool:
        """Return whether the manuals allow it for the guarantee."""
        return not self.forbidding_hazards(candidate)

    def forbidding_hazards(self, candidate: Candidate) -> tuple[Hazard, ...]:
        """Return the hazards for which the guarantee does not allow it."""
        if self.guarantee is Guarantee.NONE:
            return ()
        lost = {Harm.COMMITS, Harm.WRITES, Harm.NAMES}
        allowed = lost if self.guarantee is Guarantee.CONSISTENT else set[Harm]()
        stays = filesystem_of(self.present).constant_cause
        found = self.hazards(candidate)
        return tuple(each for each in found if each.kind not in allowed and each.cause is not stays)

    def hazards(self, candidate: Candidate) -> tuple[Hazard, ...]:
        """Return what the manuals warn of."""
        return hazards(self.settings(candidate), observation=self.observation)

    @cached_property
    def left_out(self) -> dict[str, tuple[Hazard, ...]]:
        """Return the filesystems, and "wal", with which nothing is allowed, each with the least
        that is risked there.
        """
        risked: dict[str, list[tuple[Hazard, ...]]] = {}
        for each in self.structures():
            found = self.forbidding_hazards(each)
            risked.setdefault(self.filesystem(each), []).append(found)
            if dict(each).get("journal_mode") == "wal":
                risked.setdefault("wal", []).append(found)
        return {name: min(found, key=len) for name, found in risked.items() if all(found)}

    @cached_property
    def candidates(self) -> tuple[Candidate, ...]:
        """Every combination that can run and is allowed: the full matrix."""
        structures = (each for each in self.structures() if self.is_allowed(each))
        rest = tuple(name for name in self.values if name not in STRUCTURE)
        found = (each for structure in structures for each in self._vary(structure, rest))
        return tuple(dict.fromkeys(each for each in found if self.is_allowed(each)))

    def structures(self) -> tuple[Candidate, ...]:
        """Return every combination of the STRUCTURE that can run; the other fields are the present
        ones, but for options that another filesystem does not have.
        """
        fields = tuple(name for name in STRUCTURE if name in self.values)
        return tuple(dict.fromkeys(self._vary(self.own, fields)))

    def values_of(self, name: str, filesystem: str) -> tuple[Value, ...]:
        """Return the values of a field on a filesystem, the one to begin with first."""
        same = filesystem == self.present["filesystem"]
        if name == "mkfs_options":
            own = str(self.present[name]) if same else ""
            return own, *_add_options(own, FILESYSTEMS[filesystem].cheaper_mkfs_options, " ")
        if name == "mount_options":
            own = str(self.present[name]) if same else "noatime"
            return own, *_add_options(own, FILESYSTEMS[filesystem].cheaper_mount_options, ",")
        return self.values[name]

    def neighbours(self, candidate: Candidate) -> Iterator[tuple[str, Candidate]]:
        """Yield the candidates that differ in one field and can run, with that field's name."""
        filesystem = self.filesystem(candidate)
        for name, own in candidate:
            for value in self.values_of(name, filesystem):
                if value != own and self.can_run(near := self.change_field(candidate, name, value)):
                    yield name, near

    def filesystem(self, candidate: Candidate) -> str:
        """Return the filesystem of a candidate."""
        return str(dict(candidate).get("filesystem", self.present["filesystem"]))

    def _vary(self, candidate: Candidate, fields: tuple[str, ...]) -> Iterator[Candidate]:
        """Yield every combination of some fields that can run; the others are the candidate's."""
        filesystem = self.filesystem(candidate)
        axes = [
            self.values_of(name, filesystem) if name in fields else (own,)
            for name, own in candidate
        ]
        for values in product(*axes):
            varied = self._valid(tuple(zip(self.values, values, strict=True)))
            if self.can_run(varied):
                yield varied

    def change_field(self, candidate: Candidate, name: str, value: Value) -> Candidate:
        """Return a candidate with another value of one field."""
        return self._valid(tuple((n, value if n == name else v) for n, v in candidate))

    def differences(self, candidate: Candidate) -> dict[str, tuple[Value, Value]]:
        """Return the fields in which it is not as the present settings, with both values."""
        own = dict(self.own)
        return {name: (own[name], value) for name, value in candidate if value != own[name]}

    def _valid(self, candidate: Candidate) -> Candidate:
        """Return it with options that its filesystem has: those of another have no meaning."""
        filesystem = self.filesystem(candidate)
        return tuple(
            (name, value if value in (known := self.values_of(name, filesystem)) else known[0])
            for name, value in candidate
        )

    def _is_idle(self, settings: Mapping[str, Value]) -> bool:
        """Return whether a setting that differs from the present one changes nothing."""
        if "journal_mode" not in settings:
            return False
        is_wal = settings["journal_mode"] == "wal"
        of_wal = ("wal_autocheckpoint_pages", "checkpoint_when_closed")
        idle = not is_wal and any(settings[name] != self.present[name] for name in of_wal)
        batch = settings["batch_atomic_write"] == "on" and (
            is_wal or settings["journal_mode"] == "off"
        )
        return idle or batch or self._is_idle_vfs(settings)

    def _is_idle_vfs(self, settings: Mapping[str, Value]) -> bool:
        """Return whether another VFS than the present one changes nothing, or gives what a lesser
        change does: one database in a WAL that does not grow costs as little as in a redo log
        (joj run cure), and any SQLite opens it.
        """
        vfs, mode = settings["vfs"], settings["journal_mode"]
        if vfs == self.present["vfs"]:
            return False
        may_be_wal = "wal" in self.values.get("journal_mode", ())
        return (vfs == "wal" and mode != "wal") or (
            vfs == "redo"
            and (mode not in ROLLBACK_MODES or (may_be_wal and len(self.schemas) == 1))
        )


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
    workload, on_raw_nand = workload_of(present), filesystem_of(present).is_on_raw_nand
    filesystems = RAW_NAND_FILESYSTEMS if on_raw_nand else BLOCK_FILESYSTEMS
    values: dict[str, tuple[Value, ...]] = {"filesystem": filesystems}
    if workload.has(SQLITE):
        values |= _OF_SQLITE
    if most_rows and workload.has(ROWS):
        values["statements"] = tuple(rows for rows in _BATCHES if rows <= most_rows)
    values |= {name: (present[name],) for name in ("mkfs_options", "mount_options")}
    if journal_device:
        values["journal_device"] = (NO_DEVICE, journal_device)
    chosen = {
        name: tuple(dict.fromkeys((present[name], *own)))
        for name, own in values.items()
        if name not in fixed
    }
    return Space(present, chosen, guarantee, _schemas(present))


def _schemas(present: Mapping[str, Value]) -> tuple[str, ...]:
    """Return the names of the databases of a workload of ours: main, db2, db3 and so on."""
    count = int(present.get("databases") or 1)
    return (MAIN, *(f"db{number}" for number in range(2, count + 1)))


def _add_options(own: str, added: tuple[str, ...], sign: str) -> tuple[str, ...]:
    """Return the options with each of some more."""
    return tuple(sign.join(filter(None, (own, each))) for each in added)


def experiment(
    space: Space,
    settings: Mapping[str, Value],
    regimes: tuple[str, ...],
    candidates: Mapping[str, Candidate],
    seeds: tuple[int, ...],
    notes: tuple[str, ...] = (),
) -> Experiment:
    """Return the experiment of some candidates by name, in each of the regimes; without regimes,
    in the one that the fields say.
    """
    chosen = {*space.values, "regime"} if regimes else {*space.values}
    return Experiment(
        "advise",
        "Which settings are the cheapest that keep the guarantee?",
        seeds,
        {name: value for name, value in settings.items() if name not in chosen},
        {"regime": regimes} if regimes else {},
        tuple(Variant(name, dict(candidate)) for name, candidate in candidates.items()),
        notes=notes,
        where="joj advise",
    ).expand()
