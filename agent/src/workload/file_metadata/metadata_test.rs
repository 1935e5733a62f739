//! Changes of names in real directories on this machine.

use std::num::NonZeroU64;

use super::*;
use crate::record::Switch;
use crate::workload::files::watched::{OPERATIONS, refusal, run, run_in, sync_calls};
use crate::workload::kind::Asked;

#[test]
fn every_change_of_names_is_made_and_synced_as_asked() {
    use MetadataOperation::{Create, Mkdir, Rename, Stat, Unlink};
    for metadata_operation in [Create, Unlink, Rename, Mkdir, Stat] {
        for syncs in 0..4_u8 {
            let switch = |on| if on { Switch::On } else { Switch::Off };
            let settings = FileMetadataSettings {
                metadata_operation,
                sync_file: switch(syncs & 1 > 0),
                sync_directory: switch(syncs & 2 > 0),
                ..metadata_settings()
            };
            let directory = tempfile::tempdir().unwrap();
            let workload = settings.prepare(directory.path(), 5);
            if metadata_operation == Stat && syncs > 0 {
                assert!(refusal(workload).contains("stat changes nothing"));
                continue;
            }
            let (closed, _) = run(workload.unwrap());
            let due = i64::from(syncs.count_ones()) * OPERATIONS.cast_signed();
            assert_eq!(sync_calls(&closed), due, "{metadata_operation} {syncs}");
            let names = std::fs::read_dir(directory.path().join("names")).unwrap().count() as u64;
            assert_eq!(names, if metadata_operation == Unlink { 0 } else { OPERATIONS });
        }
    }
}

#[test]
fn each_thread_changes_names_of_its_own() {
    let directory = tempfile::tempdir().unwrap();
    let threads = NonZeroU64::new(4).unwrap();
    run_in(directory.path(), &FileMetadataSettings { threads, ..metadata_settings() });
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 4);
}

#[test]
fn what_a_time_may_outlast_is_refused() {
    let (transactions, duration_ms) = (0, 60_000);
    for metadata_operation in [MetadataOperation::Unlink, MetadataOperation::Rename] {
        let settings = FileMetadataSettings {
            transactions,
            duration_ms,
            metadata_operation,
            ..metadata_settings()
        };
        let directory = tempfile::tempdir().unwrap();
        let error = refusal(settings.prepare(directory.path(), 5));
        assert!(error.contains("needs its files made before"), "{error}");
    }
}

/// A small case of creates.
pub fn metadata_settings() -> FileMetadataSettings {
    FileMetadataSettings {
        workload: FileMetadataWorkload::Metadata,
        transactions: 7,
        duration_ms: 0,
        warmup_transactions: 2,
        threads: NonZeroU64::MIN,
        metadata_operation: MetadataOperation::Create,
        sync_file: Switch::On,
        sync_directory: Switch::Off,
    }
}
