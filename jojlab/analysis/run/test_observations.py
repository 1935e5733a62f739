"""Tests what manifests say of commits, and of where they were made."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from jojlab.analysis.rows.completeness import Completeness
from jojlab.analysis.run.summary import (
    Manifests,
    observation_of,
    place_of,
    safety_json,
    summarise,
    with_program,
)
from jojlab.model.hazards import Doubt, ModeCounts, Observation
from tests.captures import CaptureBuilder, run_of

WHOLE = Completeness()


def modes(**counts: int) -> dict[str, Any]:
    names = ("end_unsynced", "journal_exposed", "database_unsynced", "several_databases")
    return {"wal": {**dict.fromkeys(names, 0), "commits": 9, **counts}}


def test_the_commits_of_all_seeds_are_counted_together() -> None:
    one = {"databases": 1, "lost_calls": 0, "journal_modes": modes(end_unsynced=7)}
    other = {**one, "journal_modes": modes(end_unsynced=2, several_databases=1)}
    found = observation_of("a", Manifests(programs={"a": {1: one, 2: other}}), WHOLE)
    wal = ModeCounts(18, end_unsynced=9, several_databases=1)
    assert found == Observation(modes={"wal": wal}, found_databases=2)
    lost = observation_of("a", Manifests(programs={"a": {1: {**one, "lost_calls": 3}}}), WHOLE)
    assert lost.lost_calls


def test_an_older_captures_commits_are_not_known() -> None:
    assert (
        observation_of("a", Manifests(programs={"a": {1: {"databases": 1}}}), WHOLE).modes is None
    )
    assert observation_of("a", Manifests(), WHOLE) == Observation()


def test_a_replay_that_is_incomplete_has_not_shown_all() -> None:
    replays = {"a": {1: {"databases": 1, "journal_modes": modes()}}}
    assert not observation_of("a", Manifests(replays=replays), WHOLE).lost_calls
    left_out = Completeness(reasons=("3 calls of mremap left out",))
    assert observation_of("a", Manifests(replays=replays), left_out).lost_calls


def test_commits_of_a_program_join_what_is_known_before_it_runs() -> None:
    seen = {"databases": 1, "lost_calls": 0, "journal_modes": modes(end_unsynced=3)}
    found = with_program(Observation(databases=2), [seen])
    wal = ModeCounts(9, end_unsynced=3)
    assert found == Observation(databases=2, modes={"wal": wal}, found_databases=1)


def test_the_databases_of_scripts_are_those_of_the_connection_with_most() -> None:
    scripts = [
        {"attached": [], "journal_modes": ["wal"]},
        {"attached": [["b.db", "b"], ["c.db", "c"]], "journal_modes": ["delete", "wal"]},
    ]
    found = observation_of("a", Manifests(configurations={"a": {"scripts": scripts}}), WHOLE)
    assert found == Observation(databases=3, journal_modes=("delete", "wal"))


def test_a_run_in_a_directory_has_the_filesystem_of_its_mount() -> None:
    case = {"workload": "sqlite-insert", "journal_mode": "wal"}
    mount = {"filesystem": "ext4", "mount": "/dev/vda / ext4 rw,noatime,nobarrier"}
    assert place_of(case, mount) == {
        **case, "filesystem": "ext4", "mount_options": "rw,noatime,nobarrier"
    }  # fmt: skip
    assert place_of(case, {}) == case
    assert place_of({"filesystem": "xfs"}, mount) == {"filesystem": "xfs"}


def test_a_program_in_a_run_folder_is_judged_by_its_manifest(tmp_path: Path) -> None:
    case = {"workload": "program", "filesystem": "ext4", "mount_options": "noatime"}
    builder = CaptureBuilder(case, 1)
    counts = {"commits": 9, "checkpoints": 0, "rollbacks": 0, "syncs": 0, "bytes_after_last": 0}
    ended = {"exit_code": 0, "signal": None, "timed_out": False, "output": "", "output_bytes": 0}
    builder.more_manifest["program"] = {
        "command": ["app"], **ended, **counts, "databases": 1, "lost_calls": 0,
        "journal_modes": modes(end_unsynced=8),
    }  # fmt: skip
    (found,) = summarise(run_of(tmp_path / "run", builder)).cases
    said = safety_json(found)
    assert said["hazards"] == [
        {"kind": "lost-commits", "cause": "unsynced-frames", "value": "8 of 9 commits (WAL)"}
    ]
    assert said["unknown"] == []
    del builder.more_manifest["program"]["journal_modes"]
    (older,) = summarise(run_of(tmp_path / "older", builder)).cases
    assert [each["doubt"] for each in safety_json(older)["unknown"]] == [Doubt.NOT_SEEN]
