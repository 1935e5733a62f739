//! Seeded workload generators. The same seed gives the same operations on every machine.
//!
//! error, draw, ledger, power_cut, sync_site
//! -> fault: the errors that are planted beneath a program or SQLite
//! -> kind: what every kind of workload gives
//! threads: runs a kind's operations in one thread or several, phase by phase
//! regime: how far the files of databases have grown, and the checkpoints of a connection
//! sqlite, sql, file_write, file_read, file_passes, file_metadata, replay, program: the kinds;
//! files: what those of files share
//! background: a load beside the workload; `run` runs both, the same in the lab and live

pub mod background;
mod draw;
pub mod error;
mod fault;
mod file_metadata;
mod file_passes;
mod file_read;
mod file_write;
pub mod files;
pub mod kind;
pub mod ledger;
pub mod power_cut;
pub mod program;
mod regime;
mod replay;
mod sql;
mod sqlite;
mod sync_site;
pub mod threads;

use std::path::Path;

use background::{BackgroundLeft, BackgroundLoad, RemainsOfBoth};
use error::WorkloadError;
use kind::{ClosedWorkload, Workload, WorkloadKind, WorkloadRequest};
use serde_json::Value;
use threads::task::Observer;

use crate::record::{Background, WorkloadFields};

/// Every kind of workload.
const KINDS: [WorkloadKind; 9] = [
    sqlite::KIND,
    sql::KIND,
    sql::RECORDED_KIND,
    file_write::KIND,
    file_read::KIND,
    file_passes::KIND,
    file_metadata::KIND,
    replay::KIND,
    program::KIND,
];

/// Reads what a record asks for, as the kind has it that its word is of.
///
/// # Errors
/// If no kind has the word, or a field is not as the kind has it.
pub fn read(fields: &WorkloadFields) -> Result<Box<dyn WorkloadRequest>, WorkloadError> {
    let word = fields.word();
    let kind = KINDS.iter().find(|kind| kind.words.contains(&word));
    let kind = kind.ok_or_else(|| {
        let words = KINDS.map(|kind| kind.words.join(", ")).join(", ");
        WorkloadError::refusal(format!("the case: workload: {word:?} is none of {words}"))
    })?;
    (kind.read)(fields).map_err(|error| WorkloadError::refusal(format!("the case: {error}")))
}

// The course of a run, the same in the lab and on this machine: the background load goes on, the
// workload runs, and all that it wrote is written back.

/// A run that failed.
pub struct FailedRun {
    pub error: anyhow::Error,
    /// Closes the workload, if that can still be done: it knows what it had done until then.
    pub close: Box<dyn FnOnce() -> Result<ClosedWorkload, WorkloadError>>,
}

impl From<FailedRun> for anyhow::Error {
    fn from(stopped: FailedRun) -> Self {
        stopped.error
    }
}

/// Runs a prepared workload in `directory` under the eyes of `observer`, with its background load,
/// until `sync` has written everything back, which is the phase `settle`.
///
/// # Errors
/// If a step fails.
pub fn run(
    mut workload: Box<dyn Workload>,
    background: Background,
    directory: &Path,
    observer: &mut dyn Observer,
    sync: impl FnOnce() -> anyhow::Result<()>,
) -> Result<ClosedWorkload, FailedRun> {
    let background = match perform(&mut *workload, background, directory, observer) {
        Ok(background) => background,
        Err(error) => return Err(FailedRun { error, close: Box::new(move || workload.close()) }),
    };
    let mut closed = match workload.close() {
        Ok(closed) => closed,
        Err(error) => {
            let none = || Err(WorkloadError::refusal("it could not be closed".to_owned()));
            return Err(FailedRun { error: error.into(), close: Box::new(none) });
        }
    };
    if let Err(error) = sync().and_then(|()| observer.leave()) {
        return Err(FailedRun { error, close: Box::new(move || Ok(closed)) });
    }
    let Some((did, background)) = background else { return Ok(closed) };
    closed.manifest.push(("background", did));
    let workload = closed.remains;
    Ok(ClosedWorkload { remains: Box::new(RemainsOfBoth { workload, background }), ..closed })
}

/// Runs the workload until it is to be closed; gives what the background load did, and left.
fn perform(
    workload: &mut dyn Workload,
    background: Background,
    directory: &Path,
    observer: &mut dyn Observer,
) -> anyhow::Result<Option<(Value, BackgroundLeft)>> {
    let background = BackgroundLoad::start(background, directory)?;
    workload.run(observer)?;
    let background = background.map(BackgroundLoad::stop).transpose()?;
    observer.enter("settle")?;
    Ok(background)
}

#[cfg(test)]
mod tests {
    // Records of every kind are read by the kind whose word they have.
    use serde::Serialize;
    use serde::de::DeserializeOwned;
    use serde_json::{Map, Value, json};

    use super::*;

    /// The fields of a small case of each kind, but for the replay.
    fn records() -> [Value; 8] {
        [
            json!(sqlite::settings::tests::settings()),
            json!(sql::folder::tests::sql_settings("/scripts".into())),
            json!(sql::folder::tests::recorded_sql_settings("/scripts".into())),
            json!(file_write::tests::write_settings()),
            json!(file_read::tests::read_settings()),
            json!(file_passes::tests::passes_settings()),
            json!(file_metadata::tests::metadata_settings()),
            json!({
                "workload": "replay", "recording": "/recording", "timing": "none",
                "timing_percent": 100, "recorded_root": "/",
            }),
        ]
    }

    fn read_fields(fields: Map<String, Value>) -> Result<Box<dyn WorkloadRequest>, WorkloadError> {
        read(&WorkloadFields::new(fields).unwrap())
    }

    #[test]
    fn a_record_is_read_by_the_kind_of_its_word_and_no_field_of_another_is_taken() {
        for record in records() {
            let Value::Object(fields) = record else { panic!("{record}") };
            read_fields(fields.clone()).unwrap();
            for name in fields.keys().filter(|name| *name != "workload") {
                let mut fewer = fields.clone();
                fewer.remove(name);
                let error = read_fields(fewer).unwrap_err();
                assert!(error.is_wrong_use() && error.to_string().contains(name), "{error}");
            }
            let mut more = fields.clone();
            more.insert("sides".into(), 6.into());
            let error = read_fields(more).unwrap_err();
            assert!(error.is_wrong_use() && error.to_string().contains("sides"), "{error}");
        }
    }

    #[test]
    fn an_unknown_word_is_refused_with_those_that_are_known() {
        let [record, ..] = records();
        for (field, words) in [
            (
                "workload",
                "sqlite-insert, sqlite-update, sqlite-delete, sql, sql-recorded, file-write",
            ),
            ("journal_mode", "unknown variant `squalid`"),
        ] {
            let mut fields = record.as_object().unwrap().clone();
            fields.insert(field.into(), "squalid".into());
            let error = read_fields(fields).unwrap_err();
            assert!(error.is_wrong_use() && error.to_string().contains(words), "{error}");
        }
    }

    #[test]
    fn each_word_is_of_one_kind() {
        let words: Vec<&str> = KINDS.iter().flat_map(|kind| kind.words).copied().collect();
        let different: std::collections::BTreeSet<&str> = words.iter().copied().collect();
        assert_eq!(words.len(), different.len());
    }

    #[test]
    fn the_space_needed_follows_from_the_record() {
        let space = |record: &Value, changed: &[(&str, u64)]| {
            let mut fields = record.as_object().unwrap().clone();
            fields.extend(changed.iter().map(|(name, value)| ((*name).to_owned(), json!(value))));
            let kind::Space { bytes, files } = read_fields(fields).unwrap().space_needed();
            (bytes, files)
        };
        let [sqlite, _, _, write, read, _, metadata, replay] = &records();
        assert_eq!(space(write, &[("file_bytes", 1 << 20), ("threads", 3)]), (3 << 20, 3));
        assert_eq!(space(read, &[("file_bytes", 1 << 20)]), (1 << 20, 1));
        assert_eq!(space(metadata, &[("transactions", 70)]), (0, 72));
        assert_eq!(space(replay, &[]), (0, 0));
        // Nine rows are inserted beside the initial ones, in each of two databases.
        let two = [("databases", 2), ("initial_rows", 5), ("value_bytes", 92)];
        assert_eq!(space(sqlite, &two), (2 * (5 + 9) * 100, 2));
    }

    #[test]
    fn a_field_is_read_as_it_was_written_or_refused() {
        let [sqlite, _, _, write, read, _, metadata, _] = records();
        holds_values::<sqlite::settings::SqliteSettings>(&sqlite);
        holds_values::<file_write::FileWriteSettings>(&write);
        holds_values::<file_read::FileReadSettings>(&read);
        holds_values::<file_metadata::FileMetadataSettings>(&metadata);
    }

    fn holds_values<Settings: DeserializeOwned + Serialize>(record: &Value) {
        let fields = record.as_object().unwrap();
        let values = [
            json!(null),
            json!(true),
            json!(0),
            json!(-1),
            json!(u64::MAX),
            json!(1.5),
            json!(""),
            json!("wal"),
            json!("off"),
            json!([1]),
            json!({ "a": 1 }),
        ];
        for name in fields.keys() {
            for value in &values {
                let mut fields = fields.clone();
                fields.insert(name.clone(), value.clone());
                let fields = WorkloadFields::new(fields);
                let read = fields.and_then(|fields| fields.read::<Settings>());
                if let Ok(settings) = read {
                    assert_eq!(&json!(settings)[name], value, "{name}");
                }
            }
        }
    }
}
