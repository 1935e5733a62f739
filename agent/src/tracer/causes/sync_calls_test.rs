//! Which call a bio serves, with one caller and with several.

use super::*;
use crate::bpf::Symbols;
use crate::tracer::classify::classify;
use crate::tracer::classify::layout::Layout;

const DISK: u32 = 9;

fn call(tid: u32, number: u32, inode: u64, disk: u32) -> Sync {
    let filesystem = if inode == 0 { 0 } else { disk };
    Sync { tid, pid: tid, call: number, inode, disk, filesystem, ..Sync::default() }
}

fn calls() -> SyncCalls {
    SyncCalls::new(BTreeSet::from([DISK]))
}

fn write_by(tid: u32) -> Bio {
    Bio { tid, flags: 1, ..Bio::default() }
}

fn run_of(inode: u64) -> Vec<(Run, Class)> {
    let (filesystem, mode, magic) = (DISK, 0o100644, 0xef53);
    let run = Run { inode, filesystem, mode, magic, ..Run::default() };
    let class = classify(&Bio::default(), &run, &Symbols::default(), &Layout::default());
    vec![(run, class)]
}

#[test]
fn the_submitter_itself_comes_first() {
    let mut calls = calls();
    calls.begin(call(1, 74, 11, DISK));
    calls.begin(call(2, 75, 12, DISK));
    let asker = calls.asker(&write_by(2), &run_of(11), DISK, None).unwrap();
    assert_eq!((asker.call, asker.waiting), ("fdatasync", 1));
}

#[test]
fn then_whose_file_it_is_then_who_began_first() {
    let mut calls = calls();
    calls.begin(call(5, 74, 11, DISK));
    calls.begin(call(2, 74, 12, DISK));
    let asker = |calls: &mut SyncCalls, inode| {
        let asker = calls.asker(&write_by(77), &run_of(inode), DISK, None);
        asker.map(|asker| (asker.tid, asker.waiting))
    };
    assert_eq!(asker(&mut calls, 12), Some((2, 1)));
    assert_eq!(asker(&mut calls, 99), Some((5, 2)));
    assert_eq!(calls.end(&call(5, 74, 0, DISK)), Some(0));
    assert_eq!(asker(&mut calls, 99), Some((2, 1)));
    calls.end(&call(2, 74, 0, DISK));
    assert_eq!(asker(&mut calls, 99), None);
}

/// A commit serves whoever waits; the next one is for who came after.
#[test]
fn who_was_served_does_not_ask_again() {
    let mut calls = calls();
    calls.begin(call(1, 74, 11, DISK));
    calls.begin(call(2, 74, 12, DISK));
    assert_eq!(calls.asker(&write_by(77), &[], DISK, None).unwrap().tid, 1);
    calls.serve(DISK, None);
    calls.begin(call(3, 74, 13, DISK));
    let asker = calls.asker(&write_by(77), &[], DISK, None).unwrap();
    assert_eq!((asker.tid, asker.waiting), (3, 3));
}

/// Who joined the next transaction is not asked for by this one, and who waits for this one is its
/// asker though another began before.
#[test]
fn a_transaction_serves_those_who_wait_for_it() {
    let mut calls = calls();
    for tid in 1..=4 {
        calls.begin(call(tid, 74, 10 + u64::from(tid), DISK));
    }
    // Of the fourth nothing is known.
    for (caller, transaction) in [(1, 8), (2, 7), (3, 6)] {
        calls.wait(caller, transaction);
    }
    let asker = |calls: &mut SyncCalls, transaction| {
        let asker = calls.asker(&write_by(77), &[], DISK, Some(transaction));
        asker.map(|asker| (asker.tid, asker.waiting))
    };
    assert_eq!(asker(&mut calls, 7), Some((2, 2)));
    calls.serve(DISK, Some(7));
    calls.end(&call(2, 74, 0, DISK));
    assert_eq!(asker(&mut calls, 8), Some((1, 2)));
    calls.end(&call(1, 74, 0, DISK));
    calls.end(&call(4, 74, 0, DISK));
    assert_eq!(asker(&mut calls, 9), None);
    calls.wait(3, 9);
    assert_eq!(asker(&mut calls, 9), Some((3, 1)));
}

#[test]
fn an_atomic_write_of_f2fs_serves_the_file_it_commits() {
    let mut calls = calls();
    calls.begin(call(3, 16, 11, DISK));
    let asker = calls.asker(&write_by(77), &run_of(99), DISK, None).unwrap();
    assert_eq!((asker.tid, asker.call), (3, "f2fs-commit-atomic-write"));
    let file = FileKey { filesystem: DISK, inode: 11, generation: 0, subvolume: 0 };
    assert_eq!(asker.file, Some(file));
    calls.end(&call(3, 74, 0, DISK));
    assert_eq!(calls.asker(&write_by(77), &run_of(11), DISK, None), None);
}

#[test]
fn other_filesystems_and_other_readers_are_not_served() {
    let mut calls = calls();
    calls.begin(call(1, 74, 11, 8));
    assert_eq!(calls.asker(&write_by(1), &[], DISK, None), None);
    calls.learn(8);
    assert_eq!(calls.asker(&write_by(2), &[], DISK, None), None);
    calls.begin(call(1, 162, 0, 0));
    assert_eq!(calls.asker(&write_by(2), &[], DISK, None).unwrap().file, None);
    let read = Bio { tid: 2, flags: 0, ..Bio::default() };
    assert_eq!(calls.asker(&read, &[], DISK, None), None);
    let place = Bio { length_bytes: 4096, kernel_thread: true, ..Bio::default() };
    for (operation, served) in [(1, true), (3, false), (9, false)] {
        let lazy = Bio { tid: 77, flags: operation, ..place.clone() };
        assert_eq!(calls.asker(&lazy, &[], DISK, None).is_some(), served, "operation {operation}");
    }
}

#[test]
fn a_filesystem_without_a_device_of_its_own_is_known_by_its_pages() {
    let mut calls = calls();
    calls.learn(39);
    calls.begin(Sync { disk: 0, filesystem: 39, ..call(1, 74, 11, 0) });
    calls.begin(Sync { disk: 0, filesystem: 40, ..call(2, 74, 11, 0) });
    assert_eq!(calls.asker(&write_by(3), &[], 39, None).unwrap().tid, 1);
    assert_eq!(calls.asker(&write_by(2), &[], 39, None).unwrap().tid, 1);
    assert_eq!(calls.only_filesystem(), Some(39));
}

#[test]
fn direct_io_asks_for_itself() {
    let mut calls = calls();
    calls.begin(call(1, 74, 11, DISK));
    let mut runs = run_of(12);
    runs[0].0.flags = RUN_DIRECT;
    let asker = calls.asker(&write_by(2), &runs, DISK, None).unwrap();
    assert_eq!((asker.tid, asker.call, asker.number), (2, "O_DIRECT write", None));
    assert_eq!(asker.file.unwrap().inode, 12);
    let read = Bio { call_flags: CALL_DIRECT, ..Bio::default() };
    assert_eq!(calls.asker(&read, &[], DISK, None).unwrap().call, "O_DIRECT read");
}

#[test]
fn a_kernel_thread_asks_for_no_direct_io() {
    let mut calls = calls();
    let mut runs = run_of(11);
    runs[0].0.flags = RUN_DIRECT;
    let bio = Bio { kernel_thread: true, ..write_by(77) };
    assert_eq!(calls.asker(&bio, &runs, DISK, None), None);
    calls.begin(call(1, 74, 11, DISK));
    assert_eq!(calls.asker(&bio, &runs, DISK, None).unwrap().tid, 1);
}

#[test]
fn what_msync_writes_tells_its_file() {
    let mut calls = calls();
    calls.learn(DISK);
    calls.begin(call(1, MSYNC, 0, 0));
    assert_eq!(calls.asker(&write_by(1), &[], DISK, None).unwrap().file, None);
    assert_eq!(calls.asker(&write_by(1), &run_of(12), DISK, None).unwrap().file.unwrap().inode, 12);
    // And so for what others write for it then.
    assert_eq!(calls.asker(&write_by(77), &[], DISK, None).unwrap().file.unwrap().inode, 12);
}

#[test]
fn a_request_of_io_uring_asks_beside_the_calls_of_its_thread() {
    let mut calls = calls();
    let request = |address, inode| Sync { request: address, ..call(5, 74, inode, DISK) };
    let addresses = [0xffff_8880_0000_1000, 0xffff_8880_0000_2000];
    calls.begin(call(3, 74, 11, DISK));
    calls.begin(request(addresses[0], 12));
    calls.begin(request(addresses[1], 13));
    // The thread goes on, and waits for something else.
    calls.begin(call(5, 74, 14, DISK));
    let asker = |calls: &mut SyncCalls, comm: &str, inode| {
        let bio = Bio { comm: comm.to_owned(), ..write_by(77) };
        let asker = calls.asker(&bio, &run_of(inode), DISK, None);
        asker.map(|asker| (asker.tid, asker.file.unwrap().inode))
    };
    assert_eq!(asker(&mut calls, "iou-wrk-5", 13), Some((5, 13)));
    assert_eq!(asker(&mut calls, "iou-wrk-5", 99), Some((5, 12)));
    assert_eq!(asker(&mut calls, "jbd2", 99), Some((3, 11)));
    let ends = [request(addresses[0], 0), call(5, 74, 0, DISK), request(addresses[1], 0)];
    assert_eq!(ends.map(|end| calls.end(&end)), [Some(1), Some(3), Some(2)]);
    assert_eq!(calls.end(&request(addresses[0], 0)), None);
}

#[test]
fn a_direct_write_of_a_ring_s_worker_is_its_request_s() {
    let mut calls = calls();
    let request = Sync { request: 0xffff_8880_0000_1000, flags: 2, ..call(5, 328, 12, DISK) };
    calls.begin(request);
    let bio = Bio { comm: "iou-wrk-5".to_owned(), ..write_by(77) };
    let asker = |calls: &mut SyncCalls, inode| {
        let mut runs = run_of(inode);
        runs[0].0.flags = RUN_DIRECT;
        calls.asker(&bio, &runs, DISK, None).map(|asker| (asker.tid, asker.call))
    };
    assert_eq!(asker(&mut calls, 12), Some((5, "O_DSYNC write")));
    assert_eq!(asker(&mut calls, 13), Some((77, "O_DIRECT write")));
}

#[test]
fn requests_whose_ends_are_lost_are_forgotten_and_calls_are_not() {
    let mut calls = calls();
    calls.begin(call(3, 74, 11, DISK));
    for number in 0..2 * MOST as u64 {
        calls.begin(Sync { request: 1 << 63 | number, ..call(5, 74, 12, DISK) });
    }
    assert!(calls.active.len() <= MOST);
    assert_eq!(calls.end(&call(3, 74, 0, DISK)), Some(0));
}
