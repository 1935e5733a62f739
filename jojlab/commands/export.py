"""joj export and joj repro: a capture in another tool's format, and the disks after a power cut."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from jojlab.campaign.state_image import WORST, FoundState, find_state, write_images
from jojlab.command_line import options as common
from jojlab.command_line.group import PATH, argument, command, option
from jojlab.foundation.errors import FINE, INCOMPLETE, UseError, refuse_unknown, whole_file
from jojlab.foundation.printable import plural, printable
from jojlab.lab.job import Options
from jojlab.model.filesystems import filesystem_of
from jojlab.recording import mobigen, sql_export
from jojlab.recording.folder import Recording
from jojlab.report.durability import boot_words, smallest_words
from jojlab.trace.exports import FORMATS, chosen_capture
from jojlab.trace.exports import export as write
from jojlab.trace.run_folder import RunFolder

_READABLE = "A slot that could not be read is in the images as it was before that write."


@command()
@argument("run", type=PATH, help="Run folder, or a recording's.")
@option("--format", "FORMAT", "perfetto, iolog, mobigen or sql.", name="format_name", required=True)
@option("--case", "CASE_ID", "Case; optional if the run has only one.", default="")
@option("--seed", "N", "Seed; default: the first.", int)
@option("-o, --out", "FILE", "File, or folder; default: in a run, beside a recording.", PATH)
def export(run: Path, format_name: str, case: str, seed: int | None, out: Path | None) -> int:
    """Write a capture or a recording in the format of another tool.

    A capture becomes a Perfetto trace or fio's I/O log; a recording, a script of MobiGen's, or
    scripts of SQL.

    perfetto: one track per place in a device's queue, and per thread its transactions and calls
    that waited. Arrows link a call to its requests. Open the file in Perfetto's viewer.

    iolog: fio replays it on another device, with the timing of the capture. What fio has no word
    for, such as an erase of raw NAND, is left out and counted.

    mobigen: of a recording (joj record), a script that mobibench -g replays. Calls that such a
    script cannot express are counted.

    sql: of a recording with --sql, a folder of scripts, one a connection, with bound values and
    think times, and the settings that SQLite had. The workload sql-recorded plays them, in the
    recorded order of commits. What a script does not take is counted.

    \b
    Examples:
      joj export runs/first-look --case ext4-wal-fresh-fsync --format perfetto -o wal.perfetto-trace
      joj export runs/sda --format iolog -o sda.iolog
      fio --name=again --read_iolog=sda.iolog --replay_redirect=/dev/DISK   # overwrites DISK
      joj export runs/recording --format mobigen -o app.mobigen
      joj export runs/recording --format sql -o app-sql

    Exit code 4 if the capture is incomplete: then the file is incomplete too. So are scripts of a
    recording that began with a database which was there, and such as lack statements that changed
    rows.
    """
    if out is not None and format_name != "sql" and not out.parent.is_dir():
        raise UseError(f"--out {out}: {out.parent} is no directory", "make it, or name another")
    if format_name in ("mobigen", "sql") and (case or seed is not None):
        raise UseError(
            f"--format {format_name} is of a recording, which has no cases and no seeds",
            "leave out --case and --seed",
        )
    if format_name == "mobigen":
        return _export_calls(run, out)
    if format_name == "sql":
        return _export_statements(run, out)
    remedy = f"one of: {', '.join([*FORMATS, 'mobigen', 'sql'])}"
    refuse_unknown(format_name, FORMATS, f"--format {format_name!r} is unknown", remedy)
    capture = chosen_capture(RunFolder.open(run), case, seed)
    name = f"{capture.folder.parent.name}-{capture.folder.name}{FORMATS[format_name].SUFFIX}"
    path = out or run / name
    requests, left_out = write(capture, path, format_name)
    print(f"{plural(requests, 'request')}  {path}")
    for operation, count in left_out.items():
        words = f"{plural(count, 'request')} of {operation}"
        print(f"left out: {words}: {format_name} has no such operation")
    return INCOMPLETE if capture.is_incomplete else FINE


def _export_calls(folder: Path, out: Path | None) -> int:
    """Write a recording as MobiGen's script; return the exit code."""
    recording = Recording.open(folder)
    path = out or _sibling(folder, mobigen.SUFFIX)
    with whole_file(path, "name another file with -o") as stream:
        exported = mobigen.write(recording, stream)
    print(f"{plural(exported.lines - exported.opened_before, 'call')}  {path}")
    if exported.opened_before:
        print(f"open before, a line each: {plural(exported.opened_before, 'file')}")
    if carried := exported.carried.total():
        print(f"without a line, as dup and lseek: {plural(carried, 'call')}")
    return _print_left_out(recording, exported.left_out)


def _export_statements(folder: Path, out: Path | None) -> int:
    """Write a recording's statements as scripts; return the exit code."""
    recording = Recording.open(folder)
    path = out or _sibling(folder, "-sql")
    counts = sql_export.write(recording, path)
    print(f"{plural(counts.statements, 'statement')}  {path}")
    for line in counts.lines():
        print(printable(line))
    code = _print_left_out(recording, Counter())
    return code if counts.is_whole else INCOMPLETE


def _sibling(folder: Path, ending: str) -> Path:
    named = folder if folder.name not in ("", "..") else folder.resolve()
    return named.with_name(named.name + ending)


def _print_left_out(recording: Recording, left_out: Counter[str]) -> int:
    """Print what an export lacks, and what its recording lacked; return the exit code."""
    for what, count in left_out.most_common():
        print(f"left out: {count} {what}")
    for reason in recording.incomplete_reasons:
        print(f"incomplete: {reason}")
    return INCOMPLETE if recording.incomplete_reasons else FINE


@command()
@argument("run", type=PATH, help="Run folder with power cuts (--durability).")
@argument(
    "state",
    required=False,
    default=WORST,
    help="Hash of a state, or its beginning; default: worst.",
)
@option("--case", "CASE_ID", "Look among the states of this case.", default="")
@option("-o, --out", "DIR", "New folder; default: repro-HASH.", PATH)
@common.no_cache
@common.timeout
@common.lab_options
def repro(run: Path, state: str, case: str, out: Path | None, options: Options) -> None:
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
    images = write_images(
        folder,
        found,
        place,
        options,
        lambda name: click.echo(f"making the image: {name}", err=True),
    )
    report = place / "state.txt"
    report.write_text(_describe_state(found, images), encoding="utf-8")
    for path in (*images, report):
        print(printable(str(path)))
    print(mount_command(found.entry.case, images))


def _describe_state(choice: FoundState, images: list[Path]) -> str:
    """Return what was found in the state, and how to see it again."""
    state, settings = choice.state, choice.entry.case
    model = choice.answer.model
    smallest = smallest_words(state.smallest, model) if state.smallest else "not looked for"
    fields = ", ".join(f"{name}={value}" for name, value in settings.items() if value != "")
    lines = [
        f"state {state.hash}: {state.outcome}, after a power cut of kind {state.kind}",
        f"found: {state.message or 'nothing was said'}",
        f"the least that does it: {smallest}",
        f"filesystem's checker: {state.fsck}",
        f"kernel's log: {state.kernel_log or 'no errors'}",
        *([boot_words(state.at_boot)] if state.at_boot else []),
        *([_READABLE] if "cannot be read" in smallest else []),
        "",
        "The images hold what the cut left; nothing has mounted them since:",
        f"    {mount_command(choice.entry.case, images)}",
        "",
        f"case: {fields}, seed={choice.answer.seed}",
    ]
    return "\n".join(lines) + "\n"


def mount_command(settings: Mapping[str, Any], images: Sequence[Path]) -> str:
    """Return the command that mounts the filesystem of the images; it recovers it."""
    options = ["loop", *filter(None, [str(settings.get("mount_options") or "")])]
    kind, image = str(settings["filesystem"]), shlex.quote(images[0].name)
    first = ""
    if len(images) > 1:
        first = f"journal=$(losetup -f --show {shlex.quote(images[1].name)}) && "
        external = filesystem_of(settings).external_journal
        assert external
        options.append(external.moved_option.replace("JOURNAL_DEVICE", "$journal"))
    return f"{first}sudo mount -t {kind} -o {','.join(options)} {image} /mnt"
