//! Passes over a real file on this machine.

use super::*;
use crate::workload::files::watched::refusal;
use crate::workload::threads::noted_phases::NotedPhases;

#[test]
fn each_pass_is_over_the_whole_file_and_syncs_at_its_end() {
    let directory = tempfile::tempdir().unwrap();
    let mut workload = passes_settings().prepare(directory.path(), 5).unwrap();
    let mut notes = NotedPhases::default();
    workload.run(&mut notes).unwrap();
    assert_eq!(notes.phases, ["commit"; 5]);
    let closed = workload.close().unwrap();
    closed.remains.check().unwrap();
    for (pass, syncs) in Pass::ALL.into_iter().zip([4, 4, 0, 0, 4]) {
        let own: Vec<_> =
            closed.transactions.iter().filter(|row| row.kind == pass.verb()).collect();
        assert_eq!(own.len(), 16, "{pass:?}");
        assert!(own.iter().all(|row| row.phase == "commit" && row.begin_ns < row.return_ns));
        assert_eq!(own.iter().map(|row| row.sync_calls).sum::<i64>(), syncs, "{pass:?}");
    }
    let path = directory.path().join("data");
    let mut contents = std::fs::read(&path).unwrap();
    contents[5 * 4096 + 512] ^= 1;
    std::fs::write(&path, &contents).unwrap();
    assert!(closed.remains.check().unwrap_err().to_string().contains("record 5 does not hold"));
}

#[test]
fn a_read_that_gives_other_bytes_is_noticed() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("data");
    let file = OpenOptions::new().read(true).write(true).create_new(true).open(&path).unwrap();
    let mut passed = PassedFile::new(path.clone(), file, &passes_settings(), 5);
    let plan = Plan::new(0, passes_settings().records(), 0);
    let mut pass = |pass| threads::run(&mut [PassTask::new(&mut passed, pass)], plan, &mut ());
    pass(Pass::Write).unwrap();
    pass(Pass::Read).unwrap();
    let mut contents = std::fs::read(&path).unwrap();
    contents[7 * 4096] ^= 1;
    std::fs::write(&path, &contents).unwrap();
    assert!(pass(Pass::Read).unwrap_err().to_string().contains("other bytes of record 7"));
}

#[test]
fn the_operations_are_a_function_of_the_seed() {
    let hash = |seed| {
        let directory = tempfile::tempdir().unwrap();
        let mut workload = passes_settings().prepare(directory.path(), seed).unwrap();
        workload.run(&mut NotedPhases::default()).unwrap();
        workload.close().unwrap().operation_hash
    };
    assert_eq!(hash(5), hash(5));
    assert_ne!(hash(5), hash(6));
}

#[test]
fn what_would_write_nothing_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let large = FilePassesSettings { record_bytes: 1 << 20, ..passes_settings() };
    assert!(refusal(large.prepare(directory.path(), 1)).contains("raise file_bytes"));
}

/// Five passes over sixteen records.
pub fn passes_settings() -> FilePassesSettings {
    FilePassesSettings {
        workload: FilePassesWorkload::Passes,
        record_bytes: 4096,
        file_bytes: 16 * 4096,
        sync_every: 5,
    }
}
