//! The job of a guest, told apart by its word `job`; and what comes after a case.

use serde::Deserialize;

use super::{Case, DeviceModel, Filesystem, Stack};

/// The record that a guest finds when it is continued.
#[derive(Debug, PartialEq, Deserialize)]
#[serde(tag = "job", rename_all = "kebab-case")]
pub enum Job {
    /// Measure a workload.
    Case(Box<Case>),
    /// Check the attribution of known bytes.
    SelfTest(SelfTest),
}

/// The self-test of attribution.
#[derive(Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SelfTest {
    pub filesystem: Filesystem,
    #[serde(default)]
    pub mkfs_options: String,
    #[serde(default)]
    pub mount_options: String,
    /// Whether the journal is on a disk of its own.
    #[serde(default)]
    pub external_journal: bool,
    /// Whether the disk's contents are handed out, as disk.img.
    #[serde(default)]
    pub disk_image: bool,
    /// As in a case.
    pub device_model: Option<DeviceModel>,
    pub disk: Option<String>,
    /// Whether the filesystem is on a partition of its disk.
    #[serde(default)]
    pub partition: bool,
    /// The stack that makes the filesystem's device, where it is not one disk.
    pub stack: Option<Stack>,
}

/// The questions about a case's run once it is over: given beside its record, and not read before,
/// so that they cannot change the run.
#[derive(Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Afterwards {
    pub power_cuts: Option<PowerCuts>,
    /// Whether the names of the kernel's functions are handed out.
    #[serde(default)]
    pub symbols: bool,
}

/// The number of states that power cuts leave and that are judged; of them, this guest has those
/// whose number leaves the rest `part` when it is divided by `parts`.
#[derive(Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PowerCuts {
    pub states: usize,
    pub part: usize,
    pub parts: usize,
    /// The hash of a state whose disks are handed out, in the place of all judgements.
    #[serde(default)]
    pub image: Option<String>,
    /// The build of User Mode Linux that judges all of them; none: the guest does.
    #[serde(default)]
    pub native: Option<String>,
}

impl Afterwards {
    /// Reads it.
    ///
    /// # Errors
    /// Naming the field, and what was expected of it.
    pub fn parse(json: &[u8]) -> Result<Self, serde_json::Error> {
        let read: Self = serde_json::from_slice(json)?;
        match &read.power_cuts {
            Some(PowerCuts { part, parts, .. }) if part >= parts => {
                Err(serde::de::Error::custom(format!("part: {part} of {parts} parts")))
            }
            _ => Ok(read),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::small_case;
    use super::*;

    fn parse(record: &Value) -> Result<Job, String> {
        serde_json::from_value(record.clone()).map_err(|error| error.to_string())
    }

    #[test]
    fn a_job_is_what_its_word_says() {
        let mut record = json!(small_case());
        record["job"] = "case".into();
        assert_eq!(parse(&record), Ok(Job::Case(Box::new(small_case()))));
        let model = json!({ "capacity_bytes": 1 });
        let record = json!({ "job": "self-test", "filesystem": "xfs", "device_model": model });
        let Ok(Job::SelfTest(test)) = parse(&record) else { panic!("{record}") };
        assert_eq!(
            (test.filesystem, test.partition),
            (Filesystem::from_word("xfs").unwrap(), false)
        );
        assert_eq!(test.device_model.unwrap()["capacity_bytes"], 1);
    }

    #[test]
    fn a_wrong_record_says_what_is_wrong_with_it() {
        for (record, words) in [
            (json!(small_case()), "missing field `job`"),
            (json!({ "job": "nap" }), "unknown variant `nap`"),
            (json!({ "job": "self-test", "filesystem": "zfs" }), "unknown variant `zfs`"),
            (
                json!({ "job": "self-test", "filesystem": "xfs", "partitions": true }),
                "unknown field `partitions`",
            ),
        ] {
            let error = parse(&record).unwrap_err();
            assert!(error.contains(words), "{error}");
        }
        assert!(serde_json::from_str::<Job>("{").is_err());
    }
    #[test]
    fn the_record_of_afterwards_is_empty_or_a_part_of_power_cuts() {
        let parse = |record: Value| {
            Afterwards::parse(record.to_string().as_bytes()).map_err(|error| error.to_string())
        };
        assert_eq!(parse(json!({})), Ok(Afterwards::default()));
        let cuts = PowerCuts { states: 9, part: 1, parts: 2, image: None, native: None };
        let record = json!({ "power_cuts": { "states": 9, "part": 1, "parts": 2 } });
        assert_eq!(parse(record), Ok(Afterwards { power_cuts: Some(cuts), symbols: false }));
        for (record, words) in [
            (json!({ "power_cuts": { "states": 9, "part": 2, "parts": 2 } }), "part: 2 of 2"),
            (json!({ "power_cut": {} }), "unknown field `power_cut`"),
        ] {
            let error = parse(record).unwrap_err();
            assert!(error.contains(words), "{error}");
        }
    }
}
