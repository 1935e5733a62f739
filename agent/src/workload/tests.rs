//! Records of every kind are read by the kind whose word they have.

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
            "workload": "replay", "script": "", "recording": "/recording", "timing": "none",
            "timing_percent": 100, "recorded_root": "/",
        }),
    ]
}

fn read_fields(fields: Map<String, Value>) -> Result<Box<dyn Asked>, WorkloadError> {
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
        ("workload", "sqlite-insert, sqlite-update, sqlite-delete, sql, sql-recorded, file-write"),
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
fn what_is_needed_is_what_the_record_asks_for() {
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
