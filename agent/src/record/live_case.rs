//! A case for this machine: a workload without device, filesystem and mount options.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use super::{Background, WorkloadFields};

/// What a live run is given.
#[derive(Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LiveCase {
    /// Fixes rows, keys and the contents of files.
    pub seed: u64,
    pub case: LiveSettings,
}

/// The fields of a case that a live one has.
#[derive(Debug, PartialEq)]
pub struct LiveSettings {
    pub background: Background,
    pub workload: WorkloadFields,
}

impl<'de> Deserialize<'de> for LiveSettings {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut record: Map<String, Value> = Map::deserialize(deserializer)?;
        let background = record.remove("background").unwrap_or_default();
        Ok(Self {
            background: serde_json::from_value(background).map_err(D::Error::custom)?,
            workload: WorkloadFields::new(record).map_err(D::Error::custom)?,
        })
    }
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
