//! A case: one point of an experiment's matrix, as the engineer's machine hands it over in JSON.
//! Every setting is explicit: the agent knows no defaults and no experiment by name.

pub mod agreement;
pub mod observation;
pub mod run;
pub mod timeline;

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::filesystem::Kind;

/// What the guest is given: the settings, the seed, and the device's parameters by name.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// Fixes rows, keys and the wait before the first transaction.
    pub seed: u64,
    /// The experiment's fields.
    pub case: Settings,
    /// The `[model]` of devices/NAME.toml: parameters of the flash module.
    pub device_model: BTreeMap<String, i64>,
}

/// The flat record of named fields; their meaning and range stand in jojlab/experiment/fields.py.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    pub device: String,
    pub filesystem: Kind,
    pub mount_options: String,
    pub workload: Workload,
    pub transactions: u64,
    pub warmup_transactions: u64,
    pub initial_rows: u64,
    pub value_bytes: u64,
    pub key_order: KeyOrder,
    pub journal_mode: JournalMode,
    pub synchronous: Synchronous,
    pub sync_call: SyncCall,
    pub batch_atomic_write: Switch,
    pub page_size_bytes: u64,
    pub wal_autocheckpoint_pages: u64,
}

/// Defines an enumeration whose JSON names and display are the same words.
macro_rules! words {
    ($(#[$meta:meta])* $name:ident { $($variant:ident = $word:literal),+ $(,)? }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
        pub enum $name { $(#[serde(rename = $word)] $variant),+ }

        impl $name {
            /// The word used in cases, tables and SQL.
            pub fn word(self) -> &'static str {
                match self { $(Self::$variant => $word),+ }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str(self.word())
            }
        }
    };
}
pub(crate) use words;

words! {
    /// What each transaction does.
    Workload { Insert = "sqlite-insert", Update = "sqlite-update", Delete = "sqlite-delete" }
}
words! {
    /// Order in which keys are inserted, updated or deleted.
    KeyOrder { Sequential = "sequential", Random = "random" }
}
words! {
    /// SQLite's journal modes (sqlite.org/pragma.html#pragma_journal_mode).
    JournalMode {
        Delete = "delete", Truncate = "truncate", Persist = "persist",
        Memory = "memory", Wal = "wal", Off = "off",
    }
}
words! {
    /// SQLite's synchronous settings (sqlite.org/pragma.html#pragma_synchronous).
    Synchronous { Off = "off", Normal = "normal", Full = "full", Extra = "extra" }
}
words! {
    /// Something that is on or off.
    Switch { On = "on", Off = "off" }
}
words! {
    /// The system call by which SQLite makes a file or a directory durable.
    SyncCall { Fsync = "fsync", Fdatasync = "fdatasync" }
}

impl Workload {
    /// The verb of its transactions, as in the transactions table.
    pub fn verb(self) -> &'static str {
        match self {
            Self::Insert => "insert",
            Self::Update => "update",
            Self::Delete => "delete",
        }
    }
}

impl Synchronous {
    /// The number `PRAGMA synchronous` reads back.
    pub fn level(self) -> i64 {
        match self {
            Self::Off => 0,
            Self::Normal => 1,
            Self::Full => 2,
            Self::Extra => 3,
        }
    }
}

impl Case {
    /// Reads a case.
    ///
    /// # Errors
    /// Naming the field, and what was expected of it.
    pub fn parse(json: &[u8]) -> Result<Self, serde_json::Error> {
        serde_json::from_slice(json)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    /// A small insert case for tests.
    pub(crate) fn settings() -> Settings {
        Settings {
            device: "emmc-galaxy-s3".into(),
            filesystem: Kind::Ext4,
            mount_options: "noatime".into(),
            workload: Workload::Insert,
            transactions: 7,
            warmup_transactions: 2,
            initial_rows: 0,
            value_bytes: 100,
            key_order: KeyOrder::Sequential,
            journal_mode: JournalMode::Truncate,
            synchronous: Synchronous::Full,
            sync_call: SyncCall::Fsync,
            batch_atomic_write: Switch::Off,
            page_size_bytes: 4096,
            wal_autocheckpoint_pages: 1000,
        }
    }

    #[test]
    fn a_case_survives_its_json() {
        let case = Case { seed: 3, case: settings(), device_model: BTreeMap::new() };
        let json = serde_json::to_vec(&case).unwrap();
        assert_eq!(Case::parse(&json).unwrap(), case);
    }

    #[test]
    fn an_unknown_field_or_word_is_refused_by_name() {
        let case = Case { seed: 3, case: settings(), device_model: BTreeMap::new() };
        let json = serde_json::to_string(&case).unwrap();
        let error = Case::parse(json.replace("truncate", "trunkate").as_bytes()).unwrap_err();
        assert!(error.to_string().contains("trunkate"), "{error}");
        let error = Case::parse(json.replace("key_order", "key_odor").as_bytes()).unwrap_err();
        assert!(error.to_string().contains("key_odor"), "{error}");
    }

    /// JSON of any shape, with numbers at the edges of their types.
    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<u64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            ".{0,12}".prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 16, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map(".{0,6}", inner, 0..4)
                    .prop_map(|fields| fields.into_iter().collect()),
            ]
        })
    }

    proptest! {
        #[test]
        fn any_value_of_a_field_is_read_or_refused(which: prop::sample::Index, new in any_json()) {
            let case = Case { seed: 3, case: settings(), device_model: BTreeMap::new() };
            let mut json = serde_json::to_value(&case).unwrap();
            let fields = json["case"].as_object_mut().unwrap();
            let name = which.get(&fields.keys().cloned().collect::<Vec<_>>()).clone();
            fields.insert(name.clone(), new.clone());
            // What is read is what was written: nothing is rounded, cut off or guessed.
            if let Ok(read) = Case::parse(json.to_string().as_bytes()) {
                prop_assert_eq!(&serde_json::to_value(read.case).unwrap()[&name], &new);
            }
        }

        #[test]
        fn damaged_bytes_never_panic(at: prop::sample::Index, bytes: Vec<u8>) {
            let case = Case { seed: 3, case: settings(), device_model: BTreeMap::new() };
            let mut json = serde_json::to_vec(&case).unwrap();
            let at = at.index(json.len());
            let end = json.len().min(at + bytes.len() / 2);
            json.splice(at..end, bytes);
            let _ = Case::parse(&json);
        }
    }
}
