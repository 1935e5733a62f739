//! What a guest is to do: one job, told apart by its word `job`.

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
    /// Find what of a workload survives when the power is cut.
    PowerCuts(Box<PowerCuts>),
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
    /// What the filesystem's device is made of, where it is not one disk.
    pub stack: Option<Stack>,
}

/// A case, and how often its run is cut.
#[derive(Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PowerCuts {
    pub cuts: u64,
    pub of: Case,
}

impl Job {
    /// Reads a job.
    ///
    /// # Errors
    /// Naming the field, and what was expected of it.
    pub fn parse(json: &[u8]) -> Result<Self, serde_json::Error> {
        serde_json::from_slice(json)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::small_case;
    use super::*;

    fn parse(record: &Value) -> Result<Job, String> {
        Job::parse(record.to_string().as_bytes()).map_err(|error| error.to_string())
    }

    #[test]
    fn a_job_is_what_its_word_says() {
        let mut record = json!(small_case());
        record["job"] = "case".into();
        assert_eq!(parse(&record), Ok(Job::Case(Box::new(small_case()))));
        let record = json!({ "job": "power-cuts", "cuts": 4, "of": small_case() });
        let cuts = PowerCuts { cuts: 4, of: small_case() };
        assert_eq!(parse(&record), Ok(Job::PowerCuts(Box::new(cuts))));
        let model = json!({ "capacity_bytes": 1 });
        let record = json!({ "job": "self-test", "filesystem": "xfs", "device_model": model });
        let Ok(Job::SelfTest(test)) = parse(&record) else { panic!("{record}") };
        assert_eq!((test.filesystem, test.partition), (Filesystem::Xfs, false));
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
            (json!({ "job": "power-cuts", "cuts": 1, "case": {} }), "unknown field `case`"),
        ] {
            let error = parse(&record).unwrap_err();
            assert!(error.contains(words), "{error}");
        }
        assert!(Job::parse(b"{").is_err());
    }
}
