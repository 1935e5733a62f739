//! The part of a record that its workload alone has: the fields as they came. Which there must be
//! is for the kind of workload to say, whose words `workload::read` knows.

use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

/// The word of the field `workload`, and all fields with it.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(transparent)]
pub struct WorkloadFields(Map<String, Value>);

impl WorkloadFields {
    /// Of named fields.
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
