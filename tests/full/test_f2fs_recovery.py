"""F2FS's recovery does not bear a power cut of its own: it overwrites the synced nodes that it
reads before its checkpoint is durable (docs/findings/f2fs-roll-forward.md). Second cuts must find
that, on a device that keeps 4 KiB whole.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from jojlab.campaign.campaign import Campaign
from jojlab.campaign.images import images_of
from jojlab.campaign.jobs import RunProgress
from jojlab.experiment.plan import plan
from jojlab.experiment.read import find, read
from jojlab.foundation.cache import Cache
from jojlab.lab.lab import Lab

STATES = 960


def judge_appends(cache: Cache, folder: Path, mount_options: str) -> dict[str, Any]:
    """Return what power cuts leave of synced appends.

    A sync of the directory makes a checkpoint, so that the node of the sync after it is the first
    that recovery reads.
    """
    lines = ['1 0 open "/data/file" O_RDWR|O_CREAT 5', '1 0 open "/data" O_RDONLY|O_DIRECTORY 6']
    for number in range(36):
        at_us = 1000 * number
        lines += [f"1 {at_us} fsync 6 0", f"1 {at_us} pwrite 5 {number * 4096} 4096"]
        lines += [f"1 {at_us} fdatasync 5 0"]
    (folder / "script").write_text("\n".join(lines) + "\n")
    (folder / "experiment.toml").write_text(
        'question = "What of a replay is there?"\n[case]\nworkload = "replay"\n'
        'recording = "script"\nfilesystem = "f2fs"\n"device.atomic_slots" = 1\n'
        f'mount_options = "{mount_options}"\n'
    )
    planned = plan(read(find(str(folder / "experiment.toml")), ()))
    images = images_of(planned, cache)
    answers = Campaign(planned, images, Lab(cache)).power_cut_answers(STATES, RunProgress())
    [found] = [answer for _, answer in answers if answer]
    return dict(found)


def test_a_second_cut_undoes_a_sync(cache: Cache, tmp_path: Path) -> None:
    found = judge_appends(cache, tmp_path, "noatime")
    harmful = [one for one in found["states"] if one["outcome"] != "kept"]
    assert {(one["kind"], one["outcome"]) for one in harmful} == {("second", "lost")}, harmful


def test_recovery_with_two_logs_loses_nothing(cache: Cache, tmp_path: Path) -> None:
    found = judge_appends(cache, tmp_path, "noatime,active_logs=2")
    assert found["by_kind"]["second"]["kept"] > 10
    assert set(found["outcomes"]) == {"kept"}, found["outcomes"]


def test_a_second_cut_corrupts_a_database(cache: Cache) -> None:
    """In WAL, closed after two commits: the node of the second is the first that recovery reads, as
    the sync of the new WAL's directory made a checkpoint. Where it is undone, and what closing
    copied to the database is there, the WAL puts the first commit's pages over it.
    """
    settings = (
        "synchronous=full", "filesystem=f2fs", "device.atomic_slots=1", "journal_mode=wal",
        "regime=reopened", "burst_transactions=2", "sync_call=fdatasync", "initial_rows=300",
        "transactions=5", "seeds=5",
    )  # fmt: skip
    planned = plan(read(find("power-cut"), settings))
    answers = Campaign(planned, images_of(planned, cache), Lab(cache)).power_cut_answers(
        5 * 600, RunProgress()
    )
    states = [one for _, answer in answers if answer for one in answer["states"]]
    harmful = [one for one in states if one["outcome"] != "kept"]
    assert {one["kind"] for one in harmful} == {"second"}, harmful
    assert "corrupt" in {one["outcome"] for one in harmful}, harmful
