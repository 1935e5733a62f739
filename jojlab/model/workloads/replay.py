"""The workload that replays recorded system calls."""

from __future__ import annotations

from functools import partial

from jojlab.model.field import Field, FieldKind
from jojlab.model.hazards import Harm
from jojlab.model.workload import Workload

RANK = 3
REPLAY = "replay"


WORKLOADS = (
    Workload(
        name=REPLAY,
        harm=Harm.WRITES,
        needs="recording",
        is_foreign=True,
        judges_syncs=True,
        mobibench_flags=("-g",),
    ),
)

_replay_field = partial(Field, group=REPLAY)
FIELDS: tuple[Field, ...] = (
    _replay_field(
        "recording",
        "recording to replay: a folder that joj record or joj import wrote, or a script in the "
        "format of MobiGen; beneath the folder of the experiment file, or on the command line "
        "anywhere; its contents are part of the case",
        "",
        kind=FieldKind.FILE_OR_FOLDER,
    ),
    _replay_field(
        "recorded_root",
        "of a recording: the recorded directory that becomes the root of the filesystem; calls on "
        "what is not below it, such as a program's libraries, are counted and not made",
        "/",
    ),
    _replay_field(
        "timing",
        "when calls are made: at their recorded times, or as soon as those that they depend on are "
        "over (none)",
        "recorded",
        ("recorded", "none"),
    ),
    _replay_field(
        "timing_percent",
        "time between calls, of what was recorded: 50 is twice as fast",
        100,
        limits=(1, 100_000),
    ),
)
