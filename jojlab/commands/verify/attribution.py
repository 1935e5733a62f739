"""joj verify attribution: checks whose bytes are, as told, against what they say themselves."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

from jojlab.errors import EXPECTATION_FAILED, FINE, INCOMPLETE, MACHINE_CANNOT

if TYPE_CHECKING:
    from jojlab.verify.verdict import Verdict


def attribution(
    filesystem: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="ext4, xfs, btrfs, nilfs2, f2fs; several; default all."),
    ] = None,
    host: Annotated[
        bool, typer.Option("--host", help="On this kernel and loop devices; needs root.")
    ] = False,
    device: Annotated[
        str, typer.Option(metavar="NAME", help="In a guest on qemu-nvme, qemu-scsi or qemu-sd.")
    ] = "",
    partition: Annotated[
        bool, typer.Option("--partition", help="In a guest: on a partition of the disk.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Write known bytes in every way there is, and check whose the tracer says they are.

    Every sector written says of itself which file and offset it is of. After the run the device is
    read, sector by sector, and compared with the tables; on this kernel the addresses are checked
    against debugfs, xfs_db and FIEMAP as well, where they are installed.

    \b
    Examples:
      joj verify attribution
      joj verify attribution --filesystem f2fs
      joj verify attribution --filesystem ext4 --device qemu-nvme --partition
      joj verify attribution --host --json

    Exit code 1 when a byte is of the wrong file, 4 when the owner of one is unknown.
    """
    from jojlab.device.emulated import EMULATED
    from jojlab.errors import UseError
    from jojlab.experiment.fields import nearest
    from jojlab.guest.verification import FILESYSTEMS, verify_in_guest
    from jojlab.verify.host import verify_on_host
    from jojlab.verify.verdict import Verdict

    chosen = list(dict.fromkeys(filesystem or FILESYSTEMS))
    for name in chosen:
        if name not in FILESYSTEMS:
            raise UseError(
                f"--filesystem {name}: no such filesystem", f"one of {', '.join(FILESYSTEMS)}"
            )
    if device and device not in EMULATED:
        raise UseError(
            f"--device {device}: no emulated device{nearest(device, EMULATED)}",
            f"one of {', '.join(EMULATED)}; without it the modelled device is taken",
        )
    if host and (device or partition):
        raise UseError("--host is on loop devices", "drop --device and --partition")
    verdicts: list[Verdict] = []
    skipped: dict[str, str] = {}
    if host:
        for name in chosen:
            found = verify_on_host(name)
            if isinstance(found, str):
                skipped[name] = found
            else:
                verdicts.append(found)
    else:
        verdicts = [
            Verdict.of(name, verify_in_guest(name, device, partition=partition)) for name in chosen
        ]
    if as_json:
        rows = [{**verdict.row(), "reasons": verdict.reasons} for verdict in verdicts]
        print(json.dumps({"filesystems": rows, "skipped": skipped}, indent=1, ensure_ascii=False))
    else:
        _print(verdicts, skipped)
    raise typer.Exit(_exit_code(verdicts))


def _exit_code(verdicts: list[Verdict]) -> int:
    if not verdicts:
        return MACHINE_CANNOT
    if any(verdict.wrong for verdict in verdicts):
        return EXPECTATION_FAILED
    return INCOMPLETE if any(verdict.incomplete for verdict in verdicts) else FINE


def _print(verdicts: list[Verdict], skipped: dict[str, str]) -> None:
    from jojlab.report.terminal import print_rows, terminal
    from jojlab.verify.verdict import COLUMNS

    rows = [[verdict.row()[column] for column in COLUMNS] for verdict in verdicts]
    print_rows(terminal(), list(COLUMNS), rows)
    for verdict in verdicts:
        if verdict.sources:
            print(f"{verdict.filesystem}: addresses by {', '.join(verdict.sources)}")
        for line in (*verdict.complaints, *verdict.reasons):
            print(f"{verdict.filesystem}: {line}")
    for name, reason in skipped.items():
        print(f"{name}: skipped: {reason}")
