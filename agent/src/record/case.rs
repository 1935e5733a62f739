//! A case: one point of an experiment's matrix. Every setting is explicit: the agent knows no
//! defaults and no experiment by name.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Background, Filesystem, WorkloadFields, words};

/// Parameters of the flash module, by name: the `[model]` of devices/NAME.toml.
pub type DeviceModel = BTreeMap<String, i64>;

/// What the guest is given: the settings, the seed, and the device's parameters by name.
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
    /// Of the buffers of UBI and of UBIFS; without, they are the distribution's own modules.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ubi_allocator: Option<Allocator>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ubifs_allocator: Option<Allocator>,
    /// All other fields; the workload refuses what it does not know.
    #[serde(flatten)]
    pub workload: WorkloadFields,
}

words! {
    /// What allocates buffers of the kernel; kernel/ubi/chosen_buffers.c.
    Allocator { Vmalloc = "vmalloc", Kmalloc = "kmalloc", KmemCache = "kmem_cache" }
}

words! {
    /// How the driver of the device learns that a request is done; kernel/flash/dispatch.c.
    Completion { Direct = "direct", Interrupt = "interrupt", Polling = "polling" }
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
}
