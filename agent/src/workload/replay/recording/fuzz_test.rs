//! Recordings whose rows no recorder writes: numbers near 2^63, negative lengths, threads,
//! descriptors and paths that are not there, threads that make each other, links that lead in
//! circles, long and deep paths. The plan of each must be whole, or be refused.

use super::tests::{check, plan_all};
use super::*;
use crate::fuzz::{self, Random};
use crate::workload::replay::plan::{Action, CallArgument};

const NAMES: [&str; 62] = [
    "open",
    "openat",
    "openat",
    "openat",
    "creat",
    "close",
    "close",
    "dup",
    "dup2",
    "dup3",
    "fork",
    "clone",
    "execve",
    "exit",
    "exit_group",
    "read",
    "pread64",
    "readv",
    "write",
    "pwrite64",
    "pwrite64",
    "pwritev2",
    "lseek",
    "sendfile",
    "copy_file_range",
    "readahead",
    "fadvise64",
    "fsync",
    "fdatasync",
    "syncfs",
    "sync",
    "sync_file_range",
    "truncate",
    "ftruncate",
    "fallocate",
    "rename",
    "renameat2",
    "link",
    "linkat",
    "symlink",
    "symlinkat",
    "unlink",
    "unlinkat",
    "mkdir",
    "rmdir",
    "mknod",
    "newfstatat",
    "statx",
    "readlinkat",
    "getdents64",
    "chmod",
    "setxattr",
    "fgetxattr",
    "fcntl",
    "flock",
    "ioctl",
    "mmap",
    "munmap",
    "msync",
    "close_range",
    "pipe2",
    "mount",
];
const COMMANDS: [&str; 12] = [
    "F_DUPFD",
    "F_DUPFD_CLOEXEC",
    "F_SETFD",
    "F_GETFL",
    "F_SETFL",
    "F_GETLK",
    "F_SETLK",
    "F_OFD_SETLKW",
    "SEEK_SET",
    "SEEK_END",
    "SEEK_HOLE",
    "nonsense",
];
const LOCKS: [&str; 3] = ["F_RDLCK", "F_WRLCK", "F_UNLCK"];
const ERRORS: [&str; 4] = ["EBADF", "ENOENT", "EAGAIN", "ENOTTY"];
const KINDS: [&str; 6] = ["file", "file", "directory", "symlink", "absent", "other"];
const TARGETS: [&str; 6] = ["pipe:[1]", "socket:[2]", "/dev/pts/0", "/a", "/a/f/../../b", ""];

fn some(random: &mut Random, end: usize) -> Option<i64> {
    (random.below(4) != 0).then(|| random.number(end))
}

fn path(random: &mut Random) -> String {
    let parts = ["a", "b", "f", "..", ".", "", "proc", "dev/shm", "\\xff", "\\", "\\x4"];
    // Three thousand directories take longer than all else of an input.
    match random.below(1024) {
        0 => "/a".repeat(random.below(3000)),
        1 => "x".repeat(random.below(40_000)),
        _ => (0..random.below(5)).map(|_| format!("/{}", random.one(&parts))).collect(),
    }
}

fn call(random: &mut Random, call_id: i64) -> RecordedCall {
    // Most fields of most calls are as a recorder writes them.
    let begin_ns = if random.below(16) == 0 { random.number(99) } else { call_id * 10 };
    let end_ns = match random.below(16) {
        0 => some(random, 99),
        took => Some(begin_ns.saturating_add(took as i64 * 5)),
    };
    let result = match random.below(8) {
        0 => some(random, 9),
        1 => Some(-2),
        _ => Some(random.below(9) as i64),
    };
    let error = (random.below(8) == 0).then(|| random.one(&ERRORS).into());
    RecordedCall {
        call_id: if random.below(32) == 0 { random.number(60) } else { call_id },
        thread_id: random.below(5) as i64,
        name: random.one(&NAMES).into(),
        begin_ns,
        end_ns,
        result,
        error,
        descriptor: some(random, 9),
        descriptor2: some(random, 9),
        directory: some(random, 9),
        path: (random.below(3) != 0).then(|| "x".into()),
        path_id: some(random, 8),
        directory2: some(random, 9),
        path2: (random.below(3) != 0).then(String::new),
        path2_id: some(random, 8),
        text: (random.below(2) == 0).then(|| path(random)),
        offset_bytes: some(random, 9000),
        offset2_bytes: some(random, 9000),
        length_bytes: some(random, 9000),
        vectors: some(random, 5),
        flags: some(random, 1 << 21),
        mode: some(random, 0o200_000),
        command: (random.below(4) != 0).then(|| random.one(&COMMANDS).into()),
        lock: (random.below(4) != 0).then(|| random.one(&LOCKS).into()),
        address: some(random, 9),
        device: some(random, 2),
        inode: some(random, 5),
        data: (random.below(2) == 0).then(|| random.below(4).to_string()),
    }
}

fn thread(random: &mut Random, thread_id: i64) -> RecordedThread {
    RecordedThread {
        thread_id,
        pid: random.number(3),
        creator_id: some(random, 5),
        created_by_call_id: some(random, 40),
        shares_descriptors: random.below(2) == 0,
        umask: some(random, 0o777),
        ..RecordedThread::default()
    }
}

fn state(random: &mut Random, path_id: i64) -> PathState {
    PathState {
        path_id: if random.below(16) == 0 { random.number(8) } else { path_id },
        path: path(random),
        kind: random.one(&KINDS).into(),
        size_bytes: some(random, 9000),
        mode: some(random, 0o777),
        device: some(random, 2),
        inode: some(random, 5),
        link_target: (random.below(2) == 0).then(|| path(random)),
        made_by_recording: (random.below(8) == 0).then_some(true),
        ..PathState::default()
    }
}

fn open(random: &mut Random) -> OpenDescriptor {
    let target = if random.below(2) == 0 { path(random) } else { random.one(&TARGETS).into() };
    OpenDescriptor {
        thread_id: random.number(5),
        descriptor: random.number(9),
        target,
        flags: random.number(1 << 21),
        position_bytes: random.number(9000),
        device: random.number(2),
        inode: random.number(5),
        size_bytes: random.number(9000),
    }
}

/// As long as what a call writes.
fn content(random: &mut Random, calls: &[RecordedCall]) -> Content {
    let call = calls.get(random.below(calls.len()));
    Content {
        data: random.below(4).to_string(),
        offset_bytes: if random.below(64) == 0 { -1 } else { random.number(9000) },
        length_bytes: call.and_then(|call| call.length_bytes).unwrap_or(random.number(20)),
    }
}

/// Check that the bytes of steps are of the plan's contents, and as long as the steps are asked to
/// write.
fn check_contents(plan: &ReplayPlan) {
    for step in plan.lanes.iter().flat_map(|lane| &lane.steps) {
        let (Some(number), Action::Call { arguments, .. }) = (step.writes, &step.action) else {
            assert_eq!(step.writes, None);
            continue;
        };
        let bytes = plan.kept[number as usize].bytes;
        assert!(arguments.iter().any(|argument| match argument {
            CallArgument::From(asked) => *asked == bytes,
            CallArgument::VectorsFrom { bytes: asked, .. } => *asked == bytes,
            _ => false,
        }));
    }
}

/// One input; how many steps its plan has.
fn input(number: u64) -> usize {
    let mut random = Random::from_seed(number);
    let mut calls: Vec<_> = (0..random.below(40) as i64).map(|id| call(&mut random, id)).collect();
    calls.sort_by_key(|call| (call.begin_ns, call.call_id));
    let threads: Vec<_> = (0..5).map(|id| thread(&mut random, id)).collect();
    let snapshot: Vec<_> = (0..8).map(|id| state(&mut random, id)).collect();
    let descriptors: Vec<_> = (0..random.below(6)).map(|_| open(&mut random)).collect();
    let most = if number.is_multiple_of(16) { 100_000 } else { MOST_BYTES };
    let contents: Vec<_> = (0..random.below(4)).map(|_| content(&mut random, &calls)).collect();
    let Ok(mut plan) = plan_all(&calls, &threads, &snapshot, &descriptors, most) else {
        assert!(most < MOST_BYTES);
        return 0;
    };
    check(&plan, calls.len());
    let is_refused = note_contents(&mut plan, &calls, &contents).is_err();
    assert!(!is_refused || contents.iter().any(|row| row.offset_bytes < 0));
    check_contents(&plan);
    plan.lanes.iter().map(|lane| lane.steps.len()).sum()
}

#[test]
fn a_slice_of_the_fuzzing() {
    // Most inputs still have steps.
    assert!((0..500).map(input).sum::<usize>() > 1000);
}

/// The rows that there may be at most, on a real bound: each ends in an error.
#[test]
#[ignore = "a gigabyte of rows: make fuzz"]
fn fuzz_deep_paths() {
    let deep = |id: i64| PathState {
        path_id: id,
        path: format!("{}/{id}", "/a".repeat(100)),
        kind: "file".into(),
        ..PathState::default()
    };
    let snapshot: Vec<_> = (0..MOST_PATHS as i64).map(deep).collect();
    let error = plan_all(&[], &[], &snapshot, &[], MOST_BYTES).unwrap_err();
    assert!(error.contains("the directories above them, take more than 2147483648"), "{error}");
}

#[test]
#[ignore = "a gigabyte of copies: make fuzz"]
fn fuzz_copies_of_descriptors() {
    const OPENS: i64 = 20_000;
    let opens = (0..OPENS).map(|id| RecordedCall {
        call_id: id,
        name: "openat".into(),
        begin_ns: id * 10,
        end_ns: Some(id * 10 + 5),
        result: Some(id + 3),
        path: Some("x".into()),
        path_id: Some(0),
        device: Some(1),
        inode: Some(id),
        ..RecordedCall::default()
    });
    let fork =
        RecordedCall { name: "fork".into(), begin_ns: OPENS * 10, ..RecordedCall::default() };
    let ended = RecordedCall { call_id: OPENS, end_ns: fork.begin_ns.into(), ..fork };
    let calls: Vec<_> = opens.chain([RecordedCall { result: Some(1), ..ended }]).collect();
    let child = |id: i64| RecordedThread {
        thread_id: id,
        pid: id,
        creator_id: (id > 0).then_some(0),
        created_by_call_id: (id > 0).then_some(OPENS),
        ..RecordedThread::default()
    };
    let threads: Vec<_> = (0..MOST_THREADS as i64).map(child).collect();
    let snapshot = [PathState { path: "/a".into(), kind: "file".into(), ..PathState::default() }];
    let error = plan_all(&calls, &threads, &snapshot, &[], MOST_BYTES).unwrap_err();
    assert!(error.contains("copies of descriptors"), "{error}");
}

#[test]
#[ignore = "a million inputs take some minutes: make fuzz"]
fn fuzz_recordings() {
    fuzz::run("steps of recordings", 1_000_000, input);
}
