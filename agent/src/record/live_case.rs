//! A case for this machine: a workload without device, filesystem and mount options.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use super::{Background, WorkloadSettings};

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
    pub workload: WorkloadSettings,
}

impl<'de> Deserialize<'de> for LiveSettings {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut record: Map<String, Value> = Map::deserialize(deserializer)?;
        let background = record.remove("background").unwrap_or_default();
        Ok(Self {
            background: serde_json::from_value(background).map_err(D::Error::custom)?,
            workload: WorkloadSettings::read(record).map_err(D::Error::custom)?,
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
    use super::super::file::tests::write_settings;
    use super::*;

    #[test]
    fn a_live_case_is_a_workload_and_what_goes_on_beside_it() {
        let mut json = serde_json::to_value(write_settings()).unwrap();
        json["background"] = "cpu".into();
        let text = |case: &Value| serde_json::json!({ "seed": 5, "case": case }).to_string();
        let case = LiveCase::parse(text(&json).as_bytes()).unwrap();
        assert_eq!((case.seed, case.case.background), (5, Background::Cpu));
        assert_eq!(case.case.workload, WorkloadSettings::FileWrite(write_settings()));
        json["filesystem"] = "ext4".into();
        let error = LiveCase::parse(text(&json).as_bytes()).unwrap_err().to_string();
        assert!(error.contains("unknown field `filesystem`"), "{error}");
    }
}
