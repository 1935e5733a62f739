"""The workloads, one module for each family: every module here is found and listed.

A module has WORKLOADS; FIELDS, the fields of these workloads; and RANK, its place among the others
in lists and help.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping
from types import MappingProxyType, ModuleType
from typing import Any

from jojlab.model.field import Field
from jojlab.model.workload import Workload


def _modules() -> list[ModuleType]:
    names = (module.name for module in pkgutil.iter_modules(__path__))
    found = [importlib.import_module(f"{__name__}.{name}") for name in names
             if not name.startswith("test_")]  # fmt: skip
    return sorted(found, key=lambda module: int(module.RANK))


_MODULES = _modules()
WORKLOADS: Mapping[str, Workload] = MappingProxyType(
    {workload.name: workload for module in _MODULES for workload in module.WORKLOADS}
)
WORKLOAD_FIELDS: tuple[Field, ...] = tuple(field for module in _MODULES for field in module.FIELDS)


def workload_of(settings: Mapping[str, Any]) -> Workload:
    """Return the workload of a complete case."""
    return WORKLOADS[str(settings["workload"])]


def with_group(group: str) -> tuple[str, ...]:
    """Return the names of the workloads that have the fields of a group."""
    return tuple(name for name, workload in WORKLOADS.items() if workload.has(group))


def workloads_that_need(field: str) -> tuple[str, ...]:
    """Return the names of the workloads that must be given a field."""
    return tuple(name for name, workload in WORKLOADS.items() if workload.needs == field)


def mobibench_workload(flag: str) -> Workload:
    """Return the workload that a flag of Mobibench runs."""
    return next(each for each in WORKLOADS.values() if flag in each.mobibench_flags)


def bench_workloads(bench: str) -> tuple[str, ...]:
    """Return the names of the workloads that `joj bench BENCH` runs."""
    return tuple(name for name, workload in WORKLOADS.items() if workload.bench == bench)
