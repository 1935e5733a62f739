//! Reads of real files on this machine, compared with the kernel's own count of bytes and calls.

use std::num::NonZeroU64;

use super::*;
use crate::workload::files::engine::FileSettings;
use crate::workload::files::engine::tests::file_settings;
use crate::workload::files::stream::Access;
use crate::workload::files::watched::{OPERATIONS, refusal, run, run_in};
use crate::workload::kind::Asked;

#[test]
fn reads_read_each_record_once() {
    for read_mode in [ReadMode::Buffered, ReadMode::ODirect] {
        for access in [Access::Sequential, Access::Random, Access::Rewrite] {
            let directory = tempfile::tempdir().unwrap();
            let files = FileSettings { access, ..file_settings() };
            let settings = FileReadSettings { read_mode, files, ..read_settings() };
            let workload = settings.prepare(directory.path(), 5).unwrap();
            assert!(workload.needs_cold_cache());
            let (closed, increase) = run(workload);
            // The first look at the counts is itself read, by a few calls of some hundred bytes.
            let calls = increase["syscr"];
            assert!((OPERATIONS..OPERATIONS + 9).contains(&calls), "{read_mode} {calls}");
            let more_bytes = increase["rchar"] - OPERATIONS * 4096;
            assert!(more_bytes < 1024, "{read_mode} {more_bytes}");
            assert!(closed.transactions.iter().all(|row| row.kind == "read"));
        }
    }
}

#[test]
fn each_thread_reads_a_file_of_its_own() {
    let directory = tempfile::tempdir().unwrap();
    let threads = NonZeroU64::new(4).unwrap();
    let files = FileSettings { threads, ..file_settings() };
    run_in(directory.path(), &FileReadSettings { files, ..read_settings() });
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 4);
}

#[test]
fn what_cannot_be_read_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let files = FileSettings { access: Access::Append, ..file_settings() };
    let append = FileReadSettings { files, ..read_settings() };
    assert!(refusal(append.prepare(directory.path(), 1)).contains("append"));
}

/// A small case of random reads.
pub fn read_settings() -> FileReadSettings {
    FileReadSettings {
        workload: FileReadWorkload::Read,
        files: file_settings(),
        read_mode: ReadMode::Buffered,
    }
}
