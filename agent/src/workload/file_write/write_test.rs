//! Writes to real files on this machine: what the workload promises, without a guest. Bytes and
//! calls are compared with the kernel's own count of them, and with strace's where it is installed.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU64;
use std::process::Command;

use super::*;
use crate::workload::files::engine::FileSettings;
use crate::workload::files::engine::tests::file_settings;
use crate::workload::files::stream::Access;
use crate::workload::files::watched::{OPERATIONS, refusal, run, run_in, sync_calls};
use crate::workload::kind::WorkloadRequest;
use crate::workload::threads::noted_phases::NotedPhases;

const SYNC_MODES: [SyncMode; 12] = [
    SyncMode::None,
    SyncMode::OSync,
    SyncMode::ODsync,
    SyncMode::Fsync,
    SyncMode::Fdatasync,
    SyncMode::ODirect,
    SyncMode::ODirectSync,
    SyncMode::Mmap,
    SyncMode::MmapAsync,
    SyncMode::MmapSync,
    SyncMode::SyncFileRange,
    SyncMode::RwfDsync,
];
const ACCESSES: [Access; 5] =
    [Access::Sequential, Access::Random, Access::Shuffled, Access::Append, Access::Rewrite];

#[test]
fn every_way_of_writing_writes_each_record_once() {
    for sync_mode in SYNC_MODES {
        for access in ACCESSES {
            let directory = tempfile::tempdir().unwrap();
            let files = FileSettings { access, ..file_settings() };
            let settings = FileWriteSettings { sync_mode, files, ..write_settings() };
            let workload = settings.prepare(directory.path(), 5).unwrap();
            let (closed, increase) = run(workload);
            let calls = if sync_mode.is_mapped() { 0 } else { OPERATIONS };
            assert_eq!(increase["syscw"], calls, "{sync_mode} {access}");
            assert_eq!(increase["wchar"], calls * 4096, "{sync_mode} {access}");
            let due = if sync_mode.has_call() { OPERATIONS } else { 0 };
            assert_eq!(sync_calls(&closed), due.cast_signed(), "{sync_mode}");
            assert!(closed.transactions.iter().all(|row| row.kind == "write"
                && row.begin_ns <= row.commit_ns
                && row.commit_ns <= row.return_ns));
        }
    }
}

#[test]
fn the_kernel_has_the_flags_that_the_sync_mode_names_and_no_more() {
    for sync_mode in SYNC_MODES {
        let directory = tempfile::tempdir().unwrap();
        let settings = FileWriteSettings { sync_mode, ..write_settings() };
        let workload = settings.prepare(directory.path(), 5).unwrap();
        let flags = match sync_mode {
            SyncMode::OSync => "O_SYNC",
            SyncMode::ODsync => "O_DSYNC",
            SyncMode::ODirect => "O_DIRECT",
            SyncMode::ODirectSync => "O_SYNC|O_DIRECT",
            _ => "no flags",
        };
        assert_eq!(workload.configuration().unwrap()["open_flags"], flags, "{sync_mode}");
    }
}

#[test]
fn a_sync_is_made_when_it_is_due_and_no_oftener() {
    let directory = tempfile::tempdir().unwrap();
    let settings = FileWriteSettings { sync_every: 4, ..write_settings() };
    let workload = settings.prepare(directory.path(), 5).unwrap();
    let (closed, _) = run(workload);
    let calls: Vec<i64> = closed.transactions.iter().map(|row| row.sync_calls).collect();
    assert_eq!(calls, [0, 0, 0, 1, 0, 0, 0, 1, 0]);
}

#[test]
fn a_write_that_is_lost_is_noticed() {
    let directory = tempfile::tempdir().unwrap();
    let mut workload = write_settings().prepare(directory.path(), 5).unwrap();
    workload.run(&mut NotedPhases::default()).unwrap();
    let closed = workload.close().unwrap();
    closed.remains.check().unwrap();
    let path = directory.path().join("data");
    let mut contents = std::fs::read(&path).unwrap();
    contents[5 * 4096 + 512] ^= 1;
    std::fs::write(&path, &contents).unwrap();
    assert!(closed.remains.check().unwrap_err().to_string().contains("record 5 does not hold"));
    std::fs::write(&path, &contents[1..]).unwrap();
    assert!(
        closed.remains.check().unwrap_err().to_string().contains("65535 bytes long where 65536")
    );
}

#[test]
fn contradictory_sync_modes_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let refusal = |settings: FileWriteSettings| refusal(settings.prepare(directory.path(), 1));
    let direct = FileWriteSettings { sync_mode: SyncMode::ODirect, ..write_settings() };
    let files = FileSettings { record_bytes: 1000, ..file_settings() };
    let odd = FileWriteSettings { files, ..direct };
    assert!(refusal(odd).contains("a multiple of 512 bytes, not 1000"));
    let in_write = FileWriteSettings { sync_mode: SyncMode::OSync, ..write_settings() };
    let seldom = FileWriteSettings { sync_every: 2, ..in_write };
    assert!(refusal(seldom).contains("sync_every must be 1"));
    let files = FileSettings { file_bytes: 1 << 62, ..file_settings() };
    let huge = FileWriteSettings { files, ..write_settings() };
    assert!(refusal(huge).contains("three quarters"));
}

/// Return what strace(1) shows of a case: the words of the calls on its files, with their count.
fn calls_by_strace(settings: &FileWriteSettings) -> Option<BTreeMap<String, u64>> {
    let logs = tempfile::tempdir().unwrap();
    let program = std::env::current_exe().unwrap();
    // -ff: a log for each thread, in which no line is broken by another's.
    let status = Command::new("strace")
        .args(["-ff", "-y", "-qq", "-o"])
        .arg(logs.path().join("log"))
        .arg("-e")
        .arg("trace=pread64,pwrite64,pwritev2,fsync,fdatasync,msync,sync_file_range")
        .arg(program)
        .args(["--exact", "workload::file_write::tests::child_of_strace", "--ignored"])
        .env("JOJ_TEST_SETTINGS", serde_json::to_string(settings).unwrap())
        .stdout(std::process::Stdio::null())
        .status();
    if !status.ok()?.success() {
        return None;
    }
    let mut calls = BTreeMap::new();
    for log in std::fs::read_dir(logs.path()).unwrap() {
        for line in std::fs::read_to_string(log.unwrap().path()).unwrap().lines() {
            let call = line.split('(').next().unwrap();
            // msync names no file.
            if call == "msync" || line.contains("/data") {
                *calls.entry(call.to_owned()).or_default() += 1;
            }
            if call.starts_with("pwrite") || (call == "pread64" && line.contains("/data")) {
                assert!(line.ends_with("= 4096"), "{line}");
            }
        }
    }
    Some(calls)
}

#[test]
#[ignore = "strace runs it, from the test below"]
fn child_of_strace() {
    let settings = std::env::var("JOJ_TEST_SETTINGS").unwrap();
    let settings: FileWriteSettings = serde_json::from_str(&settings).unwrap();
    let directory = tempfile::tempdir().unwrap();
    run_in(directory.path(), &settings);
}

#[test]
fn strace_sees_the_calls_that_the_case_names() {
    if calls_by_strace(&write_settings()).is_none() {
        eprintln!("skipped: strace is not installed, or may not trace here");
        return;
    }
    for sync_mode in SYNC_MODES {
        let sync = match sync_mode {
            SyncMode::Fsync => "fsync",
            SyncMode::Fdatasync => "fdatasync",
            SyncMode::MmapAsync | SyncMode::MmapSync => "msync",
            SyncMode::SyncFileRange => "sync_file_range",
            _ => "",
        };
        let write = match sync_mode {
            SyncMode::RwfDsync => "pwritev2",
            _ if sync_mode.is_mapped() => "",
            _ => "pwrite64",
        };
        let read = if sync_mode.is_mapped() { "" } else { "pread64" };
        // Of each of three threads' hundred operations 30 are reads.
        for (threads, transactions, read_percent, reads) in [(1, 7, 0, 0), (3, 297, 30, 90)] {
            let threads = NonZeroU64::new(threads).unwrap();
            let warmup_transactions = 3;
            let files =
                FileSettings { threads, warmup_transactions, transactions, ..file_settings() };
            let settings = FileWriteSettings { sync_mode, files, read_percent, ..write_settings() };
            let writes = warmup_transactions + transactions - reads;
            let wanted: BTreeMap<String, u64> = [(sync, writes), (write, writes), (read, reads)]
                .into_iter()
                .filter(|(call, count)| !call.is_empty() && *count > 0)
                .map(|(call, count)| (call.to_owned(), count))
                .collect();
            assert_eq!(calls_by_strace(&settings), Some(wanted), "{sync_mode} {threads}");
        }
    }
}

#[test]
fn threads_share_the_operations_out_on_files_of_their_own() {
    let threads = NonZeroU64::new(4).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let files = FileSettings { threads, ..file_settings() };
    let settings = FileWriteSettings { files, ..write_settings() };
    let workload = settings.prepare(directory.path(), 5).unwrap();
    let (closed, _) = run(workload);
    let of = |thread, phase: &str| {
        let mut rows = closed.transactions.iter();
        rows.by_ref().filter(|row| row.thread == thread && row.phase == phase).count()
    };
    // 2 of warm-up, 7 measured: the first threads have the rest.
    assert_eq!([0, 1, 2, 3].map(|thread| of(thread, "warm-up")), [1, 1, 0, 0]);
    assert_eq!([0, 1, 2, 3].map(|thread| of(thread, "commit")), [2, 2, 2, 1]);
    let tids: BTreeSet<i64> = closed.transactions.iter().map(|row| row.tid).collect();
    assert_eq!(tids.len(), 4);
    assert!(closed.transactions.is_sorted_by_key(|row| row.begin_ns));
    let files = std::fs::read_dir(directory.path()).unwrap().count();
    assert_eq!(files, 4);
}

#[test]
fn reads_among_writes_find_what_was_written_last() {
    for sync_mode in SYNC_MODES {
        for access in [Access::Sequential, Access::Random, Access::Shuffled, Access::Rewrite] {
            let directory = tempfile::tempdir().unwrap();
            let files = FileSettings {
                access,
                overlap_percent: if access == Access::Shuffled { 30 } else { 0 },
                warmup_transactions: 50,
                transactions: 150,
                ..file_settings()
            };
            let settings =
                FileWriteSettings { sync_mode, files, read_percent: 40, ..write_settings() };
            let workload = settings.prepare(directory.path(), 5).unwrap();
            assert!(workload.needs_cold_cache());
            let (closed, increase) = run(workload);
            let reads = closed.transactions.iter().filter(|row| row.kind == "read").count();
            assert_eq!(reads, 80, "{sync_mode} {access}");
            let calls = if sync_mode.is_mapped() { 0 } else { 120 };
            assert_eq!(increase["wchar"], calls * 4096, "{sync_mode} {access}");
        }
    }
}

#[test]
fn a_time_ends_each_thread_s_operations() {
    for threads in [1, 3] {
        let threads = NonZeroU64::new(threads).unwrap();
        let directory = tempfile::tempdir().unwrap();
        let (transactions, duration_ms) = (0, 5);
        let files = FileSettings { transactions, duration_ms, threads, ..file_settings() };
        let settings = FileWriteSettings { files, ..write_settings() };
        let workload = settings.prepare(directory.path(), 5).unwrap();
        let (closed, _) = run(workload);
        let measured = closed.transactions.iter().filter(|row| row.phase == "commit");
        let (mut last, mut before_last) = (i64::MAX, i64::MIN);
        for thread in 0..threads.get().cast_signed() {
            let mut own = measured.clone().filter(|row| row.thread == thread).rev();
            last = last.min(own.next().unwrap().return_ns);
            before_last = before_last.max(own.next().map_or(i64::MIN, |row| row.return_ns));
        }
        // One deadline for all, past which each thread's last one alone returns.
        assert!(before_last < last, "{before_last} {last}");
        let warmup = closed.transactions.iter().filter(|row| row.phase == "warm-up").count();
        assert_eq!(warmup, 2);
    }
}

#[test]
fn appending_beyond_the_file_within_a_duration_is_an_error() {
    let directory = tempfile::tempdir().unwrap();
    let (transactions, duration_ms) = (0, 60_000);
    let access = Access::Append;
    let files = FileSettings { transactions, duration_ms, access, ..file_settings() };
    let settings = FileWriteSettings { files, ..write_settings() };
    let mut workload = settings.prepare(directory.path(), 5).unwrap();
    let error = workload.run(&mut NotedPhases::default()).unwrap_err().to_string();
    assert!(error.contains("file_bytes ran out after 16 operations"), "{error}");
}

/// A small case of random writes.
pub fn write_settings() -> FileWriteSettings {
    FileWriteSettings {
        workload: FileWriteWorkload::Write,
        files: file_settings(),
        sync_mode: SyncMode::Fsync,
        sync_every: 1,
        read_percent: 0,
    }
}
