//! What closed databases of scripts hold: checks that they are sound; after a power cut, finds how
//! many transactions each holds.

use std::cell::OnceCell;
use std::path::PathBuf;

use super::history::{PlayAgain, PlayedThread, Sharers, histories};
use crate::sqlite::contents::of_database;
use crate::sqlite::sound;
use crate::workload::database_states::survival;
use crate::workload::error::WorkloadError;
use crate::workload::kind::Remains;
use crate::workload::power_cut::{Cut, CutOutcome, Survival};

/// The closed databases.
pub struct SqlRemains {
    /// All of them, and the directory that they are in.
    pub files: Vec<PathBuf>,
    pub directory: PathBuf,
    pub threads: Vec<PlayedThread>,
    pub again: Box<dyn PlayAgain>,
    /// Played again when it is asked for: it takes a while, and few runs are cut.
    pub histories: OnceCell<Vec<Sharers>>,
}

impl SqlRemains {
    fn histories(&self) -> Result<&[Sharers], WorkloadError> {
        if let Some(found) = self.histories.get() {
            return Ok(found);
        }
        let found = histories(&self.threads, &self.directory, &*self.again)?;
        Ok(self.histories.get_or_init(|| found))
    }

    fn survived_at(&self, at_ns: i64) -> Result<Survival, WorkloadError> {
        let of_sharers = |sharers: &Sharers| {
            let digest = |path: &PathBuf| of_database(&sound::open(path)?, "main", path);
            let digests = sharers.files.iter().map(digest).collect::<Result<Vec<_>, _>>()?;
            let found: Vec<_> = sharers.states.iter().zip(digests).collect();
            Ok(survival(&found, sharers.progress(at_ns)))
        };
        self.histories()?.iter().map(of_sharers).collect()
    }
}

impl Remains for SqlRemains {
    /// Checks that they are sound; what they must hold, only the scripts' author knows.
    fn check(&self) -> Result<(), WorkloadError> {
        self.files.iter().try_for_each(|path| Ok(sound::open(path).map(drop)?))
    }

    fn check_oracle(&self) -> Result<(), WorkloadError> {
        let found = self.survived_at(i64::MAX)?;
        if found.outcome == CutOutcome::Kept {
            return Ok(());
        }
        Err(WorkloadError::refused(
            "power cuts: the scripts leave other rows when they are played again, as those do that \
             use random() or the time of day: nobody could say which rows a power cut took; give \
             the values as arguments",
        ))
    }

    fn survived(&self, cut: &Cut) -> Result<Survival, WorkloadError> {
        self.survived_at(cut.at_ns)
    }
}

#[cfg(test)]
#[path = "remains_test.rs"]
mod tests;
