//! What is found after a power cut: reads a mounted filesystem, or why it could not be mounted;
//! produces the verdict.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::case::words;
use crate::errors::text;
use crate::filesystem::mount::Mounted;
use crate::workload::sqlite::History;

words! {
    /// The worse, the later.
    Outcome {
        Kept = "kept", Lost = "lost", Torn = "torn", Corrupt = "corrupt",
        Unmountable = "unmountable",
    }
}

/// The outcome, and what led to it.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct Verdict {
    outcome: Outcome,
    /// Transactions that each database holds; none where it holds what no number of them gives.
    found: Vec<Option<u64>>,
    /// What SQLite or the kernel said; empty where the databases are sound.
    message: String,
}

/// Opens every database, which recovers it, and finds its place in the history.
pub fn judge(
    mounted: anyhow::Result<Mounted>,
    databases: &[PathBuf],
    history: &History,
    acknowledged: u64,
    begun: u64,
) -> Verdict {
    let failed = |outcome, error: &anyhow::Error| Verdict {
        outcome,
        found: Vec::new(),
        message: text(error),
    };
    let mounted = match mounted {
        Ok(mounted) => mounted,
        Err(error) => return failed(Outcome::Unmountable, &error),
    };
    let found: Result<Vec<_>, _> = databases.iter().map(|path| history.find(path, begun)).collect();
    let verdict = match found {
        Ok(found) => of(found, acknowledged),
        Err(error) => failed(Outcome::Corrupt, &error.into()),
    };
    match mounted.unmount() {
        Ok(()) => verdict,
        Err(error) => failed(Outcome::Corrupt, &error.into()),
    }
}

fn of(found: Vec<Option<u64>>, acknowledged: u64) -> Verdict {
    let (outcome, message) = match found.first() {
        _ if found.contains(&None) => {
            (Outcome::Corrupt, "sound for SQLite, with rows as after no transaction".to_owned())
        }
        Some(first) if found.iter().any(|other| other != first) => (Outcome::Torn, String::new()),
        Some(Some(number)) if *number < acknowledged => (Outcome::Lost, String::new()),
        _ => (Outcome::Kept, String::new()),
    };
    Verdict { outcome, found, message }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(found: &[Option<u64>], acknowledged: u64) -> Outcome {
        of(found.to_vec(), acknowledged).outcome
    }

    #[test]
    fn the_transaction_under_way_may_be_there_and_an_acknowledged_one_must() {
        assert_eq!(outcome(&[Some(5)], 5), Outcome::Kept);
        assert_eq!(outcome(&[Some(6)], 5), Outcome::Kept);
        assert_eq!(outcome(&[Some(4)], 5), Outcome::Lost);
    }

    #[test]
    fn databases_that_disagree_are_torn_and_strange_rows_are_corrupt() {
        assert_eq!(outcome(&[Some(5), Some(5)], 5), Outcome::Kept);
        assert_eq!(outcome(&[Some(5), Some(6)], 5), Outcome::Torn);
        assert_eq!(outcome(&[Some(5), None], 5), Outcome::Corrupt);
    }
}
