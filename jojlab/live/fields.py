"""The fields of a live case: those of the lab except what the directory decides."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from jojlab.experiment.cases import complete
from jojlab.foundation.errors import UseError
from jojlab.model.field import Field, Kind, Value
from jojlab.model.fields import BY_NAME, FIELDS
from jojlab.model.workloads import WORKLOADS

# The directory and its machine decide these, not the case.
OF_THE_LAB = tuple(field.name for field in FIELDS if field.is_of_target)
# The guest's memory limits the lab; here only the filesystem's free space does.
_HIGHEST = {"file_bytes": 1 << 44}


def live_fields(workloads: tuple[str, ...]) -> list[Field]:
    """Return the fields of live cases of these workloads, of which the first is the default."""
    fields = []
    for field in FIELDS:
        if field.name in OF_THE_LAB or not any(map(field.applies, workloads)):
            continue
        if field.name == "workload":
            field = replace(field, choices=workloads, default=workloads[0])
        fields.append(replace(field, highest=_HIGHEST.get(field.name, field.highest)))
    return fields


def live_settings(given: Mapping[str, Value], where: str) -> dict[str, Value]:
    """Return the record of a live case: what was given, and the defaults.

    Raises UseError for a field that the workload does not have, or lacks, and for a folder that is
    not there.
    """
    workload = given.get("workload", BY_NAME["workload"].default)
    assert workload is not None
    for name in given:
        if not BY_NAME[name].applies(workload):
            raise UseError(
                f"{where}: {workload} has no field {name}",
                f"drop it; it is for {', '.join(BY_NAME[name].workloads)}",
            )
    need = WORKLOADS[str(workload)].needs
    if need and not given.get(need):
        raise UseError(f"{where}: {workload} needs {need} = FOLDER", f"give it: --{need} FOLDER")
    for name, value in given.items():
        if BY_NAME[name].kind is Kind.FOLDER and value and not Path(str(value)).is_dir():
            raise UseError(f"{where}: {name} = {value!r}: no such folder", "name a folder")
    return {name: value for name, value in complete(given).items() if name not in OF_THE_LAB}
