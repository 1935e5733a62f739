"""joj repro: the disks of one state that a power cut left, before anything has recovered them."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from jojlab.campaign.state_image import WORST, FoundState, find_state, write_images
from jojlab.command_line.group import argument, command, option
from jojlab.command_line.options import PATH, no_cache_option, timeout_option
from jojlab.foundation.errors import UseError
from jojlab.foundation.printable import printable
from jojlab.lab.options import Options
from jojlab.report.durability import smallest_words
from jojlab.trace.run_folder import RunFolder


@command()
@argument("run", type=PATH, help="Run folder with power cuts (--durability).")
@argument(
    "state",
    required=False,
    default=WORST,
    help="Hash of a state, or its beginning; default: worst.",
)
@option("--case", metavar="CASE_ID", default="", help="Look among the states of this case.")
@option("-o", "--out", metavar="DIR", type=PATH, help="New folder; default: repro-HASH.")
@no_cache_option
@timeout_option
def repro(
    run: Path, state: str, case: str, out: Path | None, no_cache: bool, timeout: float
) -> None:
    """Write the disks of a state that a power cut left, for a bug report.

    The case runs once more, and its disks are put into the state; nothing has mounted them. Beside
    the image, state.txt has what was found there, the smallest cut that does it, and the command
    that mounts the image. It takes no joj to look at them.

    \b
    Examples:
      joj repro runs/first-look
      joj repro runs/first-look 3f0a --case ext4-wal-fresh-fsync -o torn

    The guests' image and the files of the case must be those of the run.
    """
    folder = RunFolder.open(run)
    found = find_state(folder, state, case)
    place = out or Path(f"repro-{found.state.hash}")
    if place.exists():
        raise UseError(f"{place}: is already there", "name a new folder with --out")
    options = Options(use_cache=not no_cache, timeout_s=timeout)
    images = write_images(
        folder,
        found,
        place,
        options,
        lambda name: click.echo(f"making the image: {name}", err=True),
    )
    report = place / "state.txt"
    report.write_text(_report(found, images), encoding="utf-8")
    for path in (*images, report):
        print(printable(str(path)))
    print(_mount_command(found, images))


def _report(choice: FoundState, images: list[Path]) -> str:
    """Return what was found in the state, and how to see it again."""
    state, settings = choice.state, choice.entry.case
    smallest = smallest_words(state.smallest) if state.smallest else "not looked for"
    fields = ", ".join(f"{name}={value}" for name, value in settings.items() if value != "")
    lines = [
        f"state {state.hash}: {state.outcome}, after a power cut of kind {state.kind}",
        f"found: {state.message or 'nothing was said'}",
        f"the least that does it: {smallest}",
        f"filesystem's checker: {state.fsck}",
        f"kernel's log: {state.kernel_log or 'no errors'}",
        "",
        "The images hold what the cut left; nothing has mounted them since:",
        f"    {_mount_command(choice, images)}",
        "",
        f"case: {fields}, seed={choice.answer.seed}",
    ]
    return "\n".join(lines) + "\n"


def _mount_command(choice: FoundState, images: list[Path]) -> str:
    """Return the command that mounts the filesystem of the images; it recovers it."""
    settings = choice.entry.case
    options = ["loop", *filter(None, [str(settings.get("mount_options") or "")])]
    kind, image = str(settings["filesystem"]), shlex.quote(images[0].name)
    first = ""
    if len(images) > 1:
        first = f"journal=$(losetup -f --show {shlex.quote(images[1].name)}) && "
        options.append("journal_path=$journal" if kind == "ext4" else "logdev=$journal")
    return f"{first}sudo mount -t {kind} -o {','.join(options)} {image} /mnt"
