//! The manifest: what a capture says of itself, key by key. The builder writes what every capture
//! has; each writer notes what only it knows.

use serde::Serialize;
use serde_json::{Value, json};

use super::write::{ManifestRow, Table};

/// The version of the tables in schema/.
const SCHEMA_VERSION: u32 = 3;

/// What was done, and where.
pub struct Origin {
    /// The fields of the case, or the command.
    pub case: Value,
    pub seed: u64,
    /// What the times mean: virtual, guest-wall or wall.
    pub clock: &'static str,
    pub device: Value,
    /// What was found in force: settings of the workload, mounts, queues.
    pub configuration: Value,
}

/// What a tracer lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceLoss {
    pub lost_events: u64,
    pub unattributed_bytes: u64,
}

/// Keys and values, in the order in which they were noted.
#[derive(Debug, Clone)]
pub struct Manifest {
    facts: Vec<(&'static str, Value)>,
}

impl Manifest {
    /// Begins with what every capture has, and the kernel that runs.
    pub fn new(origin: Origin) -> Self {
        let Origin { case, seed, clock, device, configuration } = origin;
        let kernel = rustix::system::uname();
        let kernel = json!({
            "release": kernel.release().to_string_lossy(),
            "version": kernel.version().to_string_lossy(),
        });
        let facts = vec![
            ("schema_version", json!(SCHEMA_VERSION)),
            ("case", case),
            ("seed", json!(seed)),
            ("clock", json!(clock)),
            ("kernel", kernel),
            ("device", device),
            ("configuration", configuration),
        ];
        Self { facts }
    }

    /// Adds a fact.
    ///
    /// # Panics
    /// If the key was noted before, or the value is none that JSON has.
    pub fn note(&mut self, key: &'static str, value: impl Serialize) {
        assert!(self.facts.iter().all(|(known, _)| *known != key), "{key} is noted twice");
        self.facts.push((key, json!(value)));
    }

    /// Its rows, with the `tables` that stand beside it, what the tracer lost (nothing is said of
    /// that where there was none), and how the capture ended: without `incomplete_reasons` it is
    /// complete.
    pub fn rows(
        &self,
        tables: &[&str],
        loss: Option<TraceLoss>,
        incomplete_reasons: &[String],
    ) -> Vec<ManifestRow> {
        let mut all = self.clone();
        all.note("tables", [tables, &[ManifestRow::NAME]].concat());
        if let Some(TraceLoss { lost_events, unattributed_bytes }) = loss {
            all.note("lost_events", lost_events);
            all.note("unattributed_bytes", unattributed_bytes);
        }
        all.note("incomplete", !incomplete_reasons.is_empty());
        all.note("incomplete_reasons", incomplete_reasons);
        let entry =
            |(key, value): (&str, Value)| ManifestRow { key: key.into(), value: value.to_string() };
        all.facts.into_iter().map(entry).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest() -> Manifest {
        let (case, device, configuration) = (json!({"a": 1}), Value::Null, json!({}));
        Manifest::new(Origin { case, seed: 7, clock: "wall", device, configuration })
    }

    fn value<'a>(rows: &'a [ManifestRow], key: &str) -> Option<&'a str> {
        rows.iter().find(|row| row.key == key).map(|row| row.value.as_str())
    }

    #[test]
    fn what_was_not_traced_is_not_declared_and_counts_nothing() {
        let rows = manifest().rows(&["transactions"], None, &[]);
        assert_eq!(value(&rows, "tables"), Some("[\"transactions\",\"manifest\"]"));
        assert_eq!(value(&rows, "lost_events"), None);
        assert_eq!(value(&rows, "unattributed_bytes"), None);
        assert_eq!(value(&rows, "incomplete"), Some("false"));
        assert_eq!(value(&rows, "seed"), Some("7"));
    }

    #[test]
    fn a_reason_makes_a_capture_incomplete() {
        let mut manifest = manifest();
        manifest.note("totals", [1, 2]);
        let loss = TraceLoss { lost_events: 3, unattributed_bytes: 0 };
        let rows = manifest.rows(&["requests"], Some(loss), &["3 events were lost".to_owned()]);
        assert_eq!(value(&rows, "lost_events"), Some("3"));
        assert_eq!(value(&rows, "incomplete"), Some("true"));
        assert_eq!(value(&rows, "incomplete_reasons"), Some("[\"3 events were lost\"]"));
        assert_eq!(value(&rows, "totals"), Some("[1,2]"));
    }

    #[test]
    #[should_panic(expected = "seed is noted twice")]
    fn a_key_is_noted_once() {
        manifest().note("seed", 1);
    }
}
