"""joj list: lists experiments, devices, kernels, fields and figures."""

from __future__ import annotations

import re
from typing import Any

from jojlab.command_line import options as common
from jojlab.command_line.group import argument, command, option
from jojlab.device.profile import EMULATED, EMULATED_BYTES, read_profile
from jojlab.experiment.read import read
from jojlab.foundation.errors import UseError, refuse_unknown
from jojlab.foundation.places import DEVICES, EXPERIMENTS, KERNELS
from jojlab.foundation.printable import json_text
from jojlab.guest.kernel.catalogue import read_named
from jojlab.guest.kernel.choose import INSTALLED
from jojlab.model.fields import BY_NAME
from jojlab.model.figures import FIGURES
from jojlab.report.shared.console import print_rows, terminal

Rows = list[dict[str, Any]]
WHAT = {
    "experiments": "questions that come with jojlab, with their numbers of cases",
    "devices": "modelled devices, and the disks that QEMU emulates",
    "kernels": "kernels that a guest can boot; downloaded when they are asked for",
    "fields": "settings of a case, with their values and defaults",
    "figures": "numbers measured for a case",
}


@command("list")
@argument(
    "kind", metavar="[WHAT]", default="", help="experiments, devices, kernels, fields or figures."
)
@option("--of", "WORKLOAD", "Only the fields of this workload.", default="", name="workload")
@common.json("Print a JSON list of objects.")
def list_(kind: str, workload: str, as_json: bool) -> None:
    """List experiments, devices, kernels, fields or figures.

    Without WHAT, list what can be listed.

    \b
    Examples:
      joj list
      joj list experiments
      joj list devices
      joj list fields --of file-write
      joj list fields --json | jq '.[] | select(.name == "journal_mode").values'
      joj list figures
    """
    if kind:
        refuse_unknown(kind, WHAT, f"no list of {kind!r}")
    if workload and kind != "fields":
        raise UseError("--of is for fields alone", f"joj list fields --of {workload}")
    rows = lists(kind, workload) if kind else [{"name": n, "meaning": m} for n, m in WHAT.items()]
    if as_json:
        print(json_text(rows))
        return
    if kind == "fields":  # the second list of a profile's keys says what the first one says
        rows = [row for row in rows if not str(row["name"]).startswith("journal_device.")]
    columns = [name for name in rows[0] if name not in ("lowest", "highest")]
    shown = [["" if row[name] is None else _word(row[name]) for name in columns] for row in rows]
    print_rows(terminal(), columns, [list(row) for row in shown])
    if kind == "fields":
        print("\njournal_device.KEY exists for every device.KEY except icount_shift.")


def lists(name: str, workload: str = "") -> Rows:
    """Return the rows of one of WHAT; `of` is a workload, whose fields alone are asked for."""
    found = {"experiments": _experiments, "devices": _devices, "kernels": _kernels,
             "figures": _figures}  # fmt: skip
    return _fields(workload) if name == "fields" else found[name]()


def _word(value: object) -> str | int:
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return value if isinstance(value, int) else str(value)


def _experiments() -> Rows:
    return [
        {
            "name": experiment.name,
            "cases": len(experiment.cases),
            "seeds": len(experiment.seeds),
            "question": experiment.question,
        }
        for experiment in map(read, sorted(EXPERIMENTS.glob("*/experiment.toml")))
    ]


def _devices() -> Rows:
    profiles = map(read_profile, sorted(DEVICES.glob("*.toml")))
    found = [(it.name, "modelled", it.model["capacity_bytes"], it.title) for it in profiles]
    found += [(it.name, "emulated", EMULATED_BYTES, it.title) for it in EMULATED.values()]
    return [dict(zip(("name", "kind", "capacity_bytes", "title"), it, strict=True)) for it in found]


def _kernels() -> Rows:
    found = [(path.stem, read_named(path.stem)) for path in KERNELS.glob("*.toml")]
    found.sort(key=lambda row: [int(number) for number in re.findall(r"\d+", row[0])])
    own = {"name": INSTALLED, "suite": "", "title": "that of the installed kernel headers"}
    return [own, *({"name": n, "suite": it.suite, "title": it.title} for n, it in found)]


def _fields(workload: str) -> Rows:
    if workload:
        BY_NAME["workload"].check(workload, "--of")
    return [
        {
            "name": field.name,
            "default": field.default,
            "values": list(field.choices) if field.choices else field.range or "text",
            "lowest": field.limits[0] if field.limits else None,
            "highest": field.limits[1] if field.limits else None,
            "workloads": list(field.workloads) or "all",
            "meaning": field.meaning,
        }
        for field in BY_NAME.values()
        if not workload or field.applies(workload)
    ]


def _figures() -> Rows:
    return [
        {
            "name": figure.name,
            "unit": figure.unit,
            "better": figure.better,
            "counted from": figure.source,
            "meaning": figure.meaning,
        }
        for figure in FIGURES.values()
    ]
