//! Commits are found from calls as SQLite makes them in each journal mode; the guest's test counts
//! those of real programs.

use super::call::{Caller, Deed, FileCall, PathRoot};
use super::finder::{CommitFinder, find};
use super::unit_of_work::{DetectedTransaction, FoundTransactions, ModeCounts};
use crate::tracer::FileKey;

fn file(inode: u64) -> Option<FileKey> {
    Some(FileKey { filesystem: 1, inode, ..FileKey::default() })
}

const DB: u64 = 1;
const JOURNAL: u64 = 2;
const WAL: u64 = 3;
const SHM: u64 = 4;
const OTHER: u64 = 5;
const PENDING: u64 = 0x4000_0000;

fn find_in(deeds: &[(u64, Deed)]) -> FoundTransactions {
    find(&calls_of(deeds))
}

/// Opens and these calls one after another, 10 ns each.
fn calls_of(deeds: &[(u64, Deed)]) -> Vec<FileCall> {
    let opened = [
        (DB, "/app/a.db"),
        (JOURNAL, "/app/a.db-journal"),
        (WAL, "/app/a.db-wal"),
        (SHM, "/app/a.db-shm"),
        (OTHER, "/app/note"),
    ];
    let opens =
        opened.map(|(file, path)| (file, Deed::Open { path: path.into(), is_created: false }));
    let call = |(number, (inode, deed)): (i64, (u64, Deed))| FileCall {
        pid: 7,
        tid: 8,
        caller: Caller::default(),
        begin_ns: number * 10,
        end_ns: number * 10 + 9,
        file: file(inode),
        deed,
    };
    let deeds = opens.into_iter().chain(deeds.iter().cloned());
    (0..).zip(deeds).map(call).collect()
}

fn lock(offset_bytes: u64) -> Deed {
    Deed::Lock { is_unlock: false, offset_bytes, length_bytes: 1 }
}

fn unlock(offset_bytes: u64) -> Deed {
    let length_bytes = u64::from(offset_bytes != 0);
    Deed::Lock { is_unlock: true, offset_bytes, length_bytes }
}

fn write(offset_bytes: u64, length_bytes: u64, head: &[u8]) -> Deed {
    Deed::Write { offset_bytes, length_bytes, head: head.to_vec(), is_synced: false }
}

fn sync() -> Deed {
    Deed::Sync { name: "fdatasync", is_directory: false }
}

fn unlink() -> Deed {
    Deed::Unlink { path: "/app/a.db-journal".into() }
}

/// Up to the end of the journal; the database is written 4 calls after the first lock.
fn rollback_journal(end: &[(u64, Deed)]) -> Vec<(u64, Deed)> {
    let mut deeds = vec![
        (DB, lock(PENDING)),
        (DB, Deed::Read),
        (JOURNAL, write(0, 512, &[0xd9; 32])),
        (JOURNAL, sync()),
        (DB, write(0, 4096, b"SQLite format 3\0")),
        (DB, sync()),
    ];
    deeds.extend(end.iter().cloned());
    deeds.push((DB, unlock(0)));
    deeds
}

#[test]
fn a_commit_ends_with_its_journal_and_what_belongs_to_that() {
    let zeroed = write(0, 28, &[0; 28]);
    for (end, syncs) in [
        (vec![(JOURNAL, unlink())], 2),
        (vec![(JOURNAL, Deed::Truncate { size_bytes: 0 }), (JOURNAL, sync())], 3),
        (vec![(JOURNAL, zeroed), (JOURNAL, sync())], 3),
    ] {
        let deeds = rollback_journal(&end);
        let totals = find_in(&[deeds.clone(), deeds].concat());
        assert_eq!((totals.commits, totals.rollbacks, totals.syncs), (2, 0, 0), "{end:?}");
        let (first, calls) = (&totals.rows[0], 7 + end.len() as i64);
        assert_eq!((first.begin_ns, first.commit_ns), (50, 80));
        assert_eq!((first.return_ns, first.sync_calls), (50 + calls * 10 - 1, syncs));
        assert_eq!(totals.rows[1].begin_ns, 50 + calls * 10);
    }
}

#[test]
fn a_commit_that_another_thread_seems_to_end_is_marked() {
    let deeds = [
        (DB, lock(PENDING)),
        (SHM, lock(120)),
        (WAL, write(0, 32, &[0x37; 32])),
        (WAL, write(32, 24, &[0, 0, 0, 1, 0, 0, 0, 5])),
        (WAL, write(56, 4096, &[])),
        (SHM, lock(123)),
        (WAL, sync()),
        (SHM, unlock(120)),
    ];
    for (tid, is_marked) in [(8, false), (9, true)] {
        let mut calls = calls_of(&deeds);
        calls.iter_mut().rev().nth(2).unwrap().tid = tid;
        let found = find(&calls);
        let [commit] = &found.by_database["/app/a.db"][..] else { panic!("{found:?}") };
        assert_eq!((commit.journal_mode, commit.is_ended_by_other), ("wal", is_marked));
    }
}

/// Return what a rollback journal's commit does, with a sync where `synced` has its letter: r of
/// its records, c of their count, d of the database, e of what ends it.
fn mode_counts(synced: &str, end: &(u64, Deed), sync_of_end: (u64, Deed)) -> ModeCounts {
    let mut deeds = vec![(DB, lock(PENDING)), (JOURNAL, write(0, 512, &[1; 32]))];
    let mut add = |letter: char, deed: (u64, Deed), sync: (u64, Deed)| {
        deeds.push(deed);
        deeds.extend(synced.contains(letter).then_some(sync));
    };
    add('r', (JOURNAL, write(512, 4096, &[2; 32])), (JOURNAL, sync()));
    add('c', (JOURNAL, write(0, 12, &[])), (JOURNAL, sync()));
    add('d', (DB, write(0, 4096, b"SQLite format 3\0")), (DB, sync()));
    add('e', end.clone(), sync_of_end);
    deeds.push((DB, unlock(0)));
    let modes = find_in(&deeds).modes;
    assert_eq!(modes.len(), 1, "{modes:?}");
    modes.into_values().next().unwrap()
}

#[test]
fn syncs_that_guard_a_rollback_commit_are_counted() {
    let directory = Deed::Sync { name: "fsync", is_directory: true };
    let ends = [
        ((JOURNAL, unlink()), (30, directory)),
        ((JOURNAL, Deed::Truncate { size_bytes: 0 }), (JOURNAL, sync())),
        ((JOURNAL, write(0, 28, &[0; 28])), (JOURNAL, sync())),
    ];
    for (end, sync_of_end) in ends {
        let counts = |synced| mode_counts(synced, &end, sync_of_end.clone());
        let whole = ModeCounts { commits: 1, ..ModeCounts::default() };
        assert_eq!(counts("rcde"), whole, "synchronous = EXTRA; FULL, but for DELETE: {end:?}");
        assert_eq!(counts("rcd"), ModeCounts { end_unsynced: 1, ..whole }, "DELETE with FULL");
        assert_eq!(counts("cde"), ModeCounts { journal_exposed: 1, ..whole }, "NORMAL");
        let off = ModeCounts { end_unsynced: 1, journal_exposed: 1, database_unsynced: 1, ..whole };
        assert_eq!(counts(""), off, "OFF");
    }
}

#[test]
fn a_wals_commit_without_a_sync_after_its_frame_and_one_over_two_wals_are_seen() {
    let mut head = [0; 24];
    head[7] = 1;
    let frame = |file| [(file, write(32, 24, &head)), (file, write(56, 4096, &[1; 32]))];
    let open_old = |path: &str| Deed::Open { path: path.into(), is_created: false };
    let mut deeds = vec![(20, open_old("/app/b.db")), (21, open_old("/app/b.db-wal"))];
    deeds.extend([(22, open_old("/app/b.db-shm")), (DB, lock(PENDING)), (20, lock(PENDING))]);
    // The sync of a new WAL's header guards no commit.
    let both = [(SHM, lock(120)), (22, lock(120)), (WAL, write(0, 32, &[0; 32])), (WAL, sync())];
    deeds.extend(both);
    deeds.extend([frame(WAL), frame(21)].concat());
    deeds.extend([(SHM, unlock(120)), (22, unlock(120))]);
    for is_synced in [false, true] {
        deeds.push((SHM, lock(120)));
        deeds.extend(frame(WAL));
        deeds.extend(is_synced.then_some((WAL, sync())));
        deeds.push((SHM, unlock(120)));
    }
    let totals = find_in(&deeds);
    let wal = totals.modes["wal"];
    let wanted =
        ModeCounts { commits: 4, end_unsynced: 3, several_databases: 2, ..Default::default() };
    assert_eq!(wal, wanted, "{totals:?}");
    assert_eq!(totals.counts()["journal_modes"]["wal"]["end_unsynced"], 3);
}

#[test]
fn a_journal_that_was_played_back_or_came_to_nothing_is_a_rollback() {
    let played = rollback_journal(&[(JOURNAL, Deed::Read), (JOURNAL, unlink())]);
    let nothing = [
        (DB, lock(PENDING)),
        (JOURNAL, write(0, 512, &[0xd9; 32])),
        (JOURNAL, unlink()),
        (DB, unlock(0)),
    ];
    for deeds in [&played[..], &nothing] {
        let totals = find_in(deeds);
        assert_eq!((totals.commits, totals.rollbacks), (0, 1));
    }
    // What is synced behind a rollback is of no commit, and no sync of another file.
    let directory = (30, Deed::Sync { name: "fdatasync", is_directory: true });
    let truncated = (JOURNAL, Deed::Truncate { size_bytes: 0 });
    let commit = rollback_journal(&[truncated.clone(), (JOURNAL, sync())]);
    let (alone, begun) = (find_in(&commit), commit.len() as i64);
    let syncs = [truncated, (JOURNAL, sync()), directory];
    let rolled_back = [&nothing[..2], &syncs, &nothing[3..]].concat();
    let totals = find_in(&[&commit[..], &rolled_back, &commit].concat());
    assert_eq!((totals.commits, totals.rollbacks, totals.syncs), (2, 1, 0));
    assert_eq!(totals.rows[0], alone.rows[0]);
    assert_eq!(totals.rows[1].begin_ns, alone.rows[0].begin_ns + (begun + 6) * 10);
}

#[test]
fn a_commit_without_a_journal_file_is_the_databases_sync() {
    let deeds = [
        (DB, lock(PENDING)),
        (DB, write(0, 4096, b"SQLite format 3\0")),
        (DB, sync()),
        (DB, unlock(0)),
    ];
    let totals = find_in(&deeds);
    assert_eq!((totals.commits, totals.syncs, totals.rows[0].sync_calls), (1, 0, 1));
}

#[test]
fn a_copy_from_a_redo_log_is_no_commit_without_a_journal() {
    let header = |version| {
        let mut head = *b"SQLite format 3\0\x10\0\0\0";
        head[18..].fill(version);
        (DB, write(0, 100, &head))
    };
    let record = [(OTHER, write(8192, 8192, &[])), (OTHER, sync())];
    let copied = (DB, write(4096, 4096, &[]));
    let marked = [(DB, lock(PENDING)), header(3), (DB, sync())];
    let checkpoint = [(DB, sync()), (OTHER, sync())];
    let unmarked = [header(1), (DB, sync()), (DB, unlock(0))];
    let in_log = [&marked[..], &record, &[copied], &checkpoint, &unmarked].concat();
    let totals = find_in(&in_log);
    assert_eq!((totals.commits, totals.checkpoints, totals.syncs), (0, 0, 2), "{totals:?}");
    // Without the mark it commits as before.
    let without = [(DB, lock(PENDING)), (DB, write(4096, 4096, &[])), (DB, sync())];
    assert_eq!(find_in(&[in_log, without.to_vec()].concat()).commits, 1);
}

#[test]
fn a_wal_commits_with_the_frame_that_has_the_databases_size() {
    let mut header = [0; 32];
    header[8..12].copy_from_slice(&4096_u32.to_be_bytes());
    let frame = |number: u64, size: u8| {
        let mut head = [0; 24];
        head[7] = size;
        [
            (WAL, write(32 + number * 4120, 24, &head)),
            (WAL, write(56 + number * 4120, 4096, &[1; 32])),
        ]
    };
    let mut deeds = vec![(DB, lock(PENDING)), (SHM, lock(123)), (SHM, lock(120))];
    deeds.push((30, Deed::Open { path: "/app".into(), is_created: false }));
    deeds.extend([(WAL, write(0, 32, &header)), (WAL, sync()), (30, sync())]);
    deeds.extend(frame(0, 0));
    deeds.extend(frame(1, 2));
    deeds.extend([(WAL, sync()), (SHM, unlock(120)), (SHM, unlock(123))]);
    deeds.extend([(SHM, lock(123)), (SHM, unlock(123))]);
    deeds.extend([(SHM, lock(123)), (SHM, lock(120))]);
    deeds.extend(frame(2, 2));
    deeds.extend([(SHM, unlock(120)), (SHM, unlock(123))]);
    deeds.extend([(SHM, lock(121)), (WAL, sync()), (DB, write(0, 4096, &[])), (DB, sync())]);
    deeds.push((SHM, unlock(121)));
    let totals = find_in(&deeds);
    assert_eq!((totals.commits, totals.checkpoints, totals.syncs), (2, 1, 0));
    let rows: Vec<_> = totals.rows.iter().map(|row| (row.wal_frames, row.sync_calls)).collect();
    assert_eq!(rows, [(2, 3), (3, 0), (1, 2)]);
    assert_eq!((totals.rows[0].begin_ns, totals.rows[0].commit_ns), (50, 100));
    assert_eq!(totals.rows[2].phase, "checkpoint");
}

#[test]
fn a_sync_of_another_file_is_a_transaction_since_its_last() {
    let saved = Deed::Write { offset_bytes: 0, length_bytes: 9, head: vec![], is_synced: true };
    let deeds =
        [(OTHER, write(0, 5, &[])), (OTHER, sync()), (OTHER, saved), (OTHER, write(0, 7, &[]))];
    let totals = find_in(&deeds);
    assert_eq!((totals.commits, totals.syncs), (0, 2));
    let rows: Vec<_> =
        totals.rows.iter().map(|row| (row.kind.as_str(), row.begin_ns, row.return_ns)).collect();
    assert_eq!(rows, [("fdatasync", 0, 69), ("write", 69, 79)]);
    assert_eq!((totals.writes_after, totals.bytes_after), (1, 7));
}

#[test]
fn one_commit_of_two_databases_ends_with_the_super_journal() {
    let open_old = |path: &str| Deed::Open { path: path.into(), is_created: false };
    let of =
        |name: u64| [(DB, lock(PENDING)), (JOURNAL, write(0, 512, &[1; 32])), (DB, lock(name))];
    let mut deeds = of(PENDING + 2).to_vec();
    deeds.extend([(20, open_old("/app/b.db")), (21, open_old("/app/b.db-journal"))]);
    deeds.extend([(20, lock(PENDING)), (21, write(0, 512, &[1; 32]))]);
    deeds.extend([(22, open_old("/app/a.db-mj0123459AB")), (22, sync())]);
    deeds.extend([(JOURNAL, sync()), (21, sync()), (DB, write(0, 4096, &[]))]);
    deeds.extend([(20, write(0, 4096, &[])), (DB, sync()), (20, sync())]);
    deeds.push((22, Deed::Unlink { path: "/app/a.db-mj0123459AB".into() }));
    deeds.push((JOURNAL, unlink()));
    deeds.push((21, Deed::Unlink { path: "/app/b.db-journal".into() }));
    deeds.extend([(DB, unlock(0)), (20, unlock(0))]);
    let totals = find_in(&deeds);
    assert_eq!((totals.commits, totals.databases, totals.syncs, totals.rollbacks), (1, 2, 0, 0));
    assert_eq!((totals.rows[0].databases, totals.rows[0].sync_calls), (2, 5));
}

/// As `joj-agent collect` uses it: call by call, and databases are known by their first lock.
#[test]
fn a_super_journal_names_its_databases_by_what_their_journals_hold() {
    const NAME: &str = "/app/a.db-mj0123459AB";
    let named = || write(600, NAME.len() as u64, NAME.as_bytes());
    let other = |inode: u64| [(inode, lock(PENDING)), (inode + 1, write(0, 512, &[1; 32]))];
    let mut deeds = vec![(DB, open_of("/app/a.db")), (JOURNAL, open_of("/app/a.db-journal"))];
    for (inode, name) in [(20, "b"), (30, "c")] {
        deeds.push((inode, open_of(&format!("/app/{name}.db"))));
        deeds.push((inode + 1, open_of(&format!("/app/{name}.db-journal"))));
    }
    deeds.extend([(DB, lock(PENDING)), (JOURNAL, write(0, 512, &[1; 32]))]);
    deeds.extend([other(20), other(30)].concat());
    // Of another connection of the process, which commits by itself.
    deeds.push((30, write(0, 4096, &[])));
    deeds.extend([(40, open_of(NAME)), (40, sync()), (JOURNAL, named()), (21, named())]);
    deeds.extend([(DB, write(0, 4096, &[])), (20, write(0, 4096, &[]))]);
    deeds.push((40, Deed::Unlink { path: NAME.into() }));
    deeds.extend([(JOURNAL, unlink()), (21, Deed::Unlink { path: "/app/b.db-journal".into() })]);
    deeds.push((31, Deed::Unlink { path: "/app/c.db-journal".into() }));
    deeds.extend([(DB, unlock(0)), (20, unlock(0)), (30, unlock(0))]);
    let mut finder = CommitFinder::default();
    let call = |(number, (inode, deed)): (i64, (u64, Deed))| FileCall {
        pid: 7,
        tid: 8,
        caller: Caller::default(),
        begin_ns: number * 10,
        end_ns: number * 10 + 9,
        file: file(inode),
        deed,
    };
    (0..).zip(deeds).for_each(|it| finder.see(&call(it)));
    let transaction = finder.take_finished(i64::MAX);
    let names = |transaction: &DetectedTransaction| -> Vec<String> {
        transaction.databases.iter().map(|&number| finder.files.name(number)).collect()
    };
    assert_eq!(transaction.len(), 2);
    assert_eq!(
        (transaction[0].journal_mode, transaction[0].super_journal.as_deref()),
        ("delete", Some(NAME))
    );
    assert_eq!(names(&transaction[0]), ["/app/a.db", "/app/b.db"]);
    assert_eq!(transaction[0].written_bytes, 2 * (512 + 4096 + NAME.len() as u64));
    assert_eq!(
        (transaction[1].journal_mode, names(&transaction[1])),
        ("delete", vec!["/app/c.db".to_owned()])
    );
}

#[test]
fn a_super_journal_of_a_crash_before_is_no_commit() {
    let name = "/app/a.db-mj0123459AB";
    let deeds = rollback_journal(&[
        (JOURNAL, Deed::Read),
        (22, Deed::Open { path: name.into(), is_created: false }),
        (22, Deed::Unlink { path: name.into() }),
        (JOURNAL, unlink()),
    ]);
    let totals = find_in(&deeds);
    assert_eq!((totals.commits, totals.rollbacks), (0, 1));
}

/// The finder takes calls of a process, 10 ns each, from a time on.
fn feed(finder: &mut CommitFinder, begin_ns: i64, deeds: &[(u64, Deed)]) {
    for (number, (inode, deed)) in (0..).zip(deeds) {
        let begin_ns = begin_ns + number * 10;
        finder.see(&FileCall {
            pid: 7,
            tid: 8,
            caller: Caller::default(),
            begin_ns,
            end_ns: begin_ns + 9,
            file: file(*inode),
            deed: deed.clone(),
        });
    }
}

fn open_of(path: &str) -> Deed {
    Deed::Open { path: path.into(), is_created: true }
}

fn open_of_wal() -> Vec<(u64, Deed)> {
    let files = [(WAL, "/app/a.db-wal"), (SHM, "/app/a.db-shm")];
    let mut deeds = vec![(DB, open_of("/app/a.db")), (DB, lock(PENDING))];
    deeds.extend(files.map(|(file, path)| (file, open_of(path))));
    deeds
}

fn wal_commit() -> [(u64, Deed); 4] {
    let mut head = [0; 24];
    head[7] = 1;
    let frame = write(32, 24, &head);
    [(SHM, lock(120)), (WAL, frame), (WAL, write(56, 4096, &[1; 32])), (SHM, unlock(120))]
}

#[test]
fn a_database_that_is_idle_while_many_files_are_made_is_not_forgotten() {
    let mut finder = CommitFinder::default();
    feed(&mut finder, 0, &open_of_wal());
    let others = (100..100_100).map(|file| (file, open_of(&format!("/tmp/{file}-journal"))));
    feed(&mut finder, 1000, &others.collect::<Vec<_>>());
    feed(&mut finder, 2_000_000, &wal_commit());
    assert_eq!(finder.take_finished(i64::MAX).len(), 1);
}

#[test]
fn a_commit_whose_lock_is_kept_is_told_when_it_is_over() {
    let mut finder = CommitFinder::default();
    let mut deeds = open_of_wal();
    deeds.extend_from_slice(&wal_commit()[..3]);
    feed(&mut finder, 0, &deeds);
    assert!(finder.take_finished(1_000_000_000).is_empty());
    assert_eq!(finder.take_finished(11_000_000_000).len(), 1);
    assert!(finder.take_finished(i64::MAX).is_empty());
}

/// The first page of a database, as it says which journal it has.
fn first_page(version: u8) -> (u64, Deed) {
    let mut head = *b"SQLite format 3\0\x10\0\0\0\0@  \0\0\0\0\0\0\0\0";
    (head[18], head[19]) = (version, version);
    (DB, write(0, 4096, &head))
}

fn path_unlinked(path: &str) -> Deed {
    Deed::Unlink { path: path.into() }
}

/// A transaction without a journal's file.
fn without_journal(version: u8) -> Vec<(u64, Deed)> {
    vec![
        (DB, lock(PENDING)),
        first_page(version),
        (DB, write(4096, 4096, &[13; 32])),
        (DB, sync()),
        (DB, unlock(0)),
    ]
}

/// A connection's last checkpoint, as `PRAGMA journal_mode` makes it where it leaves WAL mode.
fn last_checkpoint(is_wal_kept: bool) -> Vec<(u64, Deed)> {
    let mut deeds = vec![
        (DB, lock(PENDING)),
        (WAL, sync()),
        (DB, write(4096, 4096, &[13; 32])),
        (DB, Deed::Truncate { size_bytes: 8192 }),
        (DB, sync()),
    ];
    if !is_wal_kept {
        deeds.push((SHM, path_unlinked("/app/a.db-shm")));
        deeds.push((WAL, path_unlinked("/app/a.db-wal")));
    }
    deeds
}

#[test]
fn commits_are_found_after_the_journal_mode_is_another() {
    let opens = [(WAL, open_of("/app/a.db-wal")), (SHM, open_of("/app/a.db-shm"))];
    for is_wal_kept in [false, true] {
        let mut deeds = rollback_journal(&[(JOURNAL, unlink())]);
        // PRAGMA journal_mode = wal, and two commits.
        deeds.extend(rollback_journal(&[(JOURNAL, unlink())]));
        deeds.extend(opens.clone());
        deeds.extend([wal_commit(), wal_commit()].concat());
        // memory or off, and two commits; the first is that of the PRAGMA itself.
        deeds.extend(last_checkpoint(is_wal_kept));
        deeds.extend([without_journal(1), without_journal(1), without_journal(1)].concat());
        // And persist, and wal again.
        let zeroed = write(0, 28, &[0; 28]);
        deeds.extend(rollback_journal(&[(JOURNAL, zeroed), (JOURNAL, sync())]));
        deeds.extend(without_journal(2));
        deeds.extend(wal_commit());
        let totals = find_in(&deeds);
        let counts = (totals.commits, totals.checkpoints, totals.rollbacks, totals.syncs);
        assert_eq!(counts, (10, 1, 0, 0), "{is_wal_kept}");
    }
}

#[test]
fn the_checkpoint_of_a_wal_that_was_there_before_is_no_commit() {
    let mut deeds = open_of_wal();
    deeds.extend([(SHM, lock(123)), (WAL, Deed::Read), (SHM, unlock(123))]);
    deeds.extend(last_checkpoint(false));
    deeds.push((DB, unlock(0)));
    let totals = find_in(&deeds);
    assert_eq!((totals.commits, totals.checkpoints, totals.syncs), (0, 1, 0));
}

#[test]
fn one_path_in_two_containers_is_two_databases_and_one_file_by_two_paths_is_one() {
    let mut finder = CommitFinder::default();
    let root = |namespace| PathRoot { namespace, ..PathRoot::default() };
    // By container: a database in WAL mode at the same path, of which the first has longer pages.
    let journal = |inode: u64, namespace: u32, page: u64, path: &str| {
        let open = |suffix: &str| open_of(&format!("{path}{suffix}"));
        let size = u32::try_from(page).unwrap().to_be_bytes();
        let header = [[0; 4], [0; 4], size].concat();
        let frame = [[0; 4], [0, 0, 0, 2]].concat();
        let deeds = [
            (inode, open("")),
            (inode, lock(PENDING)),
            (inode + 1, open("-wal")),
            (inode + 1, write(0, 32, &header)),
            (inode + 1, write(32, 24, &frame)),
            (inode + 1, write(56, page, &[])),
            (inode + 1, write(56 + page, 24, &frame)),
        ];
        deeds.map(|(inode, deed)| (inode, namespace, deed))
    };
    let first = journal(10, 1, 65536, "/data/app.db");
    let second = journal(20, 2, 4096, "/data/app.db");
    let elsewhere = journal(10, 3, 65536, "/mnt/volume/app.db");
    let turns = first.into_iter().zip(second).flat_map(|(one, other)| [one, other]);
    for (number, (inode, namespace, deed)) in (0..).zip(turns.chain(elsewhere)) {
        finder.see(&FileCall {
            pid: 7 + namespace,
            tid: 7 + namespace,
            caller: Caller { root: root(namespace), ..Caller::default() },
            begin_ns: number * 10,
            end_ns: number * 10 + 9,
            file: file(inode),
            deed,
        });
    }
    let transaction = finder.take_finished(i64::MAX);
    let names = |number: usize| finder.files.name(number);
    let told: Vec<_> =
        transaction.iter().map(|it| (names(it.databases[0]), it.row.wal_frames)).collect();
    let (one, other) = ("inode 10 of 0:1: /data/app.db", "inode 20 of 0:1: /data/app.db");
    let frames = |name: &str| {
        let mut frames: Vec<i64> =
            told.iter().filter(|(it, _)| it == name).map(|(_, frames)| *frames).collect();
        frames.sort_unstable();
        frames
    };
    assert_eq!((frames(one), frames(other)), (vec![1, 1, 2, 2], vec![1, 2]), "{told:?}");
    let pages = |name: &str| {
        let number = (0..3).find(|&number| finder.files.name(number) == name).unwrap();
        finder.pages.page_bytes(number)
    };
    assert_eq!((pages(one), pages(other)), (Some(65_536), Some(4096)));
}

#[test]
fn the_length_of_pages_is_seen_in_the_first_page_that_is_written() {
    let pages = |head: &[u8]| {
        let mut finder = CommitFinder::default();
        let deeds = [open_of("/app/a.db"), lock(PENDING), write(0, 4096, head)];
        for (number, deed) in (0..).zip(deeds) {
            finder.see(&FileCall {
                pid: 7,
                tid: 7,
                caller: Caller::default(),
                begin_ns: number * 10,
                end_ns: number * 10 + 9,
                file: file(DB),
                deed,
            });
        }
        finder.pages.page_bytes(0)
    };
    assert_eq!(pages(b"SQLite format 3\0\x10\0\x01\x01"), Some(4096));
    assert_eq!(pages(b"SQLite format 3\0\0\x01\x02\x02"), Some(65_536));
    // Encrypted, no size of a page, and nothing that was seen.
    for head in [&b"\x8a 16 random bytes\x10\0\x01\x01"[..], b"SQLite format 3\0\x10\x01", b""] {
        assert_eq!(pages(head), None, "{head:?}");
    }
}
