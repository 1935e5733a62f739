//! What is found after a power cut: reads a mounted filesystem, or why it could not be mounted;
//! produces the verdict.

use std::path::PathBuf;

use serde::Serialize;

use super::instants::{begun, returned};
use super::of_this_machine;
use crate::errors::text;
use crate::filesystem::{FilesystemError, mount::Mounted};
use crate::record::words;
use crate::tables::rows::Transaction;
use crate::workload::sqlite::History;
use crate::workload::{Finished, Survived};

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
    /// Empty where the workload is not SQLite's.
    found: Vec<Option<u64>>,
    /// Acknowledged transactions that are gone: the last ones of SQLite's; of files' the records
    /// and names that are not as the last of them left them. 0 where that cannot be told.
    lost: u64,
    /// What SQLite or the kernel said; empty where what is there is sound.
    message: String,
}

impl Verdict {
    fn failed(outcome: Outcome, error: &anyhow::Error) -> Self {
        Verdict { outcome, found: Vec::new(), lost: 0, message: text(error) }
    }
}

/// What a run should have left.
pub enum Expected {
    Databases { paths: Vec<PathBuf>, history: History },
    Files(Finished),
}

impl Expected {
    /// Looks at what is there after a power cut at `cut_ns`: opens every database, which recovers
    /// it, and finds its place in the history; or reads every file.
    ///
    /// # Errors
    /// Where this machine failed to look: that says nothing of what is there.
    pub fn judge(
        &self,
        mounted: Result<Mounted, FilesystemError>,
        transactions: &[Transaction],
        cut_ns: i64,
    ) -> anyhow::Result<Verdict> {
        let mounted = match mounted {
            Ok(mounted) => mounted,
            Err(error) if of_this_machine::mounting(&error) => return Err(error.into()),
            Err(error) => return Ok(Verdict::failed(Outcome::Unmountable, &error.into())),
        };
        let verdict = match self {
            Self::Databases { paths, history } => {
                let begun = begun(transactions, cut_ns);
                let found: Result<_, _> =
                    paths.iter().map(|path| history.find(path, begun)).collect();
                found.map(|found| of_databases(found, returned(transactions, cut_ns)))
            }
            Self::Files(finished) => {
                let of = |thread| transactions.iter().filter(move |it| it.thread == thread);
                let survived = finished.survived(
                    |thread| returned(of(thread), cut_ns),
                    |thread| begun(of(thread), cut_ns),
                );
                survived.map(of_files)
            }
        };
        let verdict = match verdict {
            Ok(verdict) => verdict,
            Err(error) if of_this_machine::looking(&error) => {
                return Err(anyhow::Error::from(error).context("looking at what a power cut left"));
            }
            Err(error) => Verdict::failed(Outcome::Corrupt, &error.into()),
        };
        Ok(match mounted.unmount() {
            Ok(()) => verdict,
            Err(error) => Verdict::failed(Outcome::Corrupt, &error.into()),
        })
    }
}

fn of_databases(found: Vec<Option<u64>>, acknowledged: u64) -> Verdict {
    let (outcome, lost, message) = match found.first() {
        _ if found.contains(&None) => {
            let message = "sound for SQLite, with rows as after no transaction";
            (Outcome::Corrupt, 0, message.to_owned())
        }
        Some(first) if found.iter().any(|other| other != first) => {
            (Outcome::Torn, 0, String::new())
        }
        Some(Some(number)) if *number < acknowledged => {
            (Outcome::Lost, acknowledged - number, String::new())
        }
        _ => (Outcome::Kept, 0, String::new()),
    };
    Verdict { outcome, found, lost, message }
}

fn of_files(Survived { lost, torn }: Survived) -> Verdict {
    let (outcome, message) = match (lost, torn) {
        (_, 1..) => (Outcome::Torn, format!("{torn} names are there beside those they replace")),
        (1.., 0) => (Outcome::Lost, String::new()),
        (0, 0) => (Outcome::Kept, String::new()),
    };
    Verdict { outcome, found: Vec::new(), lost, message }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(found: &[Option<u64>], acknowledged: u64) -> Outcome {
        of_databases(found.to_vec(), acknowledged).outcome
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

    #[test]
    fn what_is_lost_is_counted() {
        assert_eq!(of_databases(vec![Some(4)], 7).lost, 3);
        assert_eq!(of_databases(vec![Some(7)], 7).lost, 0);
        let found = of_files(Survived { lost: 2, torn: 0 });
        assert_eq!((found.outcome, found.lost), (Outcome::Lost, 2));
        assert_eq!(of_files(Survived { lost: 2, torn: 1 }).outcome, Outcome::Torn);
        assert_eq!(of_files(Survived::default()).outcome, Outcome::Kept);
    }
}
