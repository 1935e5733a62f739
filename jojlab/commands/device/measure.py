"""joj device measure: measures a live block device and fits a profile to it."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path

import click
from rich.console import Console

from jojlab.command_line.group import argument, command, option
from jojlab.command_line.options import PATH, json_option
from jojlab.device.distributions import PERCENTILES, measure_distributions, mechanisms
from jojlab.device.fit import KNOBS, fit
from jojlab.device.probe import Effort, Probe
from jojlab.device.profile import read_profile
from jojlab.device.write_profile import profile_text
from jojlab.foundation.errors import FINE, INCOMPLETE, UseError
from jojlab.foundation.printable import json_text


@command()
@argument("device", metavar="BLOCKDEV", type=PATH, help="Block device, or a file.")
@option(
    "--like",
    metavar="NAME",
    default="emmc-5.1",
    help="Profile for the parameters that cannot be measured.",
)
@option("--out", metavar="FILE.toml", type=PATH, help="Write the profile to this file.")
@option(
    "--destroy-data",
    "write",
    is_flag=True,
    help="Also measure writes and flushes: OVERWRITES the device.",
)
@option(
    "--distributions",
    "by_fio",
    is_flag=True,
    help="Also measure, with fio, how times are distributed: needs --destroy-data.",
)
@option(
    "--seconds",
    metavar="NUMBER",
    type=click.FloatRange(0.05, 600),
    default=2.0,
    help="Real time per figure.",
)
@json_option()
def measure(
    device: Path,
    like: str,
    out: Path | None,
    write: bool,
    by_fio: bool,
    seconds: float,
    as_json: bool,
) -> int:
    """Measure a real block device and fit a profile to it.

    It only reads, with O_DIRECT, unless --destroy-data is given. Parameters that were not measured,
    or that no benchmark can measure (NAND times, caches, garbage collection), come from --like; the
    profile's sources say so.

    \b
    Examples:
      joj device measure /dev/mmcblk0
      joj device measure /dev/sdb --destroy-data --like sd-card --out my-card.toml
      joj device measure /dev/sdb --destroy-data --distributions --json
      joj run first-look --set device=./my-card.toml

    --distributions measures writes of three sizes, plain, with a flush and with FUA, after three
    idle times, for --seconds each (a second at least). A tail of flushes and a sleep become keys of
    the profile.

    Exit code 4 if the model cannot reproduce a measured figure.
    """
    if by_fio and not write:
        raise UseError("--distributions writes", "add --destroy-data, on a device you can lose")
    base = read_profile(like)
    if out is not None and (out.suffix != ".toml" or out.exists()):
        raise UseError(f"{out} exists, or is no .toml file", "name a new file that ends in .toml")
    with Probe(device, write=write, effort=Effort(seconds)) as probe:
        measured = probe.reads() | (probe.writes() if write else {})
        size_bytes = probe.size_bytes
    rows = []
    if by_fio:
        with Console(stderr=True).status("") as status:
            rows = measure_distributions(
                device, seconds, lambda what: status.update(f"fio: {what}")
            )
    fitted = fit(base.model, measured)
    if rows:
        fitted = replace(fitted, model={**fitted.model, **mechanisms(rows)})
    missing = [name for name in KNOBS if name not in measured]
    if out is not None:
        text = profile_text(out.stem, base, fitted, measured, str(device))
        out.write_text(text, encoding="utf-8")
    if as_json:
        document = {
            "device": str(device),
            "size_bytes": size_bytes,
            "measured": measured,
            "not_measured": missing,
            "like": base.name,
            "model": fitted.model,
            "off": fitted.off,
            "percentiles": PERCENTILES,
            "distributions": [asdict(row) for row in rows],
        }
        print(json_text(document))
    else:
        print(f"{device}: {size_bytes:,} bytes")
        for name, value in measured.items():
            print(f"  {name:<30} {value:>15,}  model {fitted.figures[name]:>15,}")
        for row in rows:
            times = "  ".join(
                f"{'–':>9}" if ns is None else f"{ns / 1000:>9,.0f}"
                for ns in (*row.percentiles_ns, row.longest_ns)
            )
            what = f"{row.kind} {row.size_bytes >> 10} KiB, {row.gap_us / 1000:g} ms idle"
            print(f"  {what:<30} {times} us  ({row.operations} operations)")
        if rows:
            told = ", ".join(f"p{percentile:g}" for percentile in PERCENTILES)
            print(f"  the columns are {told} and the longest; –: too few operations (--seconds)")
        for name in missing:
            print(f"  {name:<30} {'not measured':>15}  as {base.name}; use --destroy-data")
        print(f"  cannot be measured, as {base.name}: NAND times, caches, garbage collection")
        for name in fitted.unmet:
            print(f"  the model cannot reproduce {name} with {KNOBS[name][0]} alone")
        if fitted.unmet:
            print(
                f"  another --like than {base.name} may fit better: emmc-5.1, ufs-3.1, nvme-plp ..."
            )
        if out is not None:
            print(f"profile {out}")
    return INCOMPLETE if fitted.unmet else FINE
