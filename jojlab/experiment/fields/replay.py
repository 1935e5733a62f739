"""The fields of the workload that replays recorded system calls."""

from __future__ import annotations

from jojlab.experiment.fields.field import Field

REPLAYS = ("replay",)

REPLAY_FIELDS: tuple[Field, ...] = (
    Field(
        "recording",
        "recording to replay: a folder that joj record or joj import wrote, beneath the folder of "
        "the experiment file, or on the command line any; its contents are part of the case",
        "",
        workloads=REPLAYS,
        is_folder=True,
    ),
    Field(
        "script",
        "in place of a recording: recorded system calls in the format of MobiGen, a file",
        "",
        workloads=REPLAYS,
        is_file=True,
    ),
    Field(
        "recorded_root",
        "of a recording: the recorded directory that becomes the root of the filesystem; calls on "
        "what is not below it, such as a program's libraries, are counted and not made",
        "/",
        workloads=REPLAYS,
    ),
    Field(
        "timing",
        "when calls are made: at their recorded times, or as soon as those that they depend on are "
        "over (none)",
        "recorded",
        ("recorded", "none"),
        workloads=REPLAYS,
    ),
    Field(
        "timing_percent",
        "time between calls, of what was recorded: 50 is twice as fast",
        100,
        lowest=1,
        highest=100_000,
        workloads=REPLAYS,
    ),
)
