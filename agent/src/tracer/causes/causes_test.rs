//! From calls, changes and bios to causes.

use super::*;
use crate::bpf::Symbols;
use crate::tracer::classify::classify;
use crate::tracer::classify::layout::Layout;
use crate::tracer::records::RUN_FROM_CALL;
use crate::tracer::records::kernel::MODE_DIRECTORY;

const DISK: u32 = 7 << 20;
const LOG_DISK: u32 = 8 << 20;

fn fsync(tid: u32, inode: u64) -> Sync {
    let place = Sync { filesystem: DISK, disk: DISK, inode, ..Sync::default() };
    Sync { tid, pid: tid, call: 74, comm: format!("task-{tid}"), ..place }
}

fn change(inode: u64, changes: u32, time_ns: u64) -> Change {
    Change { inode, changes, time_ns, filesystem: DISK, disk: DISK, ..Change::default() }
}

/// A block of jbd2, by its type; pages are of the page cache of `device`.
fn journal_block(block_type: u8, time_ns: u64, device: u32) -> (Bio, Vec<(Run, Class)>) {
    let bio = Bio { flags: 1, time_ns, tid: 77, partition_device: device, ..Bio::default() };
    let bio = Bio { journal_block_type: block_type, device, kernel_thread: true, ..bio };
    let run = Run { magic: BLOCK_DEVICE_MAGIC, inode: 1, filesystem: device, ..Run::default() };
    let class = classify(&bio, &run, &Symbols::default(), &Layout::default());
    assert_eq!(class.block_type, BlockType::FsJournal);
    (bio, vec![(run, class)])
}

fn causes() -> Causes {
    let mut causes = Causes::new(BTreeSet::from([DISK, LOG_DISK]), Surroundings::nothing());
    causes.learn(DISK);
    let path =
        PathRecord { filesystem: DISK, inode: 12, path: "/a".into(), ..PathRecord::default() };
    causes.see_path(&path);
    causes.see_path(&PathRecord { inode: 2, mode: MODE_DIRECTORY, path: "/".into(), ..path });
    causes
}

fn reason(cause: &Cause) -> String {
    let names = |key: FileKey| if key.inode == 12 { "/a" } else { "/b" };
    cause.reason.as_ref().map_or_else(|| "none".to_owned(), |reason| reason.text(names))
}

#[test]
fn a_journal_s_commit_carries_the_changes_and_serves_the_caller() {
    let mut causes = causes();
    causes.change(&change(12, 3, 10));
    causes.begin(fsync(5, 12));
    for (block_type, time_ns) in [(1, 20), (2, 30)] {
        let (bio, runs) = journal_block(block_type, time_ns, DISK);
        let cause = causes.cause(&bio, &runs);
        assert_eq!(cause.asker.as_ref().unwrap().tid, 5);
        assert_eq!(reason(&cause), "a: created, grew");
    }
    causes.end(&fsync(5, 12));
    let (bio, runs) = journal_block(1, 40, DISK);
    let cause = causes.cause(&bio, &runs);
    assert!(cause.asker.is_none());
    assert_eq!(reason(&cause), "unknown");
}

#[test]
fn a_commit_for_two_callers_is_the_first_one_s_and_the_next_is_for_who_came_later() {
    let mut causes = causes();
    causes.begin(fsync(5, 12));
    causes.begin(fsync(6, 13));
    let (bio, runs) = journal_block(2, 20, DISK);
    let first = causes.cause(&bio, &runs).asker.unwrap();
    assert_eq!((first.tid, first.waiting), (5, 2));
    assert_eq!(first.all.as_deref(), Some("1 of task-5, 1 of task-6"));
    causes.begin(fsync(7, 14));
    let (bio, runs) = journal_block(2, 30, DISK);
    assert_eq!(causes.cause(&bio, &runs).asker.unwrap().tid, 7);
}

#[test]
fn a_commit_is_for_who_waits_for_its_transaction_and_not_for_who_joined_the_next() {
    let mut causes = causes();
    let transaction = |caller, number| {
        let device = LOG_DISK;
        JournalTransaction { caller, number, device, ..JournalTransaction::default() }
    };
    causes.begin(fsync(5, 12));
    causes.begin(fsync(6, 13));
    for (caller, number) in [(5, 8), (6, 7)] {
        causes.wait(&transaction(caller, number));
    }
    for (number, tid) in [(7, 6), (8, 5)] {
        causes.commit(&transaction(0, number));
        for (block_type, time_ns) in [(1, 20), (2, 30)] {
            let (bio, runs) = journal_block(block_type, time_ns, LOG_DISK);
            let asker = causes.cause(&bio, &runs).asker.unwrap();
            assert_eq!((asker.tid, asker.waiting), (tid, 1), "transaction {number}");
        }
    }
    causes.commit(&transaction(0, 9));
    let (bio, runs) = journal_block(1, 40, LOG_DISK);
    assert_eq!(causes.cause(&bio, &runs).asker, None);
}

#[test]
fn a_journal_on_another_disk_is_of_the_filesystem_that_waits() {
    let mut causes = causes();
    causes.change(&change(12, 2, 10));
    causes.begin(fsync(5, 12));
    let (bio, runs) = journal_block(1, 20, LOG_DISK);
    let cause = causes.cause(&bio, &runs);
    assert_eq!((cause.asker.as_ref().unwrap().tid, reason(&cause).as_str()), (5, "a: grew"));
}

#[test]
fn a_bio_on_the_disk_s_node_takes_neither_asker_nor_reason_from_later_ones() {
    // The inode of the call that a bio was sent in: a node below /dev, a pipe that is read while
    // memory is swapped out. And memory without a disk that is written past the cache.
    let guess = Run { flags: RUN_FROM_CALL, inode: 99, filesystem: 5, ..Run::default() };
    let node = Run { magic: 0x0102_1994, mode: 0o060660, ..guess.clone() };
    let file_elsewhere = Run { magic: 0xef53, mode: 0o100644, filesystem: 9 << 20, ..guess };
    let memory = Run { flags: 0, mode: 0o100600, ..node.clone() };
    for (flags, run) in [(0, &node), (3, &node), (1, &file_elsewhere), (1, &memory)] {
        let mut causes = causes();
        let bio = Bio { flags, partition_device: DISK, time_ns: 5, ..Bio::default() };
        let class = classify(&bio, run, &Symbols::default(), &Layout::default());
        causes.cause(&bio, &[(run.clone(), class)]);
        causes.change(&change(12, 3, 10));
        causes.begin(fsync(5, 12));
        let (bio, runs) = journal_block(1, 20, DISK);
        let cause = causes.cause(&bio, &runs);
        assert_eq!(cause.asker.as_ref().map(|asker| asker.tid), Some(5), "{run:?}");
        assert_eq!(reason(&cause), "a: created, grew", "{run:?}");
    }
}

#[test]
fn calls_on_names_are_changes_too() {
    let mut causes = causes();
    let name = |call, name: &str, second| Name {
        call,
        second,
        name: name.into(),
        inode: 2,
        filesystem: DISK,
        time_ns: 10,
        ..Name::default()
    };
    causes.name(name(87, "a", false));
    causes.name(name(82, "x", false));
    causes.name(name(82, "y", true));
    causes.name(name(83, "made", false));
    let (bio, runs) = journal_block(2, 20, DISK);
    let text = reason(&causes.cause(&bio, &runs));
    assert_eq!(text, "a: unlinked; made: created; x: renamed");
}

#[test]
fn data_and_reads_carry_no_changes() {
    let mut causes = causes();
    causes.change(&change(12, 3, 10));
    let (bio, runs) = journal_block(1, 20, DISK);
    let read = Bio { flags: 0, ..bio.clone() };
    assert!(causes.cause(&read, &runs).reason.is_none());
    let run = Run { inode: 12, magic: 0xef53, mode: 0o100644, ..Run::default() };
    let class = classify(&bio, &run, &Symbols::default(), &Layout::default());
    assert!(causes.cause(&bio, &[(run, class)]).reason.is_none());
}
