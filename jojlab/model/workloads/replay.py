"""The workload that replays recorded system calls."""

from __future__ import annotations

from jojlab.model.field import Field, FieldKind
from jojlab.model.hazards import Harm
from jojlab.model.workload import Workload

RANK = 3
REPLAY = "replay"


WORKLOADS = (
    Workload(name=REPLAY, harm=Harm.WRITES, needs="recording", is_foreign=True, judges_syncs=True),
)

FIELDS: tuple[Field, ...] = (
    Field(
        "recording",
        "recording to replay: a folder that joj record or joj import wrote, or a script in the "
        "format of MobiGen; beneath the folder of the experiment file, or on the command line "
        "anywhere; its contents are part of the case",
        "",
        kind=FieldKind.FILE_OR_FOLDER,
        group=REPLAY,
    ),
    Field(
        "recorded_root",
        "of a recording: the recorded directory that becomes the root of the filesystem; calls on "
        "what is not below it, such as a program's libraries, are counted and not made",
        "/",
        group=REPLAY,
    ),
    Field(
        "timing",
        "when calls are made: at their recorded times, or as soon as those that they depend on are "
        "over (none)",
        "recorded",
        ("recorded", "none"),
        group=REPLAY,
    ),
    Field(
        "timing_percent",
        "time between calls, of what was recorded: 50 is twice as fast",
        100,
        lowest=1,
        highest=100_000,
        group=REPLAY,
    ),
)
