//! Real SQLite on this machine's own files: what the workload promises, without a guest.

use super::*;
use crate::case::sqlite::tests::settings;
use crate::case::sqlite::{KeyOrder, Synchronous};

/// Notes the phases and counts time in steps of its own.
#[derive(Default)]
struct Notes {
    phases: Vec<&'static str>,
    open: bool,
    time_ns: std::cell::Cell<i64>,
}

impl Observer for Notes {
    fn enter(&mut self, phase: &'static str) -> anyhow::Result<()> {
        assert!(!self.open);
        self.open = true;
        self.phases.push(phase);
        Ok(())
    }
    fn leave(&mut self) -> anyhow::Result<()> {
        assert!(self.open);
        self.open = false;
        Ok(())
    }
    fn between_transactions(&mut self) -> anyhow::Result<()> {
        assert!(self.open);
        Ok(())
    }
    fn now_ns(&self) -> i64 {
        self.time_ns.set(self.time_ns.get() + 1);
        self.time_ns.get()
    }
}

fn run(settings: &SqliteSettings) -> (Notes, Finished) {
    let directory = tempfile::tempdir().unwrap();
    let mut sqlite = Sqlite::prepare(directory.path(), settings, 5).unwrap();
    let mut notes = Notes::default();
    sqlite.run(&mut notes).unwrap();
    let finished = sqlite.close().unwrap();
    finished.check().unwrap();
    (notes, finished)
}

#[test]
fn every_mode_and_operation_leaves_a_sound_database() {
    use JournalMode::{Delete, Memory, Off, Persist, Truncate, Wal};
    for journal_mode in [Delete, Truncate, Persist, Memory, Wal, Off] {
        for workload in [SqliteWorkload::Insert, SqliteWorkload::Update, SqliteWorkload::Delete] {
            for key_order in [KeyOrder::Sequential, KeyOrder::Random] {
                let settings = SqliteSettings {
                    journal_mode,
                    workload,
                    key_order,
                    initial_rows: 50,
                    ..settings()
                };
                let (_, finished) = run(&settings);
                let changes = finished.transactions.iter().filter(|t| t.kind == workload.verb());
                assert_eq!(changes.count(), 9, "{journal_mode} {workload} {key_order}");
            }
        }
    }
}

#[test]
fn a_commit_makes_the_syncs_its_journal_mode_needs() {
    // attribution by system call of one insert at synchronous=FULL; EXTRA adds a directory sync
    // after the journal is gone in DELETE mode (sqlite.org/pragma.html#pragma_synchronous).
    use JournalMode::{Delete, Memory, Off, Persist, Truncate, Wal};
    let expected = [
        (Delete, Synchronous::Full, 4),
        (Delete, Synchronous::Extra, 5),
        (Truncate, Synchronous::Full, 5),
        (Persist, Synchronous::Full, 5),
        (Wal, Synchronous::Full, 1),
        (Wal, Synchronous::Normal, 0),
        (Memory, Synchronous::Full, 1),
        (Off, Synchronous::Full, 1),
        (Truncate, Synchronous::Off, 0),
    ];
    for (journal_mode, synchronous, syncs) in expected {
        let (_, finished) = run(&SqliteSettings { journal_mode, synchronous, ..settings() });
        let last = finished.transactions.iter().rfind(|t| t.kind == "insert").unwrap();
        assert_eq!(last.sync_calls, syncs, "{journal_mode} {synchronous}");
    }
}

#[test]
fn a_full_wal_is_checkpointed_apart_from_the_commits() {
    let settings = SqliteSettings {
        journal_mode: JournalMode::Wal,
        wal_autocheckpoint_pages: 2,
        warmup_transactions: 0,
        ..settings()
    };
    let (notes, finished) = run(&settings);
    let kinds: Vec<&str> = finished.transactions.iter().map(|t| t.kind.as_str()).collect();
    assert!(kinds.iter().filter(|kind| **kind == "checkpoint").count() >= 3, "{kinds:?}");
    assert_eq!(notes.phases[..3], ["commit", "checkpoint", "commit"]);
    assert_eq!(*notes.phases.last().unwrap(), "checkpoint");
    let checkpoint = finished.transactions.iter().find(|t| t.kind == "checkpoint").unwrap();
    assert!(checkpoint.wal_frames >= 2 && checkpoint.sync_calls >= 1, "{checkpoint:?}");
}

#[test]
fn the_configuration_is_what_sqlite_reads_back() {
    let directory = tempfile::tempdir().unwrap();
    let settings = SqliteSettings { page_size_bytes: 8192, ..settings() };
    let sqlite = Sqlite::prepare(directory.path(), &settings, 5).unwrap();
    let configuration = sqlite.configuration().unwrap();
    let main = &configuration["databases"]["main"];
    assert_eq!(main["page_size"], "8192");
    assert_eq!(main["journal_mode"], "truncate");
    assert_eq!(main["synchronous"], "2");
    let options = configuration["sqlite_compile_options"].to_string();
    assert!(options.contains("ENABLE_BATCH_ATOMIC_WRITE"), "{options}");
}

#[test]
fn a_setting_sqlite_refuses_fails_the_case() {
    let directory = tempfile::tempdir().unwrap();
    let settings = SqliteSettings { page_size_bytes: 1000, ..settings() };
    let error = Sqlite::prepare(directory.path(), &settings, 5).err().unwrap().to_string();
    assert!(error.contains("page_size reads back 4096 where 1000 was set"), "{error}");
}
