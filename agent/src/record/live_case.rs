//! A case for this machine: a workload without device and filesystem; of a filesystem that is made
//! on raw NAND for it, the options.

use serde::{Deserialize, Serialize};

use super::{Allocator, Background, Filesystem, WorkloadFields};

/// What a live run is given.
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
    /// What is made on raw NAND; without, the workload's directory is there already.
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

impl LiveCase {
    /// Reads a case.
    ///
    /// # Errors
    /// Naming the field, and what was expected of it.
    pub fn parse(json: &[u8]) -> Result<Self, serde_json::Error> {
        serde_json::from_slice(json)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_live_case_is_a_workload_and_what_goes_on_beside_it() {
        let text = r#"{"seed": 5, "case": {
            "background": "cpu", "workload": "file-write", "threads": 2}}"#;
        let case = LiveCase::parse(text.as_bytes()).unwrap();
        assert_eq!((case.seed, case.case.background), (5, Background::Cpu));
        assert_eq!(case.case.workload.word(), "file-write");
        assert_eq!(
            serde_json::to_value(case.case.workload).unwrap(),
            serde_json::json!({ "workload": "file-write", "threads": 2 })
        );
        let error = LiveCase::parse(text.replace("workload", "work").as_bytes()).unwrap_err();
        assert!(error.to_string().contains("missing field `workload`"), "{error}");
    }
}
