//! Whether the files of databases grew in the measured part: their sizes when it begins and when it
//! ends, and the numbers by which their WALs count how often they are begun anew. It looks while no
//! phase is open, so that no measured time holds it.

use std::collections::BTreeSet;
use std::path::PathBuf;

use serde_json::{Value, json};

use super::threads::observer::Observer;
use crate::sqlite::files::{self, FileSize};

/// The phase of the measured transactions.
const MEASURED: &str = "commit";

/// Sizes of all files, and by database the number in its WAL's header.
#[derive(Debug, Clone)]
struct Look {
    sizes: Vec<FileSize>,
    sequences: Vec<Option<u32>>,
}

impl Look {
    fn take(databases: &BTreeSet<PathBuf>) -> std::io::Result<Self> {
        let (mut sizes, mut sequences) = (Vec::new(), Vec::new());
        for database in databases {
            sizes.extend(files::sizes(database)?);
            sequences.push(files::wal_sequence(database)?);
        }
        Ok(Self { sizes, sequences })
    }
}

/// The databases, and how they were at the begin and the end of the measured part.
#[derive(Debug)]
pub struct GrownFiles {
    databases: BTreeSet<PathBuf>,
    before: Option<Look>,
    after: Option<Look>,
}

impl GrownFiles {
    /// Of databases by their paths.
    pub fn new(databases: BTreeSet<PathBuf>) -> Self {
        Self { databases, before: None, after: None }
    }

    /// Looks when the measured part begins and ends, beside another observer.
    pub fn beside<'a>(&'a mut self, observer: &'a mut dyn Observer) -> impl Observer + 'a {
        Beside { grown: self, observer, is_measured: false }
    }

    /// Every file that was there, and the number in each WAL's header, before and after.
    pub fn found(&self) -> Value {
        let (Some(before), Some(after)) = (&self.before, &self.after) else {
            return Value::Null;
        };
        let pairs = before.sizes.iter().zip(&after.sizes);
        let sizes: Vec<Value> = pairs
            .filter(|(one, other)| one.size_bytes + one.blocks + other.size_bytes > 0)
            .map(|(one, other)| {
                json!({
                    "name": one.name,
                    "size_bytes": [one.size_bytes, other.size_bytes],
                    "blocks": [one.blocks, other.blocks],
                })
            })
            .collect();
        let sequences = before.sequences.iter().zip(&after.sequences);
        let sequences: Vec<_> = sequences.filter(|pair| *pair != (&None, &None)).collect();
        json!({ "sizes": sizes, "wal_sequences": sequences })
    }

    /// Why the measured part was not steady: a file that grew, a WAL that could not be overwritten.
    /// Empty where it was. A journal that every transaction makes or fills anew is as large after
    /// as before.
    pub fn not_steady(&self, has_wal: bool) -> Vec<String> {
        let (Some(before), Some(after)) = (&self.before, &self.after) else {
            return vec!["not steady: no transaction was measured".to_owned()];
        };
        let pairs = before.sizes.iter().zip(&after.sizes);
        let grew = pairs
            .filter(|(one, other)| other.size_bytes > one.size_bytes || other.blocks > one.blocks);
        let mut reasons: Vec<String> = grew
            .map(|(one, other)| {
                format!(
                    "not steady: {} grew in the measured part, from {} to {} bytes and from {} to \
                     {} blocks",
                    one.name, one.size_bytes, other.size_bytes, one.blocks, other.blocks
                )
            })
            .collect();
        let empty = before.sequences.iter().filter(|sequence| sequence.is_none()).count();
        if has_wal && empty > 0 {
            reasons.push(format!("not steady: {empty} databases had no WAL to be overwritten"));
        }
        reasons
    }
}

/// The observer of a run, and ours beside it.
struct Beside<'a> {
    grown: &'a mut GrownFiles,
    observer: &'a mut dyn Observer,
    is_measured: bool,
}

impl Observer for Beside<'_> {
    fn enter(&mut self, phase: &'static str) -> anyhow::Result<()> {
        self.is_measured = phase == MEASURED;
        if self.is_measured && self.grown.before.is_none() {
            self.grown.before = Some(Look::take(&self.grown.databases)?);
        }
        self.observer.enter(phase)
    }

    fn leave(&mut self) -> anyhow::Result<()> {
        self.observer.leave()?;
        if self.is_measured {
            self.grown.after = Some(Look::take(&self.grown.databases)?);
        }
        Ok(())
    }

    fn is_pause_due(&self) -> bool {
        self.observer.is_pause_due()
    }

    fn pause(&mut self) -> anyhow::Result<()> {
        self.observer.pause()
    }
}
