"""Expands fields and a matrix into cases: flat records. Explains why a case cannot be run."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from dataclasses import field as dataclass_field
from pathlib import Path

from jojlab.device.profile import EMULATED
from jojlab.foundation.errors import UseError
from jojlab.model.architecture import X86_64
from jojlab.model.field import Settings, Value
from jojlab.model.fields import (
    ALLOCATOR_FIELDS,
    ALLOCATORS,
    BY_NAME,
    FIELDS,
    NAMED_FIELDS,
    RAW_NAND_DEVICE,
)
from jojlab.model.filesystems import RAW_NAND_FILESYSTEMS, filesystem_of, filesystem_refusal
from jojlab.model.software import with_software
from jojlab.model.workloads import workload_of


@dataclass(frozen=True)
class Case:
    """One point of the matrix: `settings` is the flat record; `skip` says why it cannot be run.

    `variant` names its variant, where the experiment has variants; `inputs` are the files that it
    names, by their fields.
    """

    case_id: str
    settings: dict[str, Value]
    skip: str = ""
    variant: str = ""
    inputs: Mapping[str, Path] = dataclass_field(default_factory=dict)

    @property
    def sqlite_folder(self) -> Path | None:
        """The folder of another SQLite that it runs with; None for the agent's own."""
        return self.inputs.get("sqlite")


def expand(fixed: Mapping[str, Value], matrix: Mapping[str, Sequence[Value]]) -> list[Case]:
    """Return every combination of `matrix` over `fixed` and the defaults, in the given order.

    A field that a combination's workload does not have is left out of it; combinations that differ
    in nothing else are one case.
    """
    found: dict[tuple[tuple[str, Value], ...], dict[str, Value]] = {}
    for combination in itertools.product(*matrix.values()):
        settings = complete({**fixed, **dict(zip(matrix, combination, strict=True))})
        found.setdefault(tuple(settings.items()), settings)
    records = list(found.values())
    axes = [[name for name in matrix if name in record] for record in records]
    names = [
        "-".join(str(record[name]) for name in own) or "case"
        for record, own in zip(records, axes, strict=True)
    ]
    if len(set(names)) < len(names):
        names = [
            ",".join(f"{name}={record[name]}" for name in own)
            for record, own in zip(records, axes, strict=True)
        ]
    return [
        Case(name, record, impossible(record)) for name, record in zip(names, records, strict=True)
    ]


def refuse_useless(names: Iterable[str], workloads: Sequence[Value], where: str) -> None:
    """Raise UseError for a named field that no workload asked for has."""
    for name in names:
        if not any(BY_NAME[name].applies(workload) for workload in workloads):
            raise UseError(
                f"{where}: {' and '.join(map(str, workloads))} has no field {name}",
                f"drop it; it is for {', '.join(BY_NAME[name].workloads)}",
            )


def complete(settings: Mapping[str, Value]) -> dict[str, Value]:
    """Return all fields that the workload has, in their order, defaults filled in.

    Those of NAMED_FIELDS that are named come last.
    """
    chosen: dict[str, Value] = {
        name: value
        for name in ("workload", "filesystem", "device")
        if (value := BY_NAME[name].default) is not None
    }
    if settings.get("filesystem") in RAW_NAND_FILESYSTEMS:
        chosen["device"] = RAW_NAND_DEVICE
    settings = with_software({**chosen, **settings})
    fields = [field for field in FIELDS if field.applies(settings["workload"])]
    values = {field.name: settings.get(field.name, field.default) for field in fields}
    if values.get("duration_ms") and "transactions" not in settings:
        values["transactions"] = 0
    record = {name: value for name, value in values.items() if value is not None}
    # initial_rows alone has a default that depends on other fields.
    rows = workload_of(record).default_rows
    whole = {name: record[name] if name in record else rows(record) for name in values}
    named = {field.name: settings[field.name] for field in NAMED_FIELDS if field.name in settings}
    if any(field.name in named for field in ALLOCATOR_FIELDS):
        named = {**{field.name: ALLOCATORS[0] for field in ALLOCATOR_FIELDS}, **named}
    return whole | named


def impossible(settings: Settings) -> str:
    """Return why a case cannot be run as asked; empty when it can."""
    if found := _machine_refusal(settings) or _filesystem_refusal(settings):
        return found
    workload = workload_of(settings)
    if workload.needs and not settings[workload.needs]:
        return f"{workload.name} needs {workload.needs} = {BY_NAME[workload.needs].path_word}"
    if workload.is_drawn and bool(settings["transactions"]) == bool(settings["duration_ms"]):
        return "either transactions or duration_ms says how much is measured: name one of them"
    return workload.refusal(settings)


def _machine_refusal(settings: Settings) -> str:
    """Return why a case cannot be run on its machine (docs/arm64.md)."""
    machine = settings.get("machine", X86_64.name)
    if machine == X86_64.name:
        return ""
    only = f"is only for machine={X86_64.name}"
    if settings["device"] in EMULATED:
        return f"{settings['device']} {only}: {machine} has no clock on the wall"
    if allocators := _allocators(settings):
        return f"{allocators[0]} {only}: UBI and UBIFS are built anew for it"
    if workload_of(settings).is_of_this_machine:
        return f"workload {settings['workload']} {only}, as programs of this machine are"
    return ""


def _filesystem_refusal(settings: Settings) -> str:
    filesystem = filesystem_of(settings)
    allocators = _allocators(settings)
    if allocators and not filesystem.is_on_raw_nand:
        having = " and ".join(RAW_NAND_FILESYSTEMS)
        return f"{filesystem.name} has no buffers of UBI: {allocators[0]} is for {having}"
    return filesystem_refusal(settings)


def _allocators(settings: Settings) -> list[str]:
    return [field.name for field in ALLOCATOR_FIELDS if field.name in settings]


def refuse_alone(cases: Sequence[Case], where: str) -> None:
    """Raise UseError when nothing can be run: what cannot be done was not one point of several."""
    if cases and all(case.skip for case in cases):
        raise UseError(f"{where}: {cases[0].skip}", "change or drop the field, or name it")
