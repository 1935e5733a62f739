"""The workload that replays recorded system calls."""

from __future__ import annotations

from jojlab.model.field import Field, FieldKind, Settings
from jojlab.model.hazards import Harm
from jojlab.model.workload import Workload

RANK = 3
REPLAY = "replay"


def _refusal(settings: Settings) -> str:
    if bool(settings["recording"]) == bool(settings["script"]):
        return "replay needs recording = FOLDER or script = FILE, and not both"
    return ""


WORKLOADS = (
    Workload(name=REPLAY, harm=Harm.WRITES, is_foreign=True, judges_syncs=True, refusal=_refusal),
)

FIELDS: tuple[Field, ...] = (
    Field(
        "recording",
        "recording to replay: a folder that joj record or joj import wrote, beneath the folder of "
        "the experiment file, or on the command line any; its contents are part of the case",
        "",
        kind=FieldKind.FOLDER,
        group=REPLAY,
    ),
    Field(
        "script",
        "in place of a recording: recorded system calls in the format of MobiGen, a file",
        "",
        kind=FieldKind.FILE,
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
