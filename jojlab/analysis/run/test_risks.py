import pytest

from jojlab.analysis.run.risks import risks
from jojlab.experiment.cases import complete


@pytest.mark.parametrize(
    ("settings", "word"),
    [
        ({"journal_mode": "truncate"}, ""),
        ({"journal_mode": "wal"}, ""),
        ({"journal_mode": "delete"}, "just after a commit"),
        ({"journal_mode": "delete", "synchronous": "extra"}, ""),
        ({"journal_mode": "off"}, "corrupt"),
        ({"journal_mode": "memory"}, "corrupt"),
        ({"journal_mode": "off", "filesystem": "f2fs", "batch_atomic_write": "on"}, "corrupt"),
        ({"journal_mode": "memory", "filesystem": "f2fs", "batch_atomic_write": "on"}, ""),
        ({"journal_mode": "wal", "synchronous": "normal"}, "last commits, and no more"),
        ({"journal_mode": "truncate", "synchronous": "normal"}, "may corrupt"),
        ({"synchronous": "off"}, "lose commits and corrupt"),
        ({"mount_options": "noatime,nobarrier"}, "no flush"),
        ({"mount_options": "noatime,data=writeback"}, "old bytes"),
        ({"journal_mode": "wal", "databases": 3}, "some of its databases only"),
        ({"workload": "file-write"}, ""),
        ({"workload": "file-write", "sync_mode": "o_direct"}, "still be in a cache"),
        ({"workload": "file-write", "sync_every": 5}, "one sync for 5"),
        ({"workload": "file-metadata"}, "no sync of the directory"),
        ({"workload": "file-write", "filesystem": "nilfs2", "sync_mode": "fsync"}, ""),
        (
            {"workload": "file-write", "filesystem": "nilfs2", "sync_mode": "fsync", "threads": 3},
            "a sync beside another",
        ),
        ({"filesystem": "nilfs2", "journal_mode": "truncate", "connections": 2}, "a sync beside"),
        ({"workload": "file-metadata", "sync_file": "on"}, "no sync of the directory"),
        ({"workload": "file-metadata", "sync_directory": "on"}, ""),
    ],
)
def test_each_setting_says_what_it_puts_at_risk(settings: dict[str, str | int], word: str) -> None:
    found = risks(complete(settings))
    assert (found == ()) if not word else (len(found) == 1 and word in found[0])
