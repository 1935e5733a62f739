//! A case: one point of an experiment's matrix, or one for this machine, without device and
//! filesystem. Every setting is explicit: the agent knows no defaults and no experiment by name.
//! The part that a workload alone has are the fields as they came; which there must be is for the
//! kind of workload to say, whose words `workload::read` knows.

use std::collections::BTreeMap;

use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use super::{Background, words};
use crate::filesystem::Filesystem;

/// The word of the field `workload`, and all fields with it.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(transparent)]
pub struct WorkloadFields(Map<String, Value>);

impl WorkloadFields {
    /// Return the workload of named fields.
    ///
    /// # Errors
    /// If none of them is the word `workload`.
    pub fn new(fields: Map<String, Value>) -> Result<Self, serde_json::Error> {
        match fields.get("workload") {
            Some(Value::String(_)) => Ok(Self(fields)),
            Some(other) => {
                let what = format!("workload: {other} where a word was expected");
                Err(serde_json::Error::custom(what))
            }
            None => Err(serde_json::Error::missing_field("workload")),
        }
    }

    /// The word that names the workload.
    pub fn word(&self) -> &str {
        self.0.get("workload").and_then(Value::as_str).unwrap_or_default()
    }

    /// The fields as one kind of workload has them.
    ///
    /// # Errors
    /// Naming the field, and what was expected of it.
    pub fn read<T: DeserializeOwned + Serialize>(&self) -> Result<T, serde_json::Error> {
        let read: T = serde_json::from_value(self.0.clone().into())?;
        // serde's own deny_unknown_fields knows no struct made of others
        // (serde.rs/attr-flatten.html).
        let Value::Object(known) = serde_json::to_value(&read)? else { return Ok(read) };
        match self.0.keys().find(|name| !known.contains_key(*name)) {
            Some(name) => Err(serde_json::Error::custom(format!("unknown field `{name}`"))),
            None => Ok(read),
        }
    }
}

impl<'de> Deserialize<'de> for WorkloadFields {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::new(Map::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

/// Parameters of the flash module, by name: the `[model]` of devices/NAME.toml.
pub type DeviceModel = BTreeMap<String, i64>;

/// The case of a guest: the settings, the seed, and the device's parameters by name.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// Fixes rows, keys and the wait before the first transaction.
    pub seed: u64,
    /// The experiment's fields.
    pub case: Settings,
    /// The modelled device. None with `disk`.
    pub device_model: Option<DeviceModel>,
    /// The modelled device of the journal, where the journal has one of its own.
    pub journal_model: Option<DeviceModel>,
    /// In place of a model: the disk that the guest has, by its name in the kernel.
    pub disk: Option<String>,
}

/// The flat record of named fields; their meaning and range stand in jojlab/model/.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
pub struct Settings {
    pub device: String,
    pub journal_device: String,
    pub completion: Completion,
    pub filesystem: Filesystem,
    pub mkfs_options: String,
    pub mount_options: String,
    pub background: Background,
    /// Allocators of the buffers of UBI and of UBIFS; without, they are the distribution's own
    /// modules.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ubi_allocator: Option<Allocator>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ubifs_allocator: Option<Allocator>,
    /// All other fields; the workload refuses what it does not know.
    #[serde(flatten)]
    pub workload: WorkloadFields,
}

words! {
    /// The allocator of a buffer in the kernel; kernel/ubi/chosen_buffers.c.
    Allocator { Vmalloc = "vmalloc", Kmalloc = "kmalloc", KmemCache = "kmem_cache" }
}

words! {
    /// The way in which the driver of the device learns that a request is done;
    /// kernel/flash/dispatch.c.
    Completion { Direct = "direct", Interrupt = "interrupt", Polling = "polling" }
}

/// The case of a live run.
#[derive(Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LiveCase {
    /// Fixes rows, keys and the contents of files.
    pub seed: u64,
    pub case: LiveSettings,
}

/// The fields of a case that a live one has.
#[derive(Debug, PartialEq, Deserialize, Serialize)]
pub struct LiveSettings {
    pub background: Background,
    /// The filesystem that is made on raw NAND; without, the workload's directory is there already.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filesystem: Option<Filesystem>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mount_options: Option<String>,
    /// As of a case of the lab.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ubi_allocator: Option<Allocator>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ubifs_allocator: Option<Allocator>,
    /// All other fields; the workload refuses what it does not know.
    #[serde(flatten)]
    pub workload: WorkloadFields,
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::{Value, from_slice, from_str, json};

    /// A small insert case for tests.
    fn settings() -> Settings {
        Settings {
            device: "emmc-galaxy-s3".into(),
            journal_device: "none".into(),
            completion: Completion::Interrupt,
            filesystem: Filesystem::from_word("ext4").unwrap(),
            mkfs_options: String::new(),
            mount_options: "noatime".into(),
            background: Background::None,
            ubi_allocator: None,
            ubifs_allocator: None,
            workload: serde_json::from_value(json!({
                "workload": "sqlite-insert", "transactions": 7, "key_order": "random",
            }))
            .unwrap(),
        }
    }

    pub(crate) fn small_case() -> Case {
        let (device_model, journal_model) = (Some(BTreeMap::new()), None);
        Case { seed: 3, case: settings(), device_model, journal_model, disk: None }
    }

    #[test]
    fn a_case_survives_its_json() {
        let case = small_case();
        let json = serde_json::to_vec(&case).unwrap();
        assert_eq!(from_slice::<Case>(&json).unwrap(), case);
    }

    #[test]
    fn an_unknown_word_or_a_missing_field_is_refused_by_name() {
        let json = serde_json::to_string(&small_case()).unwrap();
        for (old, new, words) in [
            ("\"ext4\"", "\"ext7\"", "ext7"),
            ("mkfs_options", "mkfs_option", "mkfs_options"),
            ("\"sqlite-insert\"", "5", "workload: 5 where a word was expected"),
            ("\"workload\"", "\"worklode\"", "missing field `workload`"),
        ] {
            let error = from_str::<Case>(&json.replace(old, new)).unwrap_err();
            assert!(error.to_string().contains(words), "{error}");
        }
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
        fn one_field_of_any_value_is_read_or_refused(
            which: prop::sample::Index,
            new in any_json(),
        ) {
            let case = small_case();
            let mut json = serde_json::to_value(&case).unwrap();
            let fields = json["case"].as_object_mut().unwrap();
            let name = which.get(&fields.keys().cloned().collect::<Vec<_>>()).clone();
            fields.insert(name.clone(), new.clone());
            // What is read is what was written: nothing is rounded, cut off or guessed. Reading a
            // long fraction may round it.
            let new: Value = from_str(&new.to_string()).unwrap();
            if let Ok(read) = from_str::<Case>(&json.to_string()) {
                prop_assert_eq!(&serde_json::to_value(read.case).unwrap()[&name], &new);
            }
        }

        #[test]
        fn damaged_bytes_never_panic(at: prop::sample::Index, bytes: Vec<u8>) {
            let case = small_case();
            let mut json = serde_json::to_vec(&case).unwrap();
            let at = at.index(json.len());
            let end = json.len().min(at + bytes.len() / 2);
            json.splice(at..end, bytes);
            let _ = from_slice::<Case>(&json);
        }
    }

    #[test]
    fn a_live_case_is_a_workload_and_what_goes_on_beside_it() {
        let text = r#"{"seed": 5, "case": {
            "background": "cpu", "workload": "file-write", "threads": 2}}"#;
        let case = from_str::<LiveCase>(text).unwrap();
        assert_eq!((case.seed, case.case.background), (5, Background::Cpu));
        assert_eq!(case.case.workload.word(), "file-write");
        assert_eq!(
            serde_json::to_value(case.case.workload).unwrap(),
            serde_json::json!({ "workload": "file-write", "threads": 2 })
        );
        let error = from_str::<LiveCase>(&text.replace("workload", "work")).unwrap_err();
        assert!(error.to_string().contains("missing field `workload`"), "{error}");
    }
}
