"""joj device show, measure, calibrate and sensitivity: modelled devices and measured ones."""

from __future__ import annotations

import shlex
from dataclasses import asdict, replace
from pathlib import Path

import msgspec
from click import FloatRange
from rich.console import Console

from jojlab.campaign.device_studies import anchor_throughput, read_sensitivity, vary_numbers
from jojlab.command_line import options as common
from jojlab.command_line.campaigns import begin_campaign, run_with_progress
from jojlab.command_line.group import PATH, argument, command, flag, option
from jojlab.device.fit import KNOBS, fit, fit_to_anchor, measure_model, profile_text, write_value
from jojlab.device.measure import PERCENTILES, Effort, Probe, measure_distributions, mechanisms
from jojlab.device.profile import EMULATED, EMULATED_NOTE, numbers, read_profile
from jojlab.experiment.plan import plan
from jojlab.experiment.read import find, read
from jojlab.foundation.errors import (
    EXPECTATION_FAILED,
    FINE,
    INCOMPLETE,
    MACHINE_CANNOT,
    UseError,
    refuse_unknown,
)
from jojlab.foundation.printable import json_text
from jojlab.foundation.signals import SignalReceived
from jojlab.lab.job import Options
from jojlab.model.figures import FIGURES
from jojlab.report.device import print_device, print_sensitivity, write_page
from jojlab.report.shared import text
from jojlab.report.shared.console import terminal


@command()
@argument("name", metavar="NAME", help="Name in devices/, or path of a profile.")
@flag("--sources", "Show the source of each parameter.")
@common.json()
def show(name: str, sources: bool, as_json: bool) -> None:
    """Show a modelled device: parameters, bandwidth, IOPS, latencies.

    The figures come from the model itself, run in user space as a benchmark runs a device. Beside
    them are published or measured figures of such a device.

    \b
    Examples:
      joj device show emmc-galaxy-s3
      joj device show ufs-2.1 --sources
      joj device show qemu-nvme
      joj device show ./my-card.toml --json | jq .figures
    """
    if name in EMULATED:
        emulated = EMULATED[name]
        document = {**vars(emulated), "note": EMULATED_NOTE}
        print(json_text(document) if as_json else f"{name}: {emulated.title}\n{EMULATED_NOTE}")
        return
    profile = read_profile(name)
    with Console(stderr=True).status("") as status:
        figures = measure_model(
            profile.model,
            next_is=lambda figure: status.update(f"measuring the model: {figure}"),
            interface=profile.interface,
        )
    if not as_json:
        print_device(terminal(), profile, figures, sources=sources)
        return
    document = {
        "name": profile.name,
        "title": profile.title,
        "interface": profile.interface,
        "icount_shift": profile.icount_shift,
        "model": dict(profile.model),
        "sources": dict(profile.sources),
        "figures": figures,
        "stated": [msgspec.structs.asdict(stated) for stated in profile.stated],
    }
    print(json_text(document))


@command()
@argument("device", metavar="BLOCKDEV", type=PATH, help="Block device, or a file.")
@option("--like", "NAME", "Profile for the parameters that cannot be measured.", default="emmc-5.1")
@option("--out", "FILE.toml", "Write the profile to this file.", PATH)
@flag("--destroy-data", "Also measure writes and flushes: OVERWRITES the device.", name="write")
@flag(
    "--distributions",
    "Also measure, with fio, how times are distributed: needs --destroy-data.",
    name="distributions",
)
@option("--seconds", "NUMBER", "Real time per figure.", FloatRange(0.05, 600), 2.0)
@common.json()
def measure(
    device: Path,
    like: str,
    out: Path | None,
    write: bool,
    distributions: bool,
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
    if distributions and not write:
        raise UseError("--distributions writes", "add --destroy-data, on a device you can lose")
    base = read_profile(like)
    if out is not None and (out.suffix != ".toml" or out.exists()):
        raise UseError(f"{out} exists, or is no .toml file", "name a new file that ends in .toml")
    with Probe(device, write=write, effort=Effort(seconds)) as probe:
        measured = probe.reads() | (probe.writes() if write else {})
        size_bytes = probe.size_bytes
    rows = []
    if distributions:
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
            names = ", ".join(f"p{percentile:g}" for percentile in PERCENTILES)
            print(f"  the columns are {names} and the longest; –: too few operations (--seconds)")
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


@command()
@argument("name", metavar="NAME", help="Profile with a [calibration].")
@flag("--write", "Write the fitted value into the profile.")
@common.cluster
@common.json()
def calibrate(name: str, write: bool, cluster: str, as_json: bool) -> int:
    """Fit a profile's one marked parameter to its one anchor.

    The profile's [calibration] names the parameter, its range, and the anchor: a case and its
    published throughput. No other number is fitted; all others are predictions. Each step runs a
    case in a guest and caches it, so a second call answers at once.

    \b
    Examples:
      joj device calibrate emmc-galaxy-s3
      joj device calibrate emmc-galaxy-s3 --write

    Exit code 1 if no value in the range meets the anchor.
    """
    profile = read_profile(name)
    result = fit_to_anchor(profile, anchor_throughput(profile, cluster))
    if write and result.is_met:
        write_value(profile, result.value)
    if as_json:
        print(json_text(result.record()))
    else:
        for step in result.steps:
            print(f"{result.parameter} = {step.value:>12,}  {step.throughput_tps:8.2f} tps")
        wanted = f"{text.digits(result.wanted_tps)} tps of {result.source}"
        if result.is_met:
            print(f"{result.parameter} = {result.value} meets {wanted}")
        else:
            print(f"no {result.parameter} in the range meets {wanted}")
    return FINE if result.is_met else EXPECTATION_FAILED


@command()
@argument("name", metavar="NAME", help="Name in devices/, or path of a profile.")
@option("--experiment", "EXPERIMENT", "The cases whose figures are looked at.", default="headlines")
@option("--figure", "TEXT", "The figure: joj list figures names them.", default="throughput_tps")
@common.settings
@option("--key", "KEY", "Try this number alone; may be repeated.", name="keys", multiple=True)
@option("--out", "DIR", "Run folder; default: runs/sensitivity-NAME.", PATH)
@option("--page", "DIR", "Where the page goes; default: into the run folder.", PATH)
@common.jobs
@common.timeout
@common.cluster
@common.json()
@common.lab_options
def sensitivity(
    name: str,
    experiment: str,
    figure: str,
    settings: tuple[str, ...],
    keys: tuple[str, ...],
    out: Path | None,
    page: Path | None,
    options: Options,
    as_json: bool,
) -> int:
    """Show how much each assumption of a device moves each figure.

    Every number of the profile whose source is an assumption, and the fitted one, is set to half
    and to double, or to the ends of the range that the profile's [ranges] states; one number at a
    time. The page says of all numbers whether they were measured, printed or assumed, and how much
    those move the figures. Cases are cached.

    \b
    Examples:
      joj device sensitivity emmc-galaxy-s3
      joj device sensitivity ufs-3.1 --experiment first-look --set regime=steady
      joj device sensitivity emmc-5.1 --key drain_delay_ns --key program_ns
      joj device sensitivity ./my-card.toml --figure latency_ns_p99 --json

    Exit code 3 if a case failed.
    """
    refuse_unknown(figure, FIGURES, f"no figure {figure!r}", "joj list figures names them")
    profile = read_profile(name)
    tried = numbers(profile)
    known = [row.key for row in tried]
    for key in keys:
        remedy = f"its numbers: {', '.join(known)}"
        refuse_unknown(key, known, f"{profile.name} has no number {key!r}", remedy)
    tried = [row for row in tried if not keys or row.key in keys]
    choice = read(find(experiment), [f"device={name}", *(settings or ())])
    cases = vary_numbers(choice, name, tried)
    if not cases.cases:
        raise UseError(f"no case of {experiment} has device = {name}", "name another --experiment")
    campaign = begin_campaign(plan(cases), options)
    folder = out or common.free_folder(Path("runs") / f"sensitivity-{profile.name}")
    try:
        title = f"What hangs on the numbers of {profile.name}?"
        run = run_with_progress(campaign, folder, title)
    except KeyboardInterrupt as error:
        raise SignalReceived(
            error, f"what was finished is kept in {folder}", "run it again to go on"
        ) from None
    found = read_sensitivity(run, choice, name, tried, figure)
    words = ["joj", "device", "sensitivity", name]
    words += ["--experiment", experiment] if experiment != "headlines" else []
    words += ["--figure", figure] if figure != "throughput_tps" else []
    words += [word for setting in settings or () for word in ("--set", setting)]
    words += [word for key in keys or () for word in ("--key", key)]
    written = write_page(found, profile, page or folder, shlex.join(words))
    if as_json:
        print(json_text(msgspec.to_builtins(found)))
    else:
        print_sensitivity(found)
        print(f"\nrun     {folder}\npage    {written[0]}")
    failed = any(case.status == "failed" for case in run.cases)
    return MACHINE_CANNOT if failed else FINE
