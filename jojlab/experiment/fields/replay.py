"""The fields of the workloads that replay a recording."""

from __future__ import annotations

from jojlab.experiment.fields.field import Field

REPLAYS = ("replay-mobigen",)

REPLAY_FIELDS: tuple[Field, ...] = (
    Field(
        "script",
        "recorded system calls in the format of MobiGen: a path beneath the folder of the "
        "experiment file, or on the command line any path; its contents are part of the case",
        "",
        workloads=REPLAYS,
        is_file=True,
    ),
)
