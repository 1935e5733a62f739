"""joj device sensitivity: how much the numbers of a device that may be wrong move what is found."""

from __future__ import annotations

import shlex
from pathlib import Path

from jojlab.analysis.figures.figure import FIGURES
from jojlab.campaign.execute import execute
from jojlab.campaign.sensitivity import compared, varied
from jojlab.command_line.group import argument, command, option
from jojlab.command_line.images import told_images
from jojlab.command_line.options import (
    PATH,
    cluster_option,
    jobs_option,
    json_option,
    set_option,
    timeout_option,
)
from jojlab.command_line.out_folder import free_folder
from jojlab.device.profile import read_profile
from jojlab.device.ranges import numbers
from jojlab.experiment.plan import plan
from jojlab.experiment.read import find, read
from jojlab.foundation.cache import Cache
from jojlab.foundation.errors import FINE, MACHINE_CANNOT, Signalled, UseError, signal_of
from jojlab.foundation.nearest import nearest
from jojlab.foundation.printable import json_text
from jojlab.lab.lab import Lab
from jojlab.lab.options import Options
from jojlab.report.page.assumptions import write_page
from jojlab.report.terminal.progress import shown
from jojlab.report.terminal.sensitivity import print_sensitivity


@command()
@argument("name", metavar="NAME", help="Name in devices/, or path of a profile.")
@option(
    "--experiment",
    metavar="EXPERIMENT",
    default="headlines",
    help="The cases whose figures are looked at.",
)
@option("--figure", default="throughput_tps", help="The figure: joj list figures names them.")
@set_option
@option(
    "--key", "keys", metavar="KEY", multiple=True, help="Try this number alone; may be repeated."
)
@option("--out", metavar="DIR", type=PATH, help="Run folder; default: runs/sensitivity-NAME.")
@option(
    "--page", metavar="DIR", type=PATH, help="Where the page goes; default: into the run folder."
)
@jobs_option
@timeout_option
@cluster_option
@json_option()
def sensitivity(
    name: str,
    experiment: str,
    figure: str,
    settings: tuple[str, ...],
    keys: tuple[str, ...],
    out: Path | None,
    page: Path | None,
    jobs: int,
    timeout: float,
    cluster: str,
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
    if figure not in FIGURES:
        raise UseError(
            f"no figure {figure!r}{nearest(figure, FIGURES)}", "joj list figures names them"
        )
    profile = read_profile(name)
    tried = numbers(profile)
    if unknown := [key for key in keys or () if key not in {row.key for row in tried}]:
        known = [row.key for row in tried]
        raise UseError(
            f"{profile.name} has no number {unknown[0]!r}{nearest(unknown[0], known)}",
            f"its numbers: {', '.join(known)}",
        )
    tried = [row for row in tried if not keys or row.key in keys]
    asked = read(find(experiment), [f"device={name}", *(settings or ())])
    cases = varied(asked, name, tried)
    if not cases.cases:
        raise UseError(f"no case of {experiment} has device = {name}", "name another --experiment")
    planned = plan(cases)
    cache = Cache.default()
    lab, images = (
        Lab(cache, Options(jobs=jobs, timeout_s=timeout, cluster=cluster)),
        told_images(planned, cache),
    )
    folder = out or free_folder(Path("runs") / f"sensitivity-{profile.name}")
    steps = sum(not case.skip for case in cases.cases) * len(cases.seeds)
    try:
        with shown(f"What hangs on the numbers of {profile.name}?", steps) as watcher:
            run = execute(planned, images, lab, folder, watcher)
    except KeyboardInterrupt as error:
        raise Signalled(
            signal_of(error), f"what was finished is kept in {folder}", "run it again to go on"
        ) from None
    found = compared(run, asked, name, tried, figure)
    words = ["joj", "device", "sensitivity", name]
    words += ["--experiment", experiment] if experiment != "headlines" else []
    words += ["--figure", figure] if figure != "throughput_tps" else []
    words += [word for setting in settings or () for word in ("--set", setting)]
    words += [word for key in keys or () for word in ("--key", key)]
    written = write_page(found, profile, page or folder, shlex.join(words))
    if as_json:
        print(json_text(found.record()))
    else:
        print_sensitivity(found)
        print(f"\nrun     {folder}\npage    {written[0]}")
    failed = any(case.status == "failed" for case in run.cases)
    return MACHINE_CANNOT if failed else FINE
