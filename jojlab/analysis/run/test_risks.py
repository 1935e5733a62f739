import pytest

from jojlab.analysis.run.risks import hazards, risks_more, unknowns, verifiable
from jojlab.experiment.cases import complete
from jojlab.model import hazards as causes
from jojlab.model.filesystems import f2fs
from jojlab.model.hazards import Doubt, Harm, Hazard, ModeCounts, Observation, Unknown
from jojlab.model.workloads import WORKLOADS, with_group

COMMITS, DATABASE, TRANSACTION = Harm.COMMITS, Harm.DATABASE, Harm.TRANSACTION
CRASH = {Harm.DATABASE, Harm.DATABASE_BY_CRASH}


@pytest.mark.parametrize(
    ("settings", "kinds"),
    [
        ({"journal_mode": "truncate"}, set()),
        ({"journal_mode": "wal"}, set()),
        ({"journal_mode": "delete"}, {COMMITS}),
        ({"journal_mode": "delete", "synchronous": "extra"}, set()),
        ({"journal_mode": "off"}, CRASH),
        ({"journal_mode": "memory"}, CRASH),
        (
            {"journal_mode": "off", "filesystem": "f2fs", "batch_atomic_write": "on"},
            CRASH | {COMMITS},
        ),
        (
            {"journal_mode": "memory", "filesystem": "f2fs", "batch_atomic_write": "on"},
            {COMMITS, DATABASE},
        ),
        ({"journal_mode": "delete", "vfs": "redo"}, set()),
        ({"journal_mode": "wal", "synchronous": "normal"}, {COMMITS}),
        ({"journal_mode": "truncate", "synchronous": "normal"}, {DATABASE}),
        ({"synchronous": "off"}, {COMMITS, DATABASE}),
        ({"mount_options": "noatime,nobarrier"}, {COMMITS, DATABASE, Harm.FILESYSTEM}),
        ({"mount_options": "noatime,data=writeback"}, {Harm.STALE_DATA}),
        ({"mkfs_options": "-b 4096 -O bigalloc,^has_journal"}, {DATABASE, Harm.FILESYSTEM}),
        ({"mkfs_options": "-O ^has_journal,has_journal"}, set()),
        ({"workload": "file-write", "mkfs_options": "-O ^has_journal"}, {Harm.FILESYSTEM}),
        ({"journal_mode": "wal", "databases": 3}, {TRANSACTION}),
        (
            {"journal_mode": "wal", "synchronous": "normal", "databases": 2},
            {COMMITS, TRANSACTION},
        ),
        ({"journal_mode": "truncate", "databases": 3}, set()),
        ({"journal_mode": "memory", "databases": 3}, CRASH | {TRANSACTION}),
        ({"synchronous": "off", "databases": 3}, {COMMITS, DATABASE, TRANSACTION}),
        (
            {"journal_mode": "wal", "databases": 3, "attached_settings": "sqlite"},
            {COMMITS, TRANSACTION},
        ),
        ({"journal_mode": "wal", "dropped_sync": "wal"}, {COMMITS, DATABASE}),
        ({"journal_mode": "wal", "sync_call": "fdatasync-of-size"}, {COMMITS, DATABASE}),
        ({"workload": "file-write"}, set()),
        ({"workload": "file-write", "sync_mode": "o_direct"}, {Harm.WRITES}),
        ({"workload": "file-write", "sync_every": 5}, {Harm.WRITES}),
        ({"workload": "file-metadata"}, {Harm.NAMES}),
        (
            {"workload": "file-write", "filesystem": "nilfs2", "sync_mode": "fsync"},
            {Harm.FILESYSTEM},
        ),
        (
            {"workload": "file-write", "filesystem": "nilfs2", "sync_mode": "fsync", "threads": 3},
            {Harm.WRITES, Harm.FILESYSTEM},
        ),
        (
            {"filesystem": "nilfs2", "journal_mode": "truncate", "connections": 2},
            {COMMITS, Harm.FILESYSTEM},
        ),
        ({"filesystem": "nilfs2", "workload": "file-read"}, set()),
        (
            {"filesystem": "nilfs2", "workload": "file-metadata", "metadata_operation": "stat"},
            set(),
        ),
        (
            {"journal_mode": "truncate", "filesystem": "ext4", "journal_device": "emmc-5.1"},
            {COMMITS, DATABASE},
        ),
        ({"journal_mode": "truncate", "filesystem": "xfs", "journal_device": "emmc-5.1"}, set()),
        ({"filesystem": "f2fs", "journal_mode": "wal"}, {COMMITS, DATABASE}),
        ({"filesystem": "f2fs", "mount_options": "noatime,active_logs=2"}, set()),
        ({"filesystem": "f2fs", "workload": "file-write", "sync_mode": "fsync"}, {Harm.WRITES}),
        ({"filesystem": "f2fs", "workload": "file-read"}, set()),
        ({"filesystem": "f2fs", "workload": "file-metadata", "sync_directory": "on"}, set()),
        ({"workload": "file-metadata", "sync_file": "on"}, {Harm.NAMES}),
        ({"workload": "file-metadata", "sync_directory": "on"}, set()),
        (
            {"workload": "file-write", "mount_options": "nobarrier"},
            {Harm.WRITES, Harm.FILESYSTEM},
        ),
    ],
)
def test_each_setting_says_what_it_puts_at_risk(
    settings: dict[str, str | int], kinds: set[Harm]
) -> None:
    assert {each.kind for each in hazards(complete(settings))} == kinds


def test_a_batch_that_was_committed_may_be_lost() -> None:
    def has_batch_risk(**settings: str) -> bool:
        batch = {"filesystem": "f2fs", "batch_atomic_write": "on"}
        found = hazards(complete({**batch, **settings}))
        return causes.BATCH_COMMIT in {each.cause for each in found}

    assert has_batch_risk()
    assert has_batch_risk(journal_mode="memory")
    assert has_batch_risk(sync_call="fdatasync")
    assert not has_batch_risk(journal_mode="wal")
    assert not has_batch_risk(journal_mode="off")
    assert not has_batch_risk(mount_options="active_logs=2")
    assert not has_batch_risk(batch_atomic_write="off")
    assert not has_batch_risk(synchronous="off")


def test_journal_modes_of_a_script_are_each_at_risk() -> None:
    def kinds(mode: str, *changed: str, databases: int = 1) -> set[Harm]:
        case = complete({"workload": "sql-recorded", "journal_mode": mode, "synchronous": "full"})
        seen = Observation(databases=databases, journal_modes=changed)
        return {each.kind for each in hazards(case, observation=seen)}

    assert kinds("truncate", "persist") == kinds("wal", "truncate") == set()
    assert kinds("truncate", "delete") == {COMMITS}
    assert kinds("truncate", "wal", databases=2) == {TRANSACTION}


def test_a_stated_risk_joins_those_of_the_settings() -> None:
    case = complete({"journal_mode": "wal", "synchronous": "normal"})
    found = hazards(case, "it may burn")
    assert [(each.kind, each.value) for each in found] == [
        (COMMITS, ""),
        (Harm.STATED, "it may burn"),
    ]


def test_risks_are_compared_by_harm_and_not_by_what_makes_them_possible() -> None:
    safe = hazards(complete({"journal_mode": "wal"}))
    normal = hazards(complete({"journal_mode": "wal", "synchronous": "normal"}))
    off = hazards(complete({"journal_mode": "wal", "synchronous": "off"}))
    assert risks_more(normal, others=safe)
    assert not risks_more(safe, others=normal)
    assert risks_more(off, others=normal)
    assert not risks_more(normal, others=off)
    assert risks_more(hazards({}, "a"), others=hazards({}, "b"))


@pytest.mark.parametrize("workload", WORKLOADS)
def test_no_workload_is_said_to_risk_what_it_does_not_have(workload: str) -> None:
    """Every workload that there is: one that a rule forgets is not known, and never wrong."""
    case = complete({"workload": workload, "mount_options": "nobarrier"})
    kinds = {each.kind for each in hazards(case)}
    assert Harm.FILESYSTEM in kinds
    assert (kinds >= {COMMITS, DATABASE}) == (workload in with_group("sqlite"))
    assert bool(kinds & {COMMITS, DATABASE}) == (workload in with_group("sqlite"))
    doubts = {each.doubt for each in unknowns(case)}
    assert doubts == ({Doubt.NOT_SEEN} if workload in ("program", "replay") else set())


def test_passes_over_a_file_lose_writes_alone() -> None:
    found = hazards(complete({"workload": "file-passes", "mount_options": "nobarrier"}))
    assert {each.kind for each in found} == {Harm.WRITES, Harm.FILESYSTEM}
    on_f2fs = hazards(complete({"workload": "file-passes", "filesystem": "f2fs"}))
    assert on_f2fs == (Hazard(Harm.WRITES, f2fs.ROLL_FORWARD),)


def test_risks_of_unknown_workloads_and_filesystems_are_not_known() -> None:
    assert unknowns({}) == (Unknown(Doubt.NO_SETTINGS),)
    case = complete({"workload": "file-write"})
    assert unknowns({**case, "workload": "file-append"}) == (Unknown(Doubt.NO_RULE, "file-append"),)
    assert unknowns({**case, "filesystem": "tmpfs"}) == (Unknown(Doubt.FILESYSTEM, "tmpfs"),)
    del case["filesystem"]
    assert unknowns(case) == (Unknown(Doubt.FILESYSTEM),)


def observation_of(databases: int = 1, **modes: ModeCounts) -> Observation:
    return Observation(modes=modes, found_databases=databases)


GUARDED = ModeCounts(commits=9)


@pytest.mark.parametrize("workload", ["program", "replay"])
@pytest.mark.parametrize(
    ("observation", "kinds", "doubts"),
    [
        (Observation(), set(), {Doubt.NOT_SEEN}),
        (observation_of(databases=0), set(), {Doubt.NO_SQLITE}),
        (observation_of(), set(), {Doubt.NO_COMMIT}),
        (observation_of(wal=GUARDED), set(), set()),
        (observation_of(truncate=GUARDED), set(), set()),
        (observation_of(wal=ModeCounts(68, end_unsynced=62)), {COMMITS}, set()),
        (observation_of(wal=ModeCounts(68, several_databases=24)), {TRANSACTION}, set()),
        (observation_of(delete=ModeCounts(3, end_unsynced=3)), {COMMITS}, set()),
        (observation_of(persist=ModeCounts(3, journal_exposed=1)), {DATABASE}, set()),
        (observation_of(truncate=ModeCounts(3, database_unsynced=1)), {COMMITS, DATABASE}, set()),
        (observation_of(none=GUARDED), CRASH, set()),
        (Observation(modes={"wal": GUARDED}, found_databases=1, lost_calls=True), set(),
         {Doubt.LOST_CALLS}),
    ],
)  # fmt: skip
def test_observed_commits_decide_a_programs_risks(
    workload: str, observation: Observation, kinds: set[Harm], doubts: set[Doubt]
) -> None:
    case = complete({"workload": workload})
    assert {each.kind for each in hazards(case, observation=observation)} == kinds
    assert {each.doubt for each in unknowns(case, observation)} == doubts


def test_a_filesystem_risks_what_a_program_has() -> None:
    case = complete({"workload": "program", "filesystem": "f2fs"})
    assert {each.kind for each in hazards(case, observation=observation_of(wal=GUARDED))} == {
        COMMITS,
        DATABASE,
    }
    assert {each.kind for each in hazards(case)} == {Harm.WRITES}


def test_power_cuts_of_a_replay_show_nothing_of_its_commits() -> None:
    case = complete({"workload": "replay", "filesystem": "f2fs"})
    found = hazards(case, observation=observation_of(wal=ModeCounts(68, end_unsynced=62)))
    assert {each.kind for each in found} == {COMMITS, Harm.WRITES}
    assert {each.kind for each in verifiable(case, found)} == {Harm.WRITES}


@pytest.mark.parametrize(
    ("settings", "kinds"),
    [
        ({"journal_mode": "wal"}, {TRANSACTION}),
        ({"journal_mode": "truncate"}, set()),
        ({"synchronous": "off"}, {COMMITS, DATABASE, TRANSACTION}),
    ],
)
def test_databases_that_scripts_attach_are_several(
    settings: dict[str, str], kinds: set[Harm]
) -> None:
    for workload in ("sql", "sql-recorded"):
        case = complete({"workload": workload, **settings})
        found = hazards(case, observation=Observation(databases=2))
        assert {each.kind for each in found} == kinds
        assert TRANSACTION not in {each.kind for each in hazards(case)}
